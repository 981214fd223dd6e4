"""Merges the batches of several file sources by timestamp, so that no stream gets far ahead of another."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, Batch

Heap = list[tuple[int, int]]


@dataclass(frozen=True)
class SourceMerge:
    """Yields all batches: sources with a timestamp column by their first rows, the others round-robin between them.

    A join then never holds one whole file while it waits for the other. Batches of one source stay in order.
    """

    sources: Mapping[str, Iterable[Batch]]
    timestamps: Mapping[str, str | None]  # the timestamp column of each stream; None or absent: it has none

    def __iter__(self) -> Iterator[tuple[str, Batch]]:
        timed = {stream: column for stream in self.sources if (column := self.timestamps.get(stream)) is not None}
        turns: list[Iterator[tuple[str, Batch]]] = [self._by_time(timed)] if timed else []
        turns += [self._of(stream) for stream in self.sources if stream not in timed]
        while turns:
            left = []
            for turn in turns:
                if (item := next(turn, None)) is not None:
                    left.append(turn)
                    yield item
            turns = left

    def _of(self, stream: str) -> Iterator[tuple[str, Batch]]:
        return ((stream, batch) for batch in self.sources[stream])

    def _by_time(self, timed: Mapping[str, str]) -> Iterator[tuple[str, Batch]]:
        """Hold one batch of each source, and yield the one with the earliest first row; ties in the plan's order."""
        streams = list(timed)
        rest = [iter(self.sources[stream]) for stream in streams]
        held: dict[int, Batch] = {}
        heap: Heap = []

        def hold(place: int, since: int) -> None:
            batch = next(rest[place], None)
            if batch is not None:
                held[place] = batch
                heapq.heappush(heap, (_first_timestamp(batch, timed[streams[place]], since), place))

        for place in range(len(streams)):
            hold(place, np.iinfo(np.int64).min)
        while heap:
            instant, place = heapq.heappop(heap)
            yield streams[place], held.pop(place)
            hold(place, instant)


def _first_timestamp(batch: Batch, column: str, since: int) -> int:
    """Return the first timestamp that is not null, or `since`, that of the batch before, if all are null."""
    values = batch.columns[column]
    known = np.flatnonzero(~batch.columns.get(column + NULLS_SUFFIX, np.zeros(len(values), dtype=bool)))
    return int(values[known[0]]) if len(known) else since
