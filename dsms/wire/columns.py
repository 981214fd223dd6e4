"""Columns as buffers of bytes and back: little endian, texts as offsets and UTF-8, nulls as bits, never an object."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dsms.batch import Column
from dsms.wire.messages import WireError

Buffer = bytes | memoryview

ALIGNMENT = 8  # every buffer begins at a multiple of it, so that columns are views of the frame
OFFSET = np.dtype("<i4")
STRING = "string"
BLOCK = 2**14  # texts made at a time, so that what is only needed on the way stays small
# `int8` is for signs: no column of a stream has it.
FIXED = {
    "int64": np.dtype("<i8"),
    "timestamp": np.dtype("<i8"),
    "float64": np.dtype("<f8"),
    "bool": np.dtype(np.bool_),
    "int8": np.dtype("i1"),
}


def padding(length: int) -> int:
    """How many bytes are missing to the next multiple of the alignment."""
    return -length % ALIGNMENT


class Payload:
    """The buffers of one frame, taken one after the other."""

    def __init__(self, view: memoryview) -> None:
        self._view, self._at = view, 0

    def take(self, length: int, what: str) -> memoryview:
        """The next buffer, without what fills it up."""
        end = self._at + length
        after = end + padding(length)
        if after > len(self._view):
            raise WireError(f"{what}: {length} bytes are announced, {len(self._view) - self._at} are left in the frame")
        if any(self._view[end:after]):
            raise WireError(f"{what}: filled up with {bytes(self._view[end:after])!r}; zeros are wanted")
        taken, self._at = self._view[self._at : end], after
        return taken

    def close(self) -> None:
        """Nothing may be left."""
        if self._at < len(self._view):
            raise WireError(f"{len(self._view) - self._at} bytes follow the last buffer; none are wanted")


def packed(column: Column, kind: str, nulls: Column | None, rows: int, what: str) -> list[Buffer]:
    """The buffers of a column; those of numbers are views of it, so it must not change until they are sent."""
    for given in (column, nulls):
        if given is not None and given.shape != (rows,):
            raise WireError(f"{what} has the shape {given.shape}; one value for each of {rows} rows is wanted")
    buffers: list[Buffer]
    buffers = _packed_texts(column, what) if kind == STRING else [_bytes(column.astype(FIXED[kind], copy=False))]
    if nulls is None:
        return buffers
    if nulls.dtype != np.bool_:
        raise WireError(f"{what}: its nulls are {nulls.dtype}; bool is wanted")
    return [*buffers, _bytes(np.packbits(nulls, bitorder="little"))] if nulls.any() else buffers


def unpacked(payload: Payload, kind: str, lengths: Sequence[int], rows: int, what: str) -> tuple[Column, Column | None]:
    """A column and its nulls, if it has any; views of the payload where numpy can read it as it is."""
    wanted = [OFFSET.itemsize * (rows + 1), None] if kind == STRING else [FIXED[kind].itemsize * rows]
    if len(lengths) > len(wanted):
        wanted.append((rows + 7) // 8)
    if len(lengths) != len(wanted):
        raise WireError(f"{what}: {len(lengths)} buffers; {len(wanted)} are wanted for {kind}, or one more with nulls")
    for length, want in zip(lengths, wanted, strict=True):
        if want is not None and length != want:
            raise WireError(f"{what}: a buffer of {length} bytes; {want} are wanted for {rows} rows of {kind}")
    buffers = [payload.take(length, what) for length in lengths]
    column = _texts(buffers[0], buffers[1], rows, what) if kind == STRING else _fixed(buffers[0], kind, rows, what)
    return column, _nulls(buffers[-1], rows, what) if len(wanted) > 1 + (kind == STRING) else None


def _bytes(array: Column) -> memoryview:
    return np.ascontiguousarray(array).view(np.uint8).data


def _packed_texts(column: Column, what: str) -> list[Buffer]:
    texts = column.tolist()
    try:
        text = "".join(texts)
        values = texts if text.isascii() else [value.encode() for value in texts]
        buffer = text.encode()
    except TypeError as error:
        raise WireError(f"{what} has a value that is no string: {error}") from None
    except UnicodeEncodeError as error:
        raise WireError(f"{what} has a value that UTF-8 cannot hold: {error.reason}") from None
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(texts)), out=offsets[1:])
    if offsets[-1] > np.iinfo(OFFSET).max:
        raise WireError(f"{what} has {offsets[-1]} bytes of text; at most {np.iinfo(OFFSET).max} go into one frame")
    return [_bytes(offsets.astype(OFFSET)), buffer]


def _fixed(buffer: memoryview, kind: str, rows: int, what: str) -> Column:
    if kind == "bool":
        codes = np.ndarray(rows, np.uint8, buffer)
        if rows and codes.max() > 1:  # numpy trusts these bytes; others would make a bool that is neither
            raise WireError(f"{what}: a bool is the byte {codes.max()}; 0 or 1 is wanted")
    return np.ndarray(rows, FIXED[kind], buffer)


def _texts(places: memoryview, buffer: memoryview, rows: int, what: str) -> Column:
    offsets = np.ndarray(rows + 1, OFFSET, places)
    if offsets[0] != 0 or offsets[-1] != len(buffer):
        raise WireError(
            f"{what}: offsets run from {offsets[0]} to {offsets[-1]}; 0 to {len(buffer)}, all of the text, is wanted"
        )
    if (offsets[1:] < offsets[:-1]).any():
        raise WireError(f"{what}: offsets go back; none may be below the one before")
    plain = not len(buffer) or np.ndarray(len(buffer), np.uint8, buffer).max() < 128
    text, data = (str(buffer, "ascii"), b"") if plain else ("", bytes(buffer))
    column = np.empty(rows, dtype=object)
    try:
        for first in range(0, rows, BLOCK):
            cuts = pairwise(offsets[first : first + BLOCK + 1].tolist())
            values = [text[start:end] for start, end in cuts] if plain else [data[a:b].decode() for a, b in cuts]
            column[first : first + BLOCK] = values
    except UnicodeDecodeError as error:
        raise WireError(f"{what}: a value is not UTF-8: {error.reason}") from None
    return column


def _nulls(buffer: memoryview, rows: int, what: str) -> Column:
    if rows % 8 and buffer[-1] >> rows % 8:
        raise WireError(f"{what}: nulls are said of rows after the last of {rows}")
    return np.unpackbits(np.ndarray(len(buffer), np.uint8, buffer), count=rows, bitorder="little").view(np.bool_)
