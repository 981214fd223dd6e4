"""Generates what a hostile client may send, from a seed: frames that are valid, changed, cut or invented."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np

from dsms.config.frame_limits import UNAUTHENTICATED_FRAME_LIMIT_BYTES
from dsms.data.batch import Batch
from dsms.data.schema import DTYPES, Schema
from dsms.net.tokens import Tokens
from dsms.net.wire import (
    FRAME_LIMIT_BYTES,
    Ack,
    Advance,
    Bye,
    Data,
    Decoder,
    End,
    Error,
    Hello,
    Message,
    Result,
    Schemas,
    Subscribe,
    Unsubscribe,
    WireError,
    encode,
)
from dsms.net.wire.frames import PREFIX

TOKEN = "the-right-token"
TOKENS = Tokens.of(control=TOKEN)
REASON_LIMIT_CHARS = 2000  # of a refusal, whatever the client sent
PAIR = Schema.of({"n": "int64", "who": "string"})
ALL = Schema.of({kind: kind for kind in DTYPES})
STREAMS = {"s": PAIR, "t": ALL}
EXTREMES = (
    0,
    1,
    7,
    8,
    9,
    2**16,
    UNAUTHENTICATED_FRAME_LIMIT_BYTES,
    UNAUTHENTICATED_FRAME_LIMIT_BYTES + 8,
    FRAME_LIMIT_BYTES,
    FRAME_LIMIT_BYTES + 8,
    2**31 - 8,
    2**31,
    2**32 - 8,
    2**32 - 1,
)
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 1.5, math.nan, "", "s", "t", "data",
    "\0", "x" * 1000, b"\xff", b"", [], {}, [[]], [None] * 9, {"a": {}}, ["n", "int64", [8]], [["n", "int64", [8]]],
)  # fmt: skip
HEADS = (  # that announce more than there is, or are of an unknown type
    b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xc1",
    b"\xc7\xff\x00", b"\xd4\x01\x00", b"\x81\xa4type\xd9\x02\xff\xfe", b"\x82\xa4type\xa3bye\xa4type\xa3bye", b"\xc0",
)  # fmt: skip


def encode_message(message: Message) -> bytes:
    return b"".join(encode(message))


def rows(count: int, nulls: bool) -> Batch:
    """Rows of the stream with all types."""
    mask = {"int64?": np.arange(count) % 2 == 0, "string?": np.arange(count) % 3 == 0} if nulls else {}
    texts = np.array([f"ä{number}" for number in range(count)] + [None], dtype=object)[:-1]
    plain = {kind: np.arange(count).astype(dtype) for kind, dtype in DTYPES.items() if kind != "string"}
    return Batch.of({**plain, "string": texts, **mask})


def pairs(*numbers: int) -> Batch:
    return Batch.of({"n": np.array(numbers, np.int64), "who": np.array(["a"] * len(numbers) + [None], object)[:-1]})


class HostileClient:
    """One client; the same seed sends the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.frames = 0  # sent, without the hellos
        due = Batch(pairs(4).columns, 1, arrived=np.array([1.0]))
        self._right = [
            *(encode_message(Data("s", number, pairs(*range(number)), PAIR)) for number in range(5)),
            *(encode_message(Data("t", number, rows(number, nulls=number > 2), ALL)) for number in (1, 3, 9)),
            encode_message(Data("s", 6, due, PAIR)),
            *map(
                encode_message,
                (Advance("s", 5), End("s"), Subscribe("q", None), Subscribe("q", 7), Unsubscribe("q"), Bye()),
            ),
            *map(encode_message, (Hello("p", TOKEN), Ack("p", 3), Error("no", 1, None), Schemas(streams=STREAMS))),
            encode_message(Result("q", 1, Batch(pairs(1).columns, 1, ts=np.array([5])), PAIR)),
        ]
        self.ways: tuple[Callable[[bytes], bytes], ...] = (
            self.right, self.again, self.flipped, self.cut, self.swollen, self.announced, self.spliced, self.noise,
            self.header, self.header, self.header, self.nested, self.headless,
        )  # fmt: skip

    def hello(self, token: str = TOKEN, producer: str = "p") -> bytes:
        """A hello: valid, or in one of eight with a wrong token or something else."""
        if self.random.random() < 0.875:
            return encode_message(Hello(producer, token))
        return self.random.choice(
            [encode_message(Hello(producer, token[:-1])), encode_message(Hello("", token)), b"", self.frame()]
        )

    def frame(self) -> bytes:
        """A frame, or bytes that look like one."""
        self.frames += 1
        way = self.random.choice(self.ways)
        return way(self.random.choice(self._right))

    def pieces(self, data: bytes) -> list[bytes]:
        """The same bytes in pieces, as a socket may deliver them."""
        cuts = sorted(self.random.randrange(len(data) + 1) for _ in range(self.random.randrange(3)))
        return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    def right(self, frame: bytes) -> bytes:
        return frame

    def again(self, frame: bytes) -> bytes:
        return frame * self.random.randrange(2, 4)

    def flipped(self, frame: bytes) -> bytes:
        made = bytearray(frame)
        for _ in range(self.random.randrange(1, 5)):
            made[self.random.randrange(len(made))] ^= 1 << self.random.randrange(8)
        return bytes(made)

    def cut(self, frame: bytes) -> bytes:
        return frame[: self.random.randrange(len(frame))]

    def swollen(self, frame: bytes) -> bytes:
        at = self.random.randrange(len(frame))
        return frame[:at] + self.random.randbytes(self.random.choice([1, 7, 8, 64])) + frame[at:]

    def announced(self, frame: bytes) -> bytes:
        """A frame whose lengths do not match its content."""
        length, head = PREFIX.unpack_from(frame)
        pair = [self.random.choice(EXTREMES), head] if self.random.random() < 0.5 else [length, 0]
        return PREFIX.pack(pair[0], pair[1] or self.random.choice(EXTREMES)) + frame[PREFIX.size :]

    def spliced(self, frame: bytes) -> bytes:
        other = self.random.choice(self._right)
        return frame[: self.random.randrange(len(frame))] + other[self.random.randrange(len(other)) :]

    def noise(self, frame: bytes) -> bytes:
        return self.random.randbytes(self.random.randrange(1, 200))

    def header(self, frame: bytes) -> bytes:
        """A frame with another header before the same buffers."""
        _, head = PREFIX.unpack_from(frame)
        made = msgpack.unpackb(frame[PREFIX.size : PREFIX.size + head])
        self._change(made)
        return make_frame(msgpack.packb(made), frame[PREFIX.size + head + -head % 8 :])

    def nested(self, frame: bytes) -> bytes:
        depth = self.random.choice([5, 100, 511, 512, 1023, 1024, 1025, 50_000])
        return make_frame(b"\x81\xa4type" + b"\x91" * depth + b"\xc0")

    def headless(self, frame: bytes) -> bytes:
        return make_frame(self.random.choice(HEADS))

    def _change(self, value: Any) -> None:
        """Change, remove or add one value in a nested list or map."""
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = self.random.choice(keys)
        inner, chance = value[key], self.random.random()
        if isinstance(inner, list | dict) and inner and chance < 0.7:
            self._change(inner)
        elif isinstance(inner, int) and chance < 0.5:
            value[key] = max(-(2**63), min(2**64 - 1, inner + self.random.choice([-8, -1, 1, 8, 2**31, 2**62])))
        elif chance < 0.8:
            value[key] = self.random.choice(VALUES)
        elif chance < 0.9:
            del value[key]
        elif isinstance(value, dict):
            value[self.random.choice(["type", "rows", "token", "x"])] = self.random.choice(VALUES)
        else:
            value.append(inner)


def make_frame(header: bytes, buffers: bytes = b"") -> bytes:
    """Encode a frame with correct lengths."""
    body = header + bytes(-len(header) % 8) + buffers
    return PREFIX.pack(len(body), len(header)) + body


def check_message(found: Message | WireError) -> str:
    """Check one decoded item and name its kind: a reason must not reveal the token, a message must encode again."""
    if isinstance(found, WireError):
        assert 0 < len(found.reason) < REASON_LIMIT_CHARS
        assert TOKEN not in found.reason
        return "lost" if found.lost else "refused"
    if isinstance(found, Data):
        [again] = Decoder(STREAMS).feed(encode_message(found))
        assert isinstance(again, Data)
        assert (again.stream, again.sequence, again.batch.rows) == (found.stream, found.sequence, found.batch.rows)
        for name, column in found.batch.columns.items():
            assert len(column) == found.batch.rows
            if name in again.batch.columns or column.any():  # columns of validity without nulls are not sent
                same = again.batch.columns[name]
                assert np.array_equal(column, same) if column.dtype == object else column.tobytes() == same.tobytes()
        return "taken"
    assert isinstance(found, Hello | Bye) or encode_message(found)
    return type(found).__name__
