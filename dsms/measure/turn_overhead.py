"""Measures what turns take besides their work: dead time per turn and per hop, and how much longer work lasts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.engine.observers import Observer
from dsms.plan.hosts import number_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dsms.engine.engine import Engine
    from dsms.engine.runners.runner import Step
    from dsms.plan.segment import Segment

MAX_TURN_GAP_S = 1.0  # a longer gap between two turns is no overhead: the run was paused, or the machine slept
FLUSH_TURNS = 512  # turns measured at once
FORGET_TURNS = 1 << 14  # after as many, older turns count half
MAX_STRETCH = 8.0  # more is no slower work: turns with more work have more messages
LEAST_SPREAD = 1e-9  # of a variance, by the mean square, below which it is rounding
ROUNDING = 1e-9  # of the mean length of a turn
Floats = NDArray[np.float64]


class TurnOverhead(NamedTuple):
    """The dead time of a turn and of a change of host, in the clock's time, and the factor by which work takes longer.

    A turn with `work` and `hops` lasts turn + hop * hops + stretch * work.
    """

    turn: float = 0.0
    hop: float = 0.0
    stretch: float = 1.0
    turns: int = 0  # measured


NO_OVERHEAD = TurnOverhead()


class OverheadFit:
    """Fits the length of turns, while work was waiting, to their work and their hops; keeps only sums."""

    def __init__(self) -> None:
        self.turns = 0.0
        self._sums = np.zeros(3)  # of work, hops and length
        self._products = np.zeros((3, 3))

    def add(self, work: Floats, hops: Floats, lasted: Floats) -> None:
        """Add turns: their work, how often each changed its host, and how long they lasted."""
        columns = np.stack([work, hops, lasted])
        self.turns += len(work)
        self._sums += columns.sum(axis=1)
        self._products += columns @ columns.T

    def forget_half(self) -> None:
        """Let all turns so far count half."""
        self.turns, self._sums, self._products = self.turns / 2, self._sums / 2, self._products / 2

    def fit(self) -> TurnOverhead:
        """Return the figures; none is negative, and all turns together last as long as they did.

        Where hops do not vary by themselves, they are part of the turn. Where work explains nothing, it lasts as long
        as it costs.
        """
        if not self.turns:
            return NO_OVERHEAD
        means = self._sums / self.turns
        spread = self._products / self.turns - np.outer(means, means)
        possible = [one for one in self._candidates(spread, means) if one is not None]
        turn, hop, stretch = min(possible, key=lambda one: _residual(spread, *one[1:]))
        return TurnOverhead(turn, hop, stretch, round(self.turns))

    def _candidates(self, spread: Floats, means: Floats) -> Iterator[tuple[float, float, float] | None]:
        """Yield fits of turn, hop and stretch: of all three, of hops alone, and of work alone."""
        (ww, wh, wl), (_, hh, hl), _ = spread.tolist()
        work_squares, hop_squares = self._products[0, 0] / self.turns, self._products[1, 1] / self.turns
        has_hops, has_work = hh > LEAST_SPREAD * hop_squares, ww > LEAST_SPREAD * work_squares
        determinant = ww * hh - wh * wh
        if has_hops and has_work and determinant > LEAST_SPREAD * ww * hh:
            yield _complete(means, (hl * ww - wl * wh) / determinant, (wl * hh - hl * wh) / determinant)
        if has_hops:
            yield _complete(means, (hl - wh) / hh, 1.0)
        if has_work:
            yield _complete(means, 0.0, wl / ww)
        work, _, lasted = means.tolist()
        yield max(0.0, lasted - work), 0.0, 1.0 if work <= lasted else lasted / work


def _complete(means: Floats, hop: float, stretch: float) -> tuple[float, float, float] | None:
    """Return the figures with which turns last as long as they did; None if they cannot be."""
    work, hops, lasted = means.tolist()
    figures = (lasted - hop * hops - stretch * work, hop, stretch)
    if min(figures) < -ROUNDING * lasted or stretch > MAX_STRETCH:
        return None
    return max(0.0, figures[0]), max(0.0, hop), max(0.0, stretch)


def _residual(spread: Floats, hop: float, stretch: float) -> float:
    """Return the variance of the length of turns that these figures do not explain."""
    weights = np.array([-stretch, -hop, 1.0])
    return float(weights @ spread @ weights)


class OverheadMeter(Observer):
    """Measures the turns of a running engine that the next turn followed at once."""

    trusted = True

    def __init__(self) -> None:
        self._fit = OverheadFit()
        self._rows: list[tuple[float, int, float]] = []  # work, hops and length of turns
        self._last: tuple[float, float, int] | None = None  # start, work and hops of the turn before

    def attach(self, engine: Engine) -> None:
        self._ledger, self._pace, self._last = engine.ledger, 1 / engine.clock.budget, None
        self._merges = bool(engine.ledger.merges)
        self._hosts = number_hosts(engine.plan, engine.runner.places) if engine.runner.places else []

    def arrive(self, now: float, stream: int, count: int) -> None:
        if self._merges:  # a join or union may have waited for these rows
            self._last = None

    def begin(self, now: float) -> None:
        if self._last is not None:
            start, work, hops = self._last
            if now - start - work < MAX_TURN_GAP_S:
                self._rows.append((work, hops, now - start))
                if len(self._rows) == FLUSH_TURNS:
                    self._flush()
            self._last = None

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self._ledger.held > 0:
            hosts = [self._hosts[step.queue.station.index] for step in steps] if self._hosts else []
            hops = sum(one != other for one, other in pairwise(hosts))
            self._last = start, sum(step.cost for step in steps) * self._pace, hops

    def overhead(self) -> TurnOverhead:
        """Return the figures of recent turns."""
        self._flush()
        return self._fit.fit()

    def _flush(self) -> None:
        if self._rows:
            work, hops, lasted = np.array(self._rows, np.float64).T
            self._fit.add(work, hops, lasted)
            self._rows.clear()
            if self._fit.turns >= FORGET_TURNS:
                self._fit.forget_half()
