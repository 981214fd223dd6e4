"""What happened, in columns: the engine writes a few numbers an event, measures read thousands of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

FOLD = 1 << 12  # turns after which the columns are handed on and begun anew, so that no history is kept
ROWS = 1 << 20  # results after which they are, too


class Alike(Sequence[float]):
    """The arrivals of results that all arrived at one instant: one number, however many they are."""

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
            return Alike(self.arrived, len(range(self.many)[place]))
        return [self.arrived][0 if -self.many <= place < self.many else 1]


class Journal:
    """The latest stretch of a run."""

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
        self.rows = 0  # of results in batches
        self.longest_wait = 0.0  # of any tuple in a queue, in the whole run
        self.instants: list[float] = []  # at which something changed
        self.held: list[float] = []  # tuples in memory up to that instant, since the one before
        self.held_bytes: list[float] = []  # likewise, where tuples differ in size
        self.segments: list[int] = []  # of each turn, its segment
        self.result_query: list[int] = []  # of each result, its query's place in the plan
        self.result_arrived: list[float] = []  # when the system first saw what it needed
        self.result_left: list[float] = []
        self.result_runs: list[tuple[int, float, float, int]] = []  # many alike: query, left, arrived, how many
        self.result_batches: list[tuple[int, float, NDArray[np.float64]]] = []  # many at once: query, left, arrived

    def results(self, query: int, now: float, arrivals: Sequence[float]) -> None:
        """Results have left."""
        if type(arrivals) is tuple:  # by far the most in a simulation
            for arrived in arrivals:
                self.result_query.append(query)
                self.result_left.append(now)
                self.result_arrived.append(arrived)
        elif isinstance(arrivals, Alike):
            self.result_runs.append((query, now, arrivals.arrived, arrivals.many))
        elif isinstance(arrivals, np.ndarray):
            self.result_batches.append((query, now, arrivals))
            self.rows += len(arrivals)
        else:
            self.results(query, now, tuple(arrivals))

    def fold(self, readers: Sequence[Callable[[Journal], None]]) -> None:
        """Let everyone read it, then begin anew."""
        for read in readers:
            read(self)
        self.rows = 0
        for name in self.COLUMNS:
            getattr(self, name).clear()
