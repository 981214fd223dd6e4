"""Puts result batches from several hosts into the order of their numbers, without duplicates; keeps the last ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from dsms.data.batch import Batch

KEPT_BATCHES = 256
KEPT_BYTES = 16 * 1024 * 1024


class ReorderBuffer:
    """Takes batches 1, 2, 3 … in any order and yields them in order; early ones wait, duplicates are dropped.

    Their numbers start after `since`, so that a query added again continues its numbers. `given` batches were yielded
    by another process before.
    """

    def __init__(self, since: int = 0, batches: int = KEPT_BATCHES, size: float = KEPT_BYTES, given: int = 0) -> None:
        self.since = since
        self.latest = since + given  # the number of the last yielded batch
        self._most, self._size = batches, size
        self._early: dict[int, Batch] = {}
        self._kept: deque[tuple[int, Batch]] = deque()
        self._bytes = 0.0

    @property
    def count(self) -> int:
        """How many batches were yielded."""
        return self.latest - self.since

    @property
    def held(self) -> int:
        """How many batches wait for an earlier one."""
        return len(self._early)

    def take(self, number: int, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """Add a batch; yields the batches that are next in order, if any."""
        if (place := self.since + number) > self.latest:
            self._early.setdefault(place, batch)
        while (found := self._early.pop(self.latest + 1, None)) is not None:
            self.latest += 1
            self._keep(self.latest, found)
            yield self.latest, found

    def restore(self, number: int, batch: Batch) -> None:
        """Keep a batch that another process has yielded, for late subscribers; call it in order."""
        self._keep(number, batch)

    def after(self, number: int | None) -> list[tuple[int, Batch]]:
        """The kept batches after a number; none if that number was never yielded."""
        if number is None or number > self.latest:
            return []
        return [(each, batch) for each, batch in self._kept if each > number]

    def _keep(self, number: int, batch: Batch) -> None:
        self._kept.append((number, batch))
        self._bytes += batch.memory()
        while len(self._kept) > self._most or self._bytes > self._size:
            self._bytes -= self._kept.popleft()[1].memory()
