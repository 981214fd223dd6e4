"""Encodes messages as frames, and decodes frames from a byte stream that arrives in pieces of any size.

A frame has a prefix, a header and the buffers of columns. The prefix is two little-endian uint32: the bytes that
follow it, and the bytes of the header. The header is one msgpack map. Zeros pad header and buffers to eight bytes each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from dsms.config.frame_limits import FRAME_LIMIT_BYTES, FRAME_LIMIT_MAX_BYTES
from dsms.data.schema import Schema
from dsms.errors import existing
from dsms.net.wire.columns import ALIGNMENT_BYTES, Buffer, PayloadReader, count_padding_bytes
from dsms.net.wire.headers import (
    HEADER_LIMIT_BYTES,
    HEADER_ONLY_MESSAGES,
    INT64_MAX,
    Header,
    decode_header,
    encode_header,
    make_header,
    make_schemas_header,
    parse_message,
    parse_schemas,
)
from dsms.net.wire.messages import QUOTED_CHARACTERS, Data, Message, Result, Schemas, WireError, quote
from dsms.net.wire.row_frames import decode_rows, encode_rows

PREFIX = struct.Struct("<II")
MESSAGE_TYPES = (*HEADER_ONLY_MESSAGES, "schema", "data", "result")


def encode(message: Message, limit: int = FRAME_LIMIT_BYTES) -> list[Buffer]:
    """Return the parts of a message's frame, to be written in order; columns of numbers are views, not copies."""
    buffers: list[Buffer] = []
    if isinstance(message, Data | Result):
        header, buffers = encode_rows(message)
    else:
        header = make_schemas_header(message) if isinstance(message, Schemas) else make_header(message)
    head = encode_header(header)
    parts: list[Buffer] = [head + bytes(count_padding_bytes(len(head)))]
    for buffer in buffers:
        parts.append(buffer)
        if fill := count_padding_bytes(len(buffer)):
            parts.append(bytes(fill))
    length = sum(map(len, parts))
    if length > (maximum := min(limit, FRAME_LIMIT_MAX_BYTES)):
        raise WireError(f"{header['type']} frame: {length} bytes; the limit is {maximum}: send smaller batches")
    parts[0] = PREFIX.pack(length, len(head)) + bytes(parts[0])
    return [part for part in parts if len(part)]


class Decoder:
    """Turns bytes into messages; a frame it refuses becomes a WireError in the same place.

    `streams` and `queries` are the schemas that data and results must have. With `learns` it adds the schemas that the
    other side sends: only for a side that trusts the other. After an error with `lost` it reads nothing more.
    """

    def __init__(
        self,
        streams: Mapping[str, Schema] | None = None,
        queries: Mapping[str, Schema] | None = None,
        limit: int = FRAME_LIMIT_BYTES,
        learns: bool = False,
    ) -> None:
        if not 0 < limit <= FRAME_LIMIT_MAX_BYTES:
            raise WireError(f"a limit of {limit} bytes a frame; it must be from 1 to {FRAME_LIMIT_MAX_BYTES}")
        self.streams, self.queries = dict(streams or {}), dict(queries or {})
        self.limit, self.learns = limit, learns
        self.lost = False
        self._held = bytearray()  # an incomplete frame: grows with the bytes received, not with the length announced

    @property
    def held(self) -> int:
        """Bytes held of an incomplete frame; at the end of a connection, those of a frame that was cut off."""
        return len(self._held)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Message | WireError]:
        """Return the messages that these bytes complete, in order; if `data` is `bytes`, they may be views of it."""
        messages: list[Message | WireError] = []
        try:
            for frame in self._frames(data if isinstance(data, bytes) else bytes(data)):
                try:
                    messages.append(self._message(frame))
                except WireError as error:
                    if error.lost:
                        raise
                    messages.append(error)
        except WireError as error:
            self.lost, self._held = True, bytearray()
            messages.append(error)
        return messages

    def _frames(self, data: bytes) -> Iterator[memoryview]:
        """Yield complete frames: views of `data` where the frame is whole and aligned in it, else a copy."""
        view, at = memoryview(data), 0
        while at < len(view) and not self.lost:
            if not self._held and at % ALIGNMENT_BYTES == 0 and len(view) - at >= (whole := self._length(view[at:])):
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
        """Return the length of the frame that starts with these bytes; while its prefix is incomplete, the prefix's."""
        if len(start) < PREFIX.size:
            return PREFIX.size
        length, head = PREFIX.unpack_from(start)
        if length > self.limit:
            raise WireError(f"frame of {length} bytes announced; the limit is {self.limit}", lost=True)
        if length % ALIGNMENT_BYTES or not 0 < head <= min(length, HEADER_LIMIT_BYTES):
            raise WireError(
                f"frame of {length} bytes with a header of {head} announced; expected a multiple of {ALIGNMENT_BYTES}"
                f" with a header of 1 to {HEADER_LIMIT_BYTES}",
                lost=True,
            )
        return PREFIX.size + int(length)

    def _message(self, frame: memoryview) -> Message:
        payload = PayloadReader(frame[PREFIX.size :])
        header = decode_header(payload.take(int(PREFIX.unpack_from(frame)[1]), "the header"))
        try:
            return self._read(header, payload)
        except WireError as error:
            match header.get("sequence"):
                case bool():
                    pass
                case int(sequence) if 0 <= sequence <= INT64_MAX:
                    error.sequence = sequence
            raise

    def _read(self, header: Header, payload: PayloadReader) -> Message:
        name = header["type"]
        if name in ("data", "result"):
            return decode_rows(header, payload, self.streams if name == "data" else self.queries)
        payload.close()
        if name in HEADER_ONLY_MESSAGES:
            return parse_message(header)
        if name != "schema":
            raise WireError(f"no frame type {quote(name)}{existing(name[:QUOTED_CHARACTERS], MESSAGE_TYPES)}")
        schemas = parse_schemas(header)
        if self.learns:
            self.streams.update(schemas.streams)
            self.queries.update(schemas.queries)
        return schemas
