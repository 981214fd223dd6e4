"""Poisson streams whose rate changes: one of unit rate, its time stretched by how many tuples are expected when."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from dsms.arrivals.poisson import Poisson
from dsms.arrivals.process import BLOCK, HAIR, ORDER, Arrivals, Floats, draw

STEPS = 4096  # in which a curve is followed: a rate changes by less than half a percent from one to the next
TAIL = 16  # decays after which a flash crowd is over: a part in ten million of it is left


class Stretched(Arrivals):
    """A Poisson stream of unit rate whose time runs as fast as tuples are expected."""

    def __init__(self, rate: float, seed: int) -> None:
        super().__init__(rate)
        self._unit = Poisson(1.0, seed)

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        low = self._expected(max(0.0, start)) * (1 - HAIR)
        high = self._expected(max(0.0, stop)) * (1 + HAIR)
        first, unit = self._unit._run(low, high)
        skipped, end = np.searchsorted(unit, (low, high))
        return first + int(skipped), self._when(unit[skipped:end])

    @abstractmethod
    def _expected(self, instant: float) -> float:
        """How many tuples are expected before an instant."""

    @abstractmethod
    def _when(self, expected: Floats) -> Floats:
        """The instants before which so many are expected, each worked out by itself; these ascend."""


class Piecewise(Stretched):
    """A rate that changes at regular times (J14)."""

    def __init__(self, rates: Floats, every: float, shuffled: bool, seed: int) -> None:
        super().__init__(float(np.mean(rates)), seed)
        self._choices, self._every, self._shuffled, self._seed = rates, every, shuffled, seed
        self._rates = np.empty(0)  # of each interval
        self._sums = np.zeros(1)  # tuples expected before each interval

    def _expected(self, instant: float) -> float:
        interval = int(instant / self._every)
        while len(self._rates) <= interval:
            self._extend()
        within = max(0.0, instant - interval * self._every)
        return float(self._sums[interval] + within * self._rates[interval])

    def _when(self, expected: Floats) -> Floats:
        while len(expected) and self._sums[-1] <= expected[-1]:
            self._extend()
        interval = np.searchsorted(self._sums, expected, side="right") - 1
        found = interval * self._every + (expected - self._sums[interval]) / self._rates[interval]
        # Rounding must not carry a tuple over the first ones of the next interval.
        at_most: Floats = np.minimum(found, (interval + 1) * self._every)
        return at_most

    def _extend(self) -> None:
        """Draw the rates of another block of intervals."""
        chunk = len(self._rates) // BLOCK
        picks = np.arange(chunk * BLOCK, (chunk + 1) * BLOCK) % len(self._choices)
        if self._shuffled:
            picks = draw(self._seed, ORDER, chunk).integers(len(self._choices), size=BLOCK)
        rates = self._choices[picks]
        self._rates = np.concatenate((self._rates, rates))
        self._sums = np.concatenate((self._sums, self._sums[-1] + np.cumsum(rates * self._every)))


class Course(NamedTuple):
    """How a rate goes, in steps: until `lead` it is `level`; then so many tuples are expected before each instant.

    Instants count from `lead`. After the last comes another round, if it `recurs`, or `level` again.
    """

    instants: Floats
    expected: Floats
    level: float
    lead: float = 0.0
    recurs: bool = True


class Curved(Stretched):
    """A rate that follows a course.

    Steps rather than the curve itself: straight lines are turned round by arithmetic alone, which has the same bits on
    every machine; sines and logarithms may not.
    """

    def __init__(self, course: Course, seed: int) -> None:
        self._length, self._total = float(course.instants[-1]), float(course.expected[-1])
        super().__init__(self._total / self._length if course.recurs else course.level, seed)
        self._course = course
        spans, counts = np.diff(course.instants), np.diff(course.expected)
        # The time for one more tuple in each step: of one without any it is never asked.
        self._pace = np.divide(spans, counts, out=np.zeros_like(spans), where=counts > 0)

    def _expected(self, instant: float) -> float:
        course = self._course
        since = instant - course.lead
        if since < 0:
            return instant * course.level
        before = course.lead * course.level
        if not course.recurs and since >= self._length:
            return before + self._total + (since - self._length) * course.level
        turn = int(since / self._length) if course.recurs else 0
        within = min(max(0.0, since - turn * self._length), self._length)
        return before + turn * self._total + float(np.interp(within, course.instants, course.expected))

    def _when(self, expected: Floats) -> Floats:
        course = self._course
        since = expected - course.lead * course.level
        turn = np.maximum(0.0, np.floor(since / self._total)) if course.recurs else np.zeros_like(since)
        within = np.clip(since - turn * self._total, 0.0, self._total)
        step = np.minimum(np.searchsorted(course.expected, within, side="right") - 1, len(self._pace) - 1)
        found = course.instants[step] + (within - course.expected[step]) * self._pace[step]
        # Rounding must not carry a tuple over the first ones of the next step, or of the next round.
        found = np.minimum(found, course.instants[step + 1])
        found = course.lead + np.minimum(turn * self._length + found, (turn + 1) * self._length)
        if not course.recurs:
            after = course.lead + self._length + (since - self._total) / course.level
            found = np.where(since < self._total, found, after)
        return np.where(since < 0, np.minimum(expected / course.level, course.lead), found)


def diurnal(rate: float, amplitude: float, period: float, phase: float, seed: int) -> Curved:
    """A rate that goes up and down as a sine, by `amplitude` of its mean; `phase` is how much of a period is over."""
    swing, begun = amplitude / (2 * math.pi), math.cos(2 * math.pi * phase)
    turns = [step / STEPS for step in range(STEPS + 1)]
    waves = [turn + swing * (begun - math.cos(2 * math.pi * (turn + phase))) for turn in turns]
    # Where hardly any tuples come, rounding must not make it less than none.
    expected = np.maximum.accumulate(np.array(waves)) * (rate * period)
    return Curved(Course(np.array(turns) * period, expected, rate), seed)


class Crowd(NamedTuple):
    """How a flash crowd comes, from its beginning: it climbs in a line, to 1, and decays exponentially."""

    rise: float
    decay: float

    def sum(self, since: float) -> float:
        """What it has come to by then."""
        if since < self.rise:
            return since * since / (2 * self.rise)
        return self.rise / 2 - self.decay * math.expm1(-(since - self.rise) / self.decay)

    def instants(self, every: float) -> list[float]:
        """The steps in which it is followed until the next begins."""
        climb = [self.rise * step / 64 for step in range(64)] if self.rise else []
        steps = [*climb, *(self.rise + TAIL * self.decay * step / STEPS for step in range(STEPS + 1))]
        return steps if math.isinf(every) else [*(instant for instant in steps if instant < every), every]


def flash(rate: float, peak: float, at: float, crowd: Crowd, every: float, seed: int) -> Curved:
    """A rate that a crowd raises to `peak` times as much from `at` on; another comes `every` so often, if not never.

    What is left of a crowd when the next one comes is gone then.
    """
    instants = crowd.instants(every)
    expected = np.array([since + (peak - 1) * crowd.sum(since) for since in instants]) * rate
    return Curved(Course(np.array(instants), expected, rate, at, recurs=math.isfinite(every)), seed)
