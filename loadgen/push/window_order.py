"""Orders the pieces of a load across tasks: a task waits until the piece before its own is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dsms.clock import monotonic_s
from dsms.errors import FailedError

POLL_INTERVAL_S = 0.005
WAIT_TIMEOUT_S = 60.0  # a task that waits for one that Spark has no slot to run must give up its own


@dataclass(frozen=True)
class WindowOrder:
    """A folder with one file per piece that is sent; a piece is one partition of a window, and lanes take turns.

    It works only if tasks share a file system with the driver.
    """

    folder: str
    lane: int
    lanes: int
    partitions: int

    def place(self, micro_batch: int, partition: int) -> int:
        """The number of a piece in the order of time; a micro-batch is one window."""
        return (micro_batch * self.lanes + self.lane) * self.partitions + partition

    def wait(self, place: int, sleep: Callable[[float], object]) -> None:
        """Wait until the piece before this one is sent; raises after a timeout."""
        before, start = self._file(place - 1), monotonic_s()
        while place and not before.exists():
            if monotonic_s() - start > WAIT_TIMEOUT_S:
                raise FailedError(
                    f"piece {place} of the load has waited {WAIT_TIMEOUT_S:g} s for a task to send piece {place - 1}"
                )
            sleep(POLL_INTERVAL_S)

    def mark_sent(self, place: int) -> None:
        """Record that this piece is sent and acknowledged."""
        self._file(place).touch()

    def _file(self, place: int) -> Path:
        return Path(self.folder) / str(place)
