"""Encodes messages: a header in msgpack, and the columns of batches as raw buffers behind it.

Rows are never pickled: a receiver's columns are views of the buffer that the socket filled, read-only because several
queries may read them, and text is a list of strings in the header. Only a column of other Python objects is pickled.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, TypeAlias, cast

import msgpack
import numpy as np

from dsms import errors
from dsms.data.batch import Batch, Column
from dsms.data.batch_ref import BatchRef
from dsms.data.journal import RepeatedValue
from dsms.errors import Cause, DsmsError, OperatorError, PlanError

PREFIX = struct.Struct("<IQ")  # bytes of the header, bytes of the payload
ALIGNMENT_BYTES = 8
BATCH, BATCH_REF, COLUMN, TEXT, OBJECTS, REPEATED, NUMBER, ERROR = range(1, 9)
TEXT_TYPES = {str, NoneType, float, bool}  # values that msgpack returns as they were
UNICODE_ERRORS = "surrogatepass"  # any text of Python's can be sent, also half of a surrogate pair
Buffer: TypeAlias = memoryview | bytes


class Encoder:
    """Encodes one message at a time; each thread that sends has its own."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []
        self._bytes = 0

    def encode(self, message: object) -> list[Buffer]:
        """Return the buffers to send, in order."""
        self._buffers, self._bytes = [], 0
        header = self._pack(message)
        return [PREFIX.pack(len(header), self._bytes) + header, *self._buffers]

    def _pack(self, value: object) -> bytes:
        return bytes(msgpack.packb(value, default=self._encode_object, unicode_errors=UNICODE_ERRORS))

    def _encode_object(self, value: object) -> object:
        if isinstance(value, Batch):
            columns = {name: self._encode_column(column) for name, column in value.columns.items()}
            return msgpack.ExtType(BATCH, self._pack((columns, *_other_fields(value))))
        if isinstance(value, BatchRef):
            return msgpack.ExtType(BATCH_REF, self._pack(tuple(getattr(value, name) for name in BatchRef.__slots__)))
        if isinstance(value, np.ndarray):
            return self._encode_column(value)
        if isinstance(value, RepeatedValue):
            return msgpack.ExtType(REPEATED, self._pack((value.arrived, value.many)))
        if isinstance(value, np.generic):
            return msgpack.ExtType(NUMBER, self._pack((value.dtype.str, value.tobytes())))
        if isinstance(value, BaseException):
            return msgpack.ExtType(ERROR, self._pack(_describe(value)))
        raise TypeError(f"a {type(value).__name__} cannot be part of a message between actors")

    def _encode_column(self, column: Column) -> msgpack.ExtType:
        if column.dtype.hasobject or column.ndim != 1:
            values = column.tolist()
            if column.ndim == 1 and set(map(type, values)) <= TEXT_TYPES:
                return msgpack.ExtType(TEXT, self._pack(values))
            return msgpack.ExtType(OBJECTS, pickle.dumps(column))
        flat = np.ascontiguousarray(column)
        place, size = self._bytes, flat.nbytes
        if size:
            self._buffers.append(as_bytes(flat))
            if padding := -size % ALIGNMENT_BYTES:
                self._buffers.append(bytes(padding))
            self._bytes += size + padding
        return msgpack.ExtType(COLUMN, self._pack((flat.dtype.str, len(flat), place)))


def as_bytes(column: Column) -> memoryview:
    """Return the bytes of a contiguous array, without a copy."""
    return memoryview(cast("bytearray", column.view(np.uint8)))


def decode(header: Buffer, payload: Column) -> Any:
    """Return the message; its columns are read-only views of the payload, an array of bytes. Lists become tuples."""
    payload.flags.writeable = False

    def decode_object(code: int, data: bytes) -> object:
        if code == COLUMN:
            dtype, rows, place = msgpack.unpackb(data)
            return np.frombuffer(payload, dtype, rows, place) if rows else np.empty(0, dtype)
        if code == OBJECTS:
            return pickle.loads(data)
        return MAKERS[code](unpack(data, use_list=code == TEXT))

    def unpack(data: Buffer, use_list: bool) -> Any:
        return msgpack.unpackb(
            data, ext_hook=decode_object, use_list=use_list, strict_map_key=False, unicode_errors=UNICODE_ERRORS
        )

    return unpack(header, use_list=False)


def _other_fields(batch: Batch) -> Sequence[object]:
    return [getattr(batch, name) for name in BATCH_FIELDS]


def _make_text(values: list[object]) -> Column:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _describe(error: BaseException) -> tuple[object, ...]:
    """What is told of an error: classes of ours keep their class and cause, others are named in the text."""
    if type(error) is PlanError:
        return "PlanError", error.message, error.place, error.file
    if type(error) is OperatorError:
        return "OperatorError", str(error), error.cause.value
    if isinstance(error, DsmsError) and type(error).__module__ == errors.__name__:
        return type(error).__name__, *map(str, error.args)
    if isinstance(error, DsmsError):
        return "DsmsError", str(error)
    return "OperatorError", f"{type(error).__name__}: {error}", Cause.ERROR.value


def _make_error(fields: Sequence[str]) -> BaseException:
    name, *arguments = fields
    if name == "OperatorError":
        return OperatorError(arguments[0], Cause(arguments[1]))
    error: BaseException = getattr(errors, name)(*arguments)
    return error


def _make_number(fields: tuple[str, bytes]) -> object:
    return np.frombuffer(fields[1], fields[0])[0]


BATCH_FIELDS = tuple(name for name in Batch.__slots__ if name != "columns")
MAKERS: dict[int, Callable[[Any], object]] = {
    BATCH: lambda fields: Batch(*fields),
    BATCH_REF: lambda fields: BatchRef(*fields),
    TEXT: _make_text,
    REPEATED: lambda fields: RepeatedValue(*fields),
    NUMBER: _make_number,
    ERROR: _make_error,
}
