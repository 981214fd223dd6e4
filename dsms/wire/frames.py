"""Where a frame begins and ends in a stream of bytes, however it is cut.

A frame is two little-endian uint32, how many bytes follow and how many of them are the header; the header, one msgpack
map; and the buffers of columns. Header and buffers are each filled up with zeros to a multiple of eight bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from dsms.errors import existing
from dsms.schema import Schema
from dsms.wire.columns import ALIGNMENT, Buffer, Payload, padding
from dsms.wire.headers import (
    HIGHEST,
    MOST_BYTES,
    PLAIN,
    Header,
    plain,
    read,
    read_plain,
    read_schemas,
    schemas,
    written,
)
from dsms.wire.messages import SHOWN, Data, Message, Result, Schemas, WireError, shown
from dsms.wire.rows import header_of, read_rows

LIMIT = 64 * 1024 * 1024  # bytes of a frame
HIGHEST_LIMIT = 2**31 - ALIGNMENT  # offsets into a frame are int32
PREFIX = struct.Struct("<II")
KINDS = (*PLAIN, "schema", "data", "result")


def encoded(message: Message, limit: int = LIMIT) -> list[Buffer]:
    """A message as parts to be written one after the other; columns of numbers are views, not copies."""
    buffers: list[Buffer] = []
    if isinstance(message, Data | Result):
        header, buffers = header_of(message)
    else:
        header = schemas(message) if isinstance(message, Schemas) else plain(message)
    head = written(header)
    parts: list[Buffer] = [head + bytes(padding(len(head)))]
    for buffer in buffers:
        parts.append(buffer)
        if fill := padding(len(buffer)):
            parts.append(bytes(fill))
    length = sum(map(len, parts))
    if length > (most := min(limit, HIGHEST_LIMIT)):
        raise WireError(f"{header['type']} frame: {length} bytes; at most {most} go: cut the batch")
    parts[0] = PREFIX.pack(length, len(head)) + bytes(parts[0])
    return [part for part in parts if len(part)]


class Decoder:
    """The messages in bytes that come in pieces; what is refused stands in its place among them as a WireError.

    `streams` and `queries` say what columns data and results must have; with `learns` the schemas that the other side
    tells are added to them, which is for a side that trusts the other. After an error with `lost`, nothing is read.
    """

    def __init__(
        self,
        streams: Mapping[str, Schema] | None = None,
        queries: Mapping[str, Schema] | None = None,
        limit: int = LIMIT,
        learns: bool = False,
    ) -> None:
        if not 0 < limit <= HIGHEST_LIMIT:
            raise WireError(f"a limit of {limit} bytes a frame; from 1 to {HIGHEST_LIMIT} is wanted")
        self.streams, self.queries = dict(streams or {}), dict(queries or {})
        self.limit, self.learns = limit, learns
        self.lost = False
        self._held = bytearray()  # a frame that is not complete: grows with what came, not with what is announced

    @property
    def held(self) -> int:
        """Bytes of a frame that is not complete; at the end of a connection, what was cut off."""
        return len(self._held)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Message | WireError]:
        """The messages that these bytes complete, in order; those from `bytes` may be views of it."""
        found: list[Message | WireError] = []
        try:
            for frame in self._frames(data if isinstance(data, bytes) else bytes(data)):
                try:
                    found.append(self._message(frame))
                except WireError as error:
                    if error.lost:
                        raise
                    found.append(error)
        except WireError as error:
            self.lost, self._held = True, bytearray()
            found.append(error)
        return found

    def _frames(self, data: bytes) -> Iterator[memoryview]:
        """Whole frames: views of the bytes that came where they lie aligned in them, else put together."""
        view, at = memoryview(data), 0
        while at < len(view) and not self.lost:
            if not self._held and at % ALIGNMENT == 0 and len(view) - at >= (whole := self._length(view[at:])):
                yield view[at : at + whole]
                at += whole
                continue
            missing = self._length(self._held) - len(self._held)
            self._held += view[at : at + missing]
            at += missing
            if len(self._held) >= PREFIX.size and len(self._held) == self._length(self._held):
                frame, self._held = self._held, bytearray()
                yield memoryview(frame).toreadonly()

    def _length(self, start: memoryview | bytearray) -> int:
        """The bytes of a frame that begins so, or of its prefix while that is not complete."""
        if len(start) < PREFIX.size:
            return PREFIX.size
        length, head = PREFIX.unpack_from(start)
        if length > self.limit:
            raise WireError(f"a frame of {length} bytes is announced; at most {self.limit} are taken", lost=True)
        if length % ALIGNMENT or not 0 < head <= min(length, MOST_BYTES):
            raise WireError(
                f"a frame of {length} bytes with {head} of header is announced; a multiple of {ALIGNMENT}, and from 1"
                f" to {MOST_BYTES} of them for the header, are wanted",
                lost=True,
            )
        return PREFIX.size + int(length)

    def _message(self, frame: memoryview) -> Message:
        payload = Payload(frame[PREFIX.size :])
        header = read(payload.take(int(PREFIX.unpack_from(frame)[1]), "the header"))
        try:
            return self._read(header, payload)
        except WireError as error:
            match header.get("sequence"):
                case bool():
                    pass
                case int(sequence) if 0 <= sequence <= HIGHEST:
                    error.sequence = sequence
            raise

    def _read(self, header: Header, payload: Payload) -> Message:
        name = header["type"]
        if name in ("data", "result"):
            return read_rows(header, payload, self.streams if name == "data" else self.queries)
        payload.close()
        if name in PLAIN:
            return read_plain(header)
        if name != "schema":
            raise WireError(f"no type of frame {shown(name)}{existing(name[:SHOWN], KINDS)}")
        told = read_schemas(header)
        if self.learns:
            self.streams.update(told.streams)
            self.queries.update(told.queries)
        return told
