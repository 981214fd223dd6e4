"""The least that any scheduler could hold now, beside the real one on the same arrivals: how far it is from that.

Exact where tuples are fractional, selectivities are as declared and every path has a stream of its own. Where several
read one tuple, each counts for its part of it, and where streams meet nobody waits for another: a bound still, but one
that perhaps nobody could reach. Where cost and selectivity are measured it is an estimate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dsms.charts import Fluid, Forks, Piece, partition
from dsms.journal import Journal
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.policies.by_chart import trees, unfolded
from dsms.statistics import Statistics

if TYPE_CHECKING:
    from dsms.engine import Engine

MOST = 5_000  # operators on all ways through a plan: of more there is no bound
CHANGE = 0.05  # by which part a cost or a selectivity must differ for the charts to be drawn anew


class Bound(Observer):
    """Follows an engine's arrivals and its clock, not what it does with them; an idle CPU is one that could work."""

    trusted = True
    _engine: Engine  # once it is attached

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: list[tuple[float, float]] = []  # by station: the cost and selectivity that the charts are drawn by
        self._fluid: Fluid[str] | None = None
        self._last = 0.0  # up to here time has been worked in

    def attach(self, engine: Engine) -> None:
        self._engine, self._budget = engine, engine.clock.budget
        if self._fluid is None and unfolded(self._plan) <= MOST:
            self._last = engine.clock.now()
            self._draw()

    def arrive(self, now: float, stream: int, count: int) -> None:
        if self._fluid is None:
            return
        buffer = self._engine.ledger.streams[stream]
        if self._engine.ledger.held <= count * buffer.copies:  # nothing else is there: who held more was mistaken
            self._fluid.clear()
        self.advance(now)
        self._fluid.add(stream, count)

    def read(self, journal: Journal) -> None:
        if self._fluid is not None and self._outdated():
            self.advance(self._engine.clock.now())
            self._draw()

    def advance(self, now: float) -> None:
        """Time has come to this instant."""
        if self._fluid is not None and now > self._last:
            self._fluid.work((now - self._last) * self._budget)
            self._last = now

    @property
    def tuples(self) -> float | None:
        """What had to be held at the instant that time had come to; None where nobody can say."""
        return None if self._fluid is None else self._fluid.held

    def carried(self, plan: Plan) -> Bound:
        """The same for another plan: what has come by streams that stay goes on."""
        after = Bound(plan)
        if self._fluid is not None and unfolded(plan) <= MOST:
            after._engine, after._budget, after._last = self._engine, self._budget, self._last
            after._fluid = Fluid(charts(plan, Statistics(plan)))
            places = {stream.name: place for place, stream in enumerate(plan.streams)}
            here = enumerate(self._plan.streams)
            after._fluid.like(self._fluid, {place: places[s.name] for place, s in here if s.name in places})
        return after

    def _outdated(self) -> bool:
        """Whether what is known by now differs from what the charts were drawn by."""
        if not self._known:
            return True
        return any(
            not math.isclose(a, b, rel_tol=CHANGE)
            for known, figures in zip(self._known, _figures(self._plan, self._engine.statistics), strict=True)
            for a, b in zip(known, figures, strict=True)
        )

    def _draw(self) -> None:
        before, statistics = self._fluid, self._engine.statistics
        self._known = _figures(self._plan, statistics)
        self._fluid = Fluid(charts(self._plan, statistics))
        if before is not None:
            self._fluid.like(before, {place: place for place in range(len(self._plan.streams))})


def charts(plan: Plan, statistics: Statistics, sized: bool = False) -> list[list[Piece[str]]]:
    """By stream, the lower envelope of all that is done with one of its tuples, in tuples or in bytes.

    Start-up is left out: who takes enough tuples at once hardly pays it.
    """
    grown = trees(plan, statistics, lambda known: known.each, lambda station: station.size if sized else 1.0)
    forks: Forks = "split" if plan.settings.buffers == "shared" else "private"
    found = []
    for stream in plan.streams:
        readers = [grown[station.index] for station in stream.consumers]
        pieces = partition(readers, size=stream.size if sized else 1.0, memory=1, forks=forks)
        found.append([Piece(tuple(s.name for s in piece.members), piece.time, piece.gain) for piece in pieces])
    return found


def _figures(plan: Plan, statistics: Statistics) -> list[tuple[float, float]]:
    return [(known.each, known.selectivity) for known in map(statistics.of, plan.stations)]
