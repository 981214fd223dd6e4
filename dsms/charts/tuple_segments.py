"""TupleChart: splits a queue of tuples with known costs and gains into runs, the most gain per time first (MSS).

Bai, Zaniolo (SSPS 2008), section 5: from the first tuple take the run with the highest gain per time, the shortest of
several, and go on behind it; the runs of all queues by non-increasing slope are an optimal order of a batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from dsms.charts.envelope import gain_rate


class TupleRun(NamedTuple):
    """Tuples `start` up to `stop` of a queue."""

    start: int
    stop: int
    time: float
    gain: float

    @property
    def slope(self) -> float:
        return gain_rate(self.gain, self.time)


def tuple_segments(tuples: Iterable[tuple[float, float]]) -> list[TupleRun]:
    """Return the runs of tuples (time, gain) by non-increasing slope."""
    runs: list[TupleRun] = []
    for place, (time, gain) in enumerate(tuples):
        _add(runs, TupleRun(place, place + 1, time, gain))
    return runs


def _add(runs: list[TupleRun], run: TupleRun) -> None:
    """Append a tuple; a run steeper than the one before it joins that one."""
    while runs and run.slope > runs[-1].slope:
        start, _, time, gain = runs.pop()
        run = TupleRun(start, run.stop, time + run.time, gain + run.gain)
    runs.append(run)


class _Rest(NamedTuple):
    """A tuple at the front, with the tuples that were behind it at the last rebuild."""

    slope: float  # of their first run
    time: float
    gain: float


class TupleChart:
    """The slope of a queue's first run, updated as tuples enter at the back and leave at the front.

    Cutting the rest of the first run again at each pop takes quadratic time where one run is the whole queue. Here the
    tuples in front were all looked at once, from the last to the first, which gives the first run from each of them on;
    the others wait in a chart of their own. Either is done once for a tuple; the slope is a search where the two meet.
    """

    def __init__(self) -> None:
        self._front: list[_Rest] = []  # in reverse order
        self._back: list[tuple[float, float]] = []
        self._runs: list[TupleRun] = []  # of the tuples at the back
        self._before: list[tuple[float, float]] = []  # by run: time and gain of the runs before it

    def __len__(self) -> int:
        return len(self._front) + len(self._back)

    def push(self, time: float, gain: float) -> None:
        """Add a tuple at the back."""
        self._back.append((time, gain))
        _add(self._runs, TupleRun(len(self._back) - 1, len(self._back), time, gain))
        del self._before[len(self._runs) - 1 :]
        behind = (0, 0) if not self._before else self._after(len(self._before) - 1)
        self._before.append(behind)

    def pop(self) -> None:
        """Remove the tuple at the front."""
        if not self._front:
            self._look_back()
        if not self._front:
            raise IndexError("there is no tuple to leave")
        self._front.pop()

    @property
    def slope(self) -> float:
        """Return gain per time of the first run."""
        if not self._front:
            self._look_back()
        if not self._front:
            raise IndexError("a queue without tuples has no slope")
        slope, time, gain = self._front[-1]

        def enough(place: int) -> bool:
            more_time, more_gain = self._before[place]
            return not self._runs[place].slope > gain_rate(gain + more_gain, time + more_time)

        taken = bisect_left(range(len(self._runs)), True, key=enough)
        if not taken:
            return slope
        more_time, more_gain = self._after(taken - 1)
        return max(slope, gain_rate(gain + more_gain, time + more_time))

    def _after(self, place: int) -> tuple[float, float]:
        """Return time and gain of the back's runs up to and including this one."""
        (time, gain), run = self._before[place], self._runs[place]
        return time + run.time, gain + run.gain

    def _look_back(self) -> None:
        """Turn the back into the front, computing the runs from each tuple on, last tuple first."""
        runs: list[tuple[float, float]] = []  # from the current tuple on, in reverse order
        all_time: float = 0
        all_gain: float = 0
        for time, gain in reversed(self._back):
            all_time, all_gain = all_time + time, all_gain + gain
            while runs and gain_rate(runs[-1][1], runs[-1][0]) > gain_rate(gain, time):
                more_time, more_gain = runs.pop()
                time, gain = time + more_time, gain + more_gain
            runs.append((time, gain))
            self._front.append(_Rest(gain_rate(gain, time), all_time, all_gain))
        self._back, self._runs, self._before = [], [], []
