"""Results that come from several places, by their numbers: each once, in order, and the last of them kept a while."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from dsms.batch import Batch

BATCHES = 256
BYTES = 16 * 1024 * 1024


class InOrder:
    """Takes batches 1, 2, 3 … as they come and gives them in order; what comes early waits, what came before goes.

    They are given numbers after `since`: so that those of a query that was there before go on. Where another process
    has `given` some, they go on after those.
    """

    def __init__(self, since: int = 0, batches: int = BATCHES, size: float = BYTES, given: int = 0) -> None:
        self.since = since
        self.latest = since + given  # the number of the last one that was given
        self._most, self._size = batches, size
        self._early: dict[int, Batch] = {}
        self._kept: deque[tuple[int, Batch]] = deque()
        self._bytes = 0.0

    @property
    def count(self) -> int:
        """How many were given."""
        return self.latest - self.since

    @property
    def held(self) -> int:
        """Batches that wait for one before them."""
        return len(self._early)

    def take(self, number: int, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """Those that are next now, if any."""
        if (place := self.since + number) > self.latest:
            self._early.setdefault(place, batch)
        while (found := self._early.pop(self.latest + 1, None)) is not None:
            self.latest += 1
            self._keep(self.latest, found)
            yield self.latest, found

    def recall(self, number: int, batch: Batch) -> None:
        """One that was given by another process, for those who have not got it yet; in order."""
        self._keep(number, batch)

    def after(self, number: int | None) -> list[tuple[int, Batch]]:
        """What is still kept of those after a number; none if that is one that was never given."""
        if number is None or number > self.latest:
            return []
        return [(each, batch) for each, batch in self._kept if each > number]

    def _keep(self, number: int, batch: Batch) -> None:
        self._kept.append((number, batch))
        self._bytes += batch.memory()
        while len(self._kept) > self._most or self._bytes > self._size:
            self._bytes -= self._kept.popleft()[1].memory()
