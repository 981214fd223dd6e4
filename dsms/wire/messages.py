"""What can be said over the wire, and the error for what cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsms.batch import Batch
from dsms.errors import DsmsError
from dsms.schema import Schema

VERSION = 1
SHOWN = 60  # characters of a stranger's value that a reason repeats


class WireError(DsmsError):
    """Something that is not to be sent, or came and is refused.

    `lost`: where the next frame begins is not known, so the connection cannot go on; otherwise only this frame is
    refused. `sequence` is the frame's own, where it could be read; `query` is the one that a wish was about.
    """

    def __init__(
        self, reason: str, *, lost: bool = False, sequence: int | None = None, query: str | None = None
    ) -> None:
        self.reason, self.lost, self.sequence, self.query = reason, lost, sequence, query
        super().__init__(reason)


def shown(value: object) -> str:
    """A value as a reason repeats it: never longer than a line, whatever was sent."""
    if isinstance(value, str | bytes):
        return repr(value[:SHOWN]) + ("…" if len(value) > SHOWN else "")
    if isinstance(value, list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame of a connection: who speaks."""

    producer: str
    token: str = field(repr=False)  # never in a log
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Schemas:
    """The columns of streams that may be pushed into, and of queries subscribed to."""

    streams: Mapping[str, Schema] = field(default_factory=dict)
    queries: Mapping[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Rows for a stream; where `batch.arrived` is one value a row, that is when they were due, else it is not sent."""

    stream: str
    sequence: int
    batch: Batch
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Rows of a query's answer, with `ts` and `sign`."""

    query: str
    sequence: int
    batch: Batch
    schema: Schema


@dataclass(frozen=True, slots=True)
class Ack:
    """The producer's frames up to this one are safe."""

    producer: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Error:
    """Something was refused, and why: a data frame by its sequence, a subscription by its query, else what follows."""

    reason: str
    sequence: int | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Credit:
    """How many more frames, and bytes in all, may be sent."""

    frames: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Results of this query are wanted: those to come, or all that are still there after a number."""

    query: str
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """They no longer are."""

    query: str


@dataclass(frozen=True, slots=True)
class Advance:
    """No row that follows on the stream has a lower timestamp; also a sign of life."""

    stream: str
    upto: int


@dataclass(frozen=True, slots=True)
class End:
    """Nothing follows on the stream."""

    stream: str


@dataclass(frozen=True, slots=True)
class Bye:
    """The last frame of a connection."""


Rows = Data | Result
Plain = Hello | Ack | Error | Credit | Subscribe | Unsubscribe | Advance | End | Bye
Message = Plain | Schemas | Rows
