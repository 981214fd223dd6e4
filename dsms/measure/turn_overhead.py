"""Measures what turns take besides their work: dead time per turn and per hop, and how much longer work lasts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.engine.observers import Observer
from dsms.plan.hosts import number_hosts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsms.engine.engine import Engine
    from dsms.engine.runners.runner import Step
    from dsms.plan.segment import Segment

MAX_TURN_GAP_S = 1.0  # a longer gap between two turns is no overhead: the run was paused, or the machine slept
FLUSH_TURNS = 512  # turns measured at once
FORGET_TURNS = 1 << 14  # after as many, older turns count half
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

        Where hops do not vary, they are part of the turn.
        """
        if not self.turns:
            return NO_OVERHEAD
        work, hops, lasted = means = self._sums / self.turns
        squares = self._products / self.turns
        spread = squares - np.outer(means, means)
        (ww, wh), (_, hh), (wl, hl) = spread[0, :2], spread[1, :2], spread[2, :2]
        determinant = ww * hh - wh * wh
        if hh > LEAST_SPREAD * squares[1, 1] and determinant > LEAST_SPREAD * ww * hh:
            stretch, hop = (wl * hh - hl * wh) / determinant, (hl * ww - wl * wh) / determinant
            figures = (lasted - stretch * work - hop * hops, hop, stretch)
            if min(figures) >= -ROUNDING * lasted:
                turn, hop, stretch = (max(0.0, float(figure)) for figure in figures)
                return TurnOverhead(turn, hop, stretch, round(self.turns))
        stretch = wl / ww if ww > 1e-12 * max(squares[0, 0], 1e-300) else 1.0
        stretch = lasted / work if stretch * work > lasted else max(stretch, 0.0)
        return TurnOverhead(float(max(0.0, lasted - stretch * work)), 0.0, float(stretch), round(self.turns))


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
