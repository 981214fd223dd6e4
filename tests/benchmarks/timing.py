"""Times contenders that run by turns, so that other load on the machine slows all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

Answer = TypeVar("Answer")
Contender = Callable[[], float]  # does its work once, asserts it, answers the seconds it took for a unit of it


def measure_time(work: Callable[[], Answer]) -> tuple[float, Answer]:
    """Return the processor time of some work, and its answer; garbage of earlier work is collected first."""
    gc.collect()
    start = time.process_time()
    answer = work()
    return time.process_time() - start, answer


@dataclass(frozen=True)
class Timings:
    """Seconds a unit of work took, repetition by repetition."""

    each: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.each)

    @property
    def rate(self) -> str:
        """Units a second."""
        return f"{1 / self.median:,.0f}/s {self._spread}"

    @property
    def micros(self) -> str:
        """Time a unit."""
        return f"{self.median * 1e6:.2f} µs {self._spread}"

    @property
    def _spread(self) -> str:
        return f"±{(max(self.each) - min(self.each)) / 2 / self.median:.0%}"


def interleave(contenders: Mapping[str, Contender], repetitions: int) -> dict[str, Timings]:
    """Run each contender once per round; every other round runs in the opposite order."""
    each: dict[str, list[float]] = {name: [] for name in contenders}
    for repetition in range(repetitions):
        for name in list(contenders)[:: -1 if repetition % 2 else 1]:
            each[name].append(contenders[name]())
    return {name: Timings(tuple(seconds)) for name, seconds in each.items()}
