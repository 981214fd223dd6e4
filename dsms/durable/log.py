"""What a log of frames is: what has come in, in order, safe before it is acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """A frame as it came by the wire, or that one was refused."""

    producer: str
    sequence: int | None  # None: of what nobody numbers, as how far a stream is
    frame: bytes = b""
    ends: str | None = None  # the stream that is over with this
    refused: str | None = None  # why; then there is no frame, and it may come again under its number


class Stored(NamedTuple):
    """A frame and its place in the log."""

    offset: int
    frame: bytes


@dataclass
class Standing:
    """What is known of a producer: the last number of its that was taken in, and those that were refused."""

    taken: int = 0
    refused: dict[int, str] = field(default_factory=dict)


class Log(Protocol):
    """Frames by offsets that grow; one process writes. DsmsError says what could not be done, and then nothing was."""

    def append(self, entries: Sequence[Entry]) -> list[int | None]:
        """Store all of them or none, durable on return; the offset of each, None where it came before or is refused."""

    def read(self, after: int, size: int) -> list[Stored]:
        """Frames after an offset, at least one if there is one, and no more once they have so many bytes."""

    def sizes(self) -> Iterable[tuple[int, int]]:
        """The offset of each frame that is here, and its bytes; the oldest first."""

    def forget(self, upto: int) -> None:
        """Nobody wants the frames up to this offset again; what is known of producers stays."""

    def producers(self) -> dict[str, Standing]:
        """All producers there were."""

    def ended(self) -> Mapping[str, int]:
        """The streams that are over, and the offset at which that was said."""

    def last(self) -> int:
        """The highest offset there ever was; 0 if nothing came yet."""

    def forgotten(self) -> int:
        """The highest offset that was forgotten; 0 if nothing was."""

    def close(self) -> None:
        """Let it be."""
