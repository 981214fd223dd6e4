"""The messages of the wire protocol, and the error for a frame that is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.errors import DsmsError

PROTOCOL_VERSION = 1
QUOTED_CHARACTERS = 60  # of a received value that an error message repeats


class WireError(DsmsError):
    """A message that must not be sent, or a received frame that is refused.

    `lost`: the error is fatal to the connection, for example because the start of the next frame is unknown; otherwise
    only this frame is refused. `sequence` is the frame's, if it could be read; `query` that of a subscription.
    """

    def __init__(
        self, reason: str, *, lost: bool = False, sequence: int | None = None, query: str | None = None
    ) -> None:
        self.reason, self.lost, self.sequence, self.query = reason, lost, sequence, query
        super().__init__(reason)


def quote(value: object) -> str:
    """Return a received value as an error message shows it, at most a line long."""
    if isinstance(value, str | bytes):
        return repr(value[:QUOTED_CHARACTERS]) + ("…" if len(value) > QUOTED_CHARACTERS else "")
    if isinstance(value, list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a connection: the client's producer name and token."""

    producer: str
    token: str = field(repr=False)  # never in a log
    version: int = PROTOCOL_VERSION


@dataclass(frozen=True, slots=True)
class Schemas:
    """The schemas of streams to push into and of queries to subscribe to."""

    streams: Mapping[str, Schema] = field(default_factory=dict)
    queries: Mapping[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Rows for a stream. If `batch.arrived` is an array, it is sent: the time each row was due."""

    stream: str
    sequence: int
    batch: Batch
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Result rows of a query, with `ts` and `sign`."""

    query: str
    sequence: int
    batch: Batch
    schema: Schema


@dataclass(frozen=True, slots=True)
class Ack:
    """All of the producer's frames up to this one are admitted or refused."""

    producer: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Error:
    """A refusal and its reason: of a data frame if `sequence` is set, of a subscription if `query` is, else general."""

    reason: str
    sequence: int | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A request for a query's results: future ones, or all that the system still holds after a number."""

    query: str
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The end of a subscription."""

    query: str


@dataclass(frozen=True, slots=True)
class Advance:
    """A promise that no later row on the stream has a lower timestamp; also shows that the source is alive."""

    stream: str
    upto: int


@dataclass(frozen=True, slots=True)
class End:
    """The end of a stream."""

    stream: str


@dataclass(frozen=True, slots=True)
class Bye:
    """The last message of a connection."""


RowsMessage = Data | Result
HeaderOnlyMessage = Hello | Ack | Error | Subscribe | Unsubscribe | Advance | End | Bye
Message = HeaderOnlyMessage | Schemas | RowsMessage
