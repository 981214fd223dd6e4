"""Journal: the engine appends a few numbers per event, and observers read thousands of events as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

FLUSH_TURNS = 1 << 12  # the engine flushes the columns after this many turns
FLUSH_RESULTS = 1 << 20  # or this many results


class RepeatedValue(Sequence[float]):
    """A sequence of one value repeated: the arrivals of results that arrived at one instant."""

    __slots__ = ("arrived", "many")

    def __init__(self, arrived: float, many: int) -> None:
        self.arrived, self.many = arrived, many

    def __len__(self) -> int:
        return self.many

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[float]: ...
    def __getitem__(self, place: int | slice) -> float | Sequence[float]:
        if isinstance(place, slice):
            return RepeatedValue(self.arrived, len(range(self.many)[place]))
        return [self.arrived][0 if -self.many <= place < self.many else 1]


class Journal:
    """The part of a run since the last flush."""

    COLUMNS = (
        "held",
        "held_bytes",
        "instants",
        "result_arrived",
        "result_left",
        "result_query",
        "result_batches",
        "result_runs",
        "segments",
    )
    __slots__ = (*COLUMNS, "longest_wait", "rows")

    def __init__(self) -> None:
        self.rows = 0  # results in batches
        self.longest_wait = 0.0  # of any tuple in a queue, over the whole run
        self.instants: list[float] = []  # at which memory changed
        self.held: list[float] = []  # tuples in memory before that instant
        self.held_bytes: list[float] = []  # bytes in memory before that instant, where sizes differ
        self.segments: list[int] = []  # by turn: the segment's serial
        self.result_query: list[int] = []  # by result: its query's index
        self.result_arrived: list[float] = []  # by result: when its input arrived
        self.result_left: list[float] = []
        self.result_runs: list[tuple[int, float, float, int]] = []  # equal results: query, left, arrived, count
        self.result_batches: list[
            tuple[int, float, NDArray[np.float64]]
        ] = []  # results of one step: query, left, arrivals

    def results(self, query: int, now: float, arrivals: Sequence[float]) -> None:
        """Record results that leave at this instant."""
        if type(arrivals) is tuple:  # most results of a simulation
            for arrived in arrivals:
                self.result_query.append(query)
                self.result_left.append(now)
                self.result_arrived.append(arrived)
        elif isinstance(arrivals, RepeatedValue):
            self.result_runs.append((query, now, arrivals.arrived, arrivals.many))
        elif isinstance(arrivals, np.ndarray):
            self.result_batches.append((query, now, arrivals))
            self.rows += len(arrivals)
        else:
            self.results(query, now, tuple(arrivals))

    def fold(self, readers: Sequence[Callable[[Journal], None]]) -> None:
        """Pass the journal to the readers, then clear it."""
        for read in readers:
            read(self)
        self.rows = 0
        for name in self.COLUMNS:
            getattr(self, name).clear()
