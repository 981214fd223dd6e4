"""The interface of a write-ahead log: frames by offset, durable before they are acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class LogEntry(NamedTuple):
    """A frame as received, or the record that a frame was refused."""

    producer: str
    sequence: int | None  # None: unnumbered, such as a watermark
    frame: bytes = b""
    ends: str | None = None  # the stream that this frame ends
    refused: str | None = None  # the reason; then there is no frame, and the producer may send the number again


class LogRecord(NamedTuple):
    """A frame and its offset in the log."""

    offset: int
    frame: bytes


@dataclass
class ProducerPosition:
    """A producer's last stored sequence number, and the numbers that were refused."""

    taken: int = 0
    refused: dict[int, str] = field(default_factory=dict)


class Log(Protocol):
    """Frames by increasing offsets, written by one process; a call that raises DsmsError has changed nothing."""

    def append(self, entries: Sequence[LogEntry]) -> list[int | None]:
        """Store all entries durably or none; return each offset, None for a duplicate or a refusal."""

    def read(self, after: int, size: int) -> list[LogRecord]:
        """Frames after an offset, at least one if any exists, up to about `size` bytes."""

    def sizes(self) -> Iterable[tuple[int, int]]:
        """Offset and size in bytes of every stored frame, oldest first."""

    def truncate(self, upto: int) -> None:
        """Delete the frames up to this offset; the producers' positions stay."""

    def producers(self) -> dict[str, ProducerPosition]:
        """The position of every producer."""

    def ended(self) -> Mapping[str, int]:
        """The ended streams, with the offset of each end."""

    def last(self) -> int:
        """The highest offset ever stored; 0 for an empty log."""

    def truncated_offset(self) -> int:
        """The highest deleted offset; 0 if none was deleted."""

    def close(self) -> None:
        """Release the log's resources."""
