"""Pieces of a load that several tasks send go one after the other: a task waits until the piece before is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dsms.clock import stopwatch
from dsms.errors import FailedError

GLANCE = 0.005  # seconds between two looks
PATIENCE = 60.0  # seconds; a task that waits for one that has no room to run must give way


@dataclass(frozen=True)
class Turns:
    """A folder with a file for every piece that is sent: pieces are windows, cut into partitions, by lanes in turn.

    Tasks see it only where they share a file system with whoever drives them.
    """

    folder: str
    lane: int
    lanes: int
    partitions: int

    def place(self, micro_batch: int, partition: int) -> int:
        """The number of a piece; a micro-batch is a window."""
        return (micro_batch * self.lanes + self.lane) * self.partitions + partition

    def wait(self, place: int, nap: Callable[[float], object]) -> None:
        """Until the piece before this is sent; not for ever."""
        before, begun = self._file(place - 1), stopwatch()
        while place and not before.exists():
            if stopwatch() - begun > PATIENCE:
                raise FailedError(f"piece {place} of the load waits for the one before: not sent after {PATIENCE:g} s")
            nap(GLANCE)

    def done(self, place: int) -> None:
        """This piece is sent, and acknowledged."""
        self._file(place).touch()

    def _file(self, place: int) -> Path:
        return Path(self.folder) / str(place)
