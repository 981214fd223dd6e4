"""Poisson arrivals with a varying rate: stretches a stream of rate 1 by the inverse of the rate's integral."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from dsms.arrivals.poisson import Poisson
from dsms.arrivals.process import DRAW_BLOCK_TUPLES, ORDER, WINDOW_TOLERANCE, Arrivals, Floats, block_generator

CURVE_STEPS = 4096  # per curve: the rate changes by less than half a percent per step
FLASH_DECAYS = 16  # after which a flash crowd is over, at a ten-millionth of its height


class VariableRate(Arrivals):
    """A unit-rate Poisson stream whose time runs at the expected rate."""

    def __init__(self, rate: float, seed: int) -> None:
        super().__init__(rate)
        self._unit = Poisson(1.0, seed)

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        low = self._expected(max(0.0, start)) * (1 - WINDOW_TOLERANCE)
        high = self._expected(max(0.0, stop)) * (1 + WINDOW_TOLERANCE)
        first, unit = self._unit._run(low, high)
        skipped, end = np.searchsorted(unit, (low, high))
        return first + int(skipped), self._invert(unit[skipped:end])

    @abstractmethod
    def _expected(self, instant: float) -> float:
        """Return the expected number of tuples before an instant."""

    @abstractmethod
    def _invert(self, expected: Floats) -> Floats:
        """Return the instants before which these ascending numbers of tuples are expected."""


class PiecewiseRate(VariableRate):
    """A rate that changes at regular times (J14)."""

    def __init__(self, rates: Floats, every: float, shuffled: bool, seed: int) -> None:
        super().__init__(float(np.mean(rates)), seed)
        self._choices, self._every, self._shuffled, self._seed = rates, every, shuffled, seed
        self._rates = np.empty(0)  # by interval
        self._sums = np.zeros(1)  # by interval: expected tuples before it

    def _expected(self, instant: float) -> float:
        interval = int(instant / self._every)
        while len(self._rates) <= interval:
            self._extend()
        within = max(0.0, instant - interval * self._every)
        return float(self._sums[interval] + within * self._rates[interval])

    def _invert(self, expected: Floats) -> Floats:
        while len(expected) and self._sums[-1] <= expected[-1]:
            self._extend()
        interval = np.searchsorted(self._sums, expected, side="right") - 1
        found = interval * self._every + (expected - self._sums[interval]) / self._rates[interval]
        # Rounding must not move a tuple past the first ones of the next interval.
        at_most: Floats = np.minimum(found, (interval + 1) * self._every)
        return at_most

    def _extend(self) -> None:
        """Draw the rates of the next block of intervals."""
        chunk = len(self._rates) // DRAW_BLOCK_TUPLES
        picks = np.arange(chunk * DRAW_BLOCK_TUPLES, (chunk + 1) * DRAW_BLOCK_TUPLES) % len(self._choices)
        if self._shuffled:
            picks = block_generator(self._seed, ORDER, chunk).integers(len(self._choices), size=DRAW_BLOCK_TUPLES)
        rates = self._choices[picks]
        self._rates = np.concatenate((self._rates, rates))
        self._sums = np.concatenate((self._sums, self._sums[-1] + np.cumsum(rates * self._every)))


class RateCurve(NamedTuple):
    """A rate in steps: `level` until `lead`; then the expected number of tuples before each instant.

    Instants count from `lead`. After the last comes another round, if it `recurs`, or `level` again.
    """

    instants: Floats
    expected: Floats
    level: float
    lead: float = 0.0
    recurs: bool = True


class CurvedRate(VariableRate):
    """A rate that follows a curve.

    Steps rather than the curve itself: straight lines are turned round by arithmetic alone, which has the same bits on
    every machine; sines and logarithms may not.
    """

    def __init__(self, course: RateCurve, seed: int) -> None:
        self._length, self._total = float(course.instants[-1]), float(course.expected[-1])
        super().__init__(self._total / self._length if course.recurs else course.level, seed)
        self._course = course
        spans, counts = np.diff(course.instants), np.diff(course.expected)
        # Time per tuple in each step; never read for a step without tuples.
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

    def _invert(self, expected: Floats) -> Floats:
        course = self._course
        since = expected - course.lead * course.level
        turn = np.maximum(0.0, np.floor(since / self._total)) if course.recurs else np.zeros_like(since)
        within = np.clip(since - turn * self._total, 0.0, self._total)
        step = np.minimum(np.searchsorted(course.expected, within, side="right") - 1, len(self._pace) - 1)
        found = course.instants[step] + (within - course.expected[step]) * self._pace[step]
        # Rounding must not move a tuple past the first ones of the next step or round.
        found = np.minimum(found, course.instants[step + 1])
        found = course.lead + np.minimum(turn * self._length + found, (turn + 1) * self._length)
        if not course.recurs:
            after = course.lead + self._length + (since - self._total) / course.level
            found = np.where(since < self._total, found, after)
        return np.where(since < 0, np.minimum(expected / course.level, course.lead), found)


def diurnal_arrivals(rate: float, amplitude: float, period: float, phase: float, seed: int) -> CurvedRate:
    """A sine-shaped rate: `amplitude` relative to the mean, `phase` the part of a period already over."""
    swing, begun = amplitude / (2 * math.pi), math.cos(2 * math.pi * phase)
    turns = [step / CURVE_STEPS for step in range(CURVE_STEPS + 1)]
    waves = [turn + swing * (begun - math.cos(2 * math.pi * (turn + phase))) for turn in turns]
    # Near zero, rounding must not make the count negative.
    expected = np.maximum.accumulate(np.array(waves)) * (rate * period)
    return CurvedRate(RateCurve(np.array(turns) * period, expected, rate), seed)


class FlashCrowd(NamedTuple):
    """The shape of a flash crowd: it rises linearly to 1, then decays exponentially."""

    rise: float
    decay: float

    def sum(self, since: float) -> float:
        """Return its integral up to an instant."""
        if since < self.rise:
            return since * since / (2 * self.rise)
        return self.rise / 2 - self.decay * math.expm1(-(since - self.rise) / self.decay)

    def instants(self, every: float) -> list[float]:
        """Return the steps that approximate it until the next crowd."""
        climb = [self.rise * step / 64 for step in range(64)] if self.rise else []
        steps = [
            *climb,
            *(self.rise + FLASH_DECAYS * self.decay * step / CURVE_STEPS for step in range(CURVE_STEPS + 1)),
        ]
        return steps if math.isinf(every) else [*(instant for instant in steps if instant < every), every]


def flash_crowd_arrivals(rate: float, peak: float, at: float, crowd: FlashCrowd, every: float, seed: int) -> CurvedRate:
    """A rate that a crowd raises to `peak` times as much from `at` on; another comes `every` so often, if not never.

    What is left of a crowd when the next one comes is gone then.
    """
    instants = crowd.instants(every)
    expected = np.array([since + (peak - 1) * crowd.sum(since) for since in instants]) * rate
    return CurvedRate(RateCurve(np.array(instants), expected, rate, at, recurs=math.isfinite(every)), seed)
