"""Encodes columns as byte buffers and back: little-endian numbers, strings as offsets and UTF-8, nulls as bits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dsms.data.batch import Column
from dsms.net.wire.messages import WireError

Buffer = bytes | memoryview

ALIGNMENT_BYTES = 8  # every buffer starts at a multiple of it, so that a column can be a view of the frame
OFFSET_DTYPE = np.dtype("<i4")
STRING = "string"
DECODED_TEXTS_PER_BLOCK = 2**14  # strings decoded at a time: bounds the memory of intermediate lists
# `int8` is for signs only: no column of a stream has this type.
FIXED_WIDTH_DTYPES = {
    "int64": np.dtype("<i8"),
    "timestamp": np.dtype("<i8"),
    "float64": np.dtype("<f8"),
    "bool": np.dtype(np.bool_),
    "int8": np.dtype("i1"),
}


def count_padding_bytes(length: int) -> int:
    """Return how many bytes a buffer of this length lacks to a multiple of the alignment."""
    return -length % ALIGNMENT_BYTES


class PayloadReader:
    """Reads the buffers of one frame in order."""

    def __init__(self, view: memoryview) -> None:
        self._view, self._at = view, 0

    def take(self, length: int, what: str) -> memoryview:
        """Return the next buffer, without its padding."""
        end = self._at + length
        after = end + count_padding_bytes(length)
        if after > len(self._view):
            raise WireError(f"{what}: {length} bytes announced; the frame has {len(self._view) - self._at} left")
        if any(self._view[end:after]):
            raise WireError(f"{what}: padded with {bytes(self._view[end:after])!r}; padding must be zeros")
        buffer, self._at = self._view[self._at : end], after
        return buffer

    def close(self) -> None:
        """Refuse a frame that has bytes left after its last buffer."""
        if self._at < len(self._view):
            raise WireError(f"{len(self._view) - self._at} bytes follow the last buffer; none are allowed")


def encode_column(column: Column, kind: str, nulls: Column | None, rows: int, what: str) -> list[Buffer]:
    """Return the buffers of a column; numbers are views of it, so it must not change until they are sent."""
    for array in (column, nulls):
        if array is not None and array.shape != (rows,):
            raise WireError(f"{what} has the shape {array.shape}; expected one value for each of {rows} rows")
    buffers: list[Buffer]
    buffers = (
        _encode_texts(column, what)
        if kind == STRING
        else [_view_bytes(column.astype(FIXED_WIDTH_DTYPES[kind], copy=False))]
    )
    if nulls is None:
        return buffers
    if nulls.dtype != np.bool_:
        raise WireError(f"{what}: its nulls are {nulls.dtype}; expected bool")
    return [*buffers, _view_bytes(np.packbits(nulls, bitorder="little"))] if nulls.any() else buffers


def decode_column(
    payload: PayloadReader, kind: str, lengths: Sequence[int], rows: int, what: str
) -> tuple[Column, Column | None]:
    """Return a column, and its nulls if it has any; numbers are views of the payload."""
    expected = (
        [OFFSET_DTYPE.itemsize * (rows + 1), None] if kind == STRING else [FIXED_WIDTH_DTYPES[kind].itemsize * rows]
    )
    if len(lengths) > len(expected):
        expected.append((rows + 7) // 8)
    if len(lengths) != len(expected):
        raise WireError(f"{what}: {len(lengths)} buffers; expected {len(expected)} for {kind}, or one more with nulls")
    for length, size in zip(lengths, expected, strict=True):
        if size is not None and length != size:
            raise WireError(f"{what}: a buffer of {length} bytes; expected {size} for {rows} rows of {kind}")
    buffers = [payload.take(length, what) for length in lengths]
    column = (
        _decode_texts(buffers[0], buffers[1], rows, what)
        if kind == STRING
        else _decode_fixed(buffers[0], kind, rows, what)
    )
    return column, _decode_nulls(buffers[-1], rows, what) if len(expected) > 1 + (kind == STRING) else None


def _view_bytes(array: Column) -> memoryview:
    return np.ascontiguousarray(array).view(np.uint8).data


def _encode_texts(column: Column, what: str) -> list[Buffer]:
    texts = column.tolist()
    try:
        text = "".join(texts)
        values = texts if text.isascii() else [value.encode() for value in texts]
        buffer = text.encode()
    except TypeError as error:
        raise WireError(f"{what} has a value that is not a string: {error}") from None
    except UnicodeEncodeError as error:
        raise WireError(f"{what} has a value that UTF-8 cannot encode: {error.reason}") from None
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(texts)), out=offsets[1:])
    if offsets[-1] > np.iinfo(OFFSET_DTYPE).max:
        raise WireError(
            f"{what} has {offsets[-1]} bytes of text; at most {np.iinfo(OFFSET_DTYPE).max} go into one frame"
        )
    return [_view_bytes(offsets.astype(OFFSET_DTYPE)), buffer]


def _decode_fixed(buffer: memoryview, kind: str, rows: int, what: str) -> Column:
    if kind == "bool":
        codes = np.ndarray(rows, np.uint8, buffer)
        if rows and codes.max() > 1:  # numpy does not check: another byte makes a bool that is neither True nor False
            raise WireError(f"{what}: a bool is the byte {codes.max()}; it must be 0 or 1")
    return np.ndarray(rows, FIXED_WIDTH_DTYPES[kind], buffer)


def _decode_texts(offset_bytes: memoryview, buffer: memoryview, rows: int, what: str) -> Column:
    offsets = np.ndarray(rows + 1, OFFSET_DTYPE, offset_bytes)
    if offsets[0] != 0 or offsets[-1] != len(buffer):
        raise WireError(
            f"{what}: offsets run from {offsets[0]} to {offsets[-1]}; they must run from 0 to {len(buffer)}"
        )
    if (offsets[1:] < offsets[:-1]).any():
        raise WireError(f"{what}: offsets decrease; each must be at least the one before")
    plain = not len(buffer) or np.ndarray(len(buffer), np.uint8, buffer).max() < 128
    text, data = (str(buffer, "ascii"), b"") if plain else ("", bytes(buffer))
    column = np.empty(rows, dtype=object)
    try:
        for first in range(0, rows, DECODED_TEXTS_PER_BLOCK):
            cuts = pairwise(offsets[first : first + DECODED_TEXTS_PER_BLOCK + 1].tolist())
            values = [text[start:end] for start, end in cuts] if plain else [data[a:b].decode() for a, b in cuts]
            column[first : first + DECODED_TEXTS_PER_BLOCK] = values
    except UnicodeDecodeError as error:
        raise WireError(f"{what}: a value is not UTF-8: {error.reason}") from None
    return column


def _decode_nulls(buffer: memoryview, rows: int, what: str) -> Column:
    if rows % 8 and buffer[-1] >> rows % 8:
        raise WireError(f"{what}: null bits are set for rows after the last of {rows}")
    return np.unpackbits(np.ndarray(len(buffer), np.uint8, buffer), count=rows, bitorder="little").view(np.bool_)
