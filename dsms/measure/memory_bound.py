"""MemoryBound: computes the least memory that any scheduler could hold now, on the engine's own arrivals.

Exact where tuples are fractional, selectivities are as declared and every path has a stream of its own. Where several
readers share a tuple, each counts an equal part of it, and where streams merge no tuple waits for another: still a
bound, but perhaps one that no scheduler can reach. With measured costs and selectivities it is an estimate.
"""

from __future__ import annotations

import math

from dsms.charts import ChartPiece, FluidModel, Forks, partition
from dsms.data.journal import Journal
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.statistics import Statistics
from dsms.plan.graph import Plan
from dsms.plan.operator_trees import build_trees, count_path_operators

MAX_PATH_OPERATORS = 5_000  # on all paths of a plan together; above it there is no bound
REDRAW_RATIO = 0.05  # relative change of a cost or selectivity that redraws the charts


class MemoryBound(Observer):
    """Follows an engine's arrivals and clock, not its decisions; idle time counts as time to work."""

    trusted = True
    _engine: Engine  # set by attach

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: list[tuple[float, float]] = []  # by station: cost and selectivity in the charts
        self._fluid: FluidModel[str] | None = None
        self._last = 0.0  # the fluid model has worked up to this instant

    def attach(self, engine: Engine) -> None:
        self._engine, self._budget = engine, engine.clock.budget
        if self._fluid is None and count_path_operators(self._plan) <= MAX_PATH_OPERATORS:
            self._last = engine.clock.now()
            self._draw()

    def arrive(self, now: float, stream: int, count: int) -> None:
        if self._fluid is None:
            return
        buffer = self._engine.ledger.streams[stream]
        if self._engine.ledger.held <= count * buffer.copies:  # the engine is empty, so the model must be
            self._fluid.clear()
        self.advance(now)
        self._fluid.add(stream, count)

    def read(self, journal: Journal) -> None:
        if self._fluid is not None and self._is_outdated():
            self.advance(self._engine.clock.now())
            self._draw()

    def advance(self, now: float) -> None:
        """Let the model work up to this instant."""
        if self._fluid is not None and now > self._last:
            self._fluid.work((now - self._last) * self._budget)
            self._last = now

    @property
    def tuples(self) -> float | None:
        """The bound in tuples at the last instant; None: the plan is too large."""
        return None if self._fluid is None else self._fluid.held

    def migrate(self, plan: Plan) -> MemoryBound:
        """Return the bound for another plan; tuples of streams that stay are kept."""
        after = MemoryBound(plan)
        if self._fluid is not None and count_path_operators(plan) <= MAX_PATH_OPERATORS:
            after._engine, after._budget, after._last = self._engine, self._budget, self._last
            after._fluid = FluidModel(build_charts(plan, Statistics(plan)))
            places = {stream.name: place for place, stream in enumerate(plan.streams)}
            here = enumerate(self._plan.streams)
            after._fluid.migrate_from(self._fluid, {place: places[s.name] for place, s in here if s.name in places})
        return after

    def _is_outdated(self) -> bool:
        """Return whether the estimates have moved away from those in the charts."""
        if not self._known:
            return True
        return any(
            not math.isclose(a, b, rel_tol=REDRAW_RATIO)
            for known, figures in zip(
                self._known, _costs_and_selectivities(self._plan, self._engine.statistics), strict=True
            )
            for a, b in zip(known, figures, strict=True)
        )

    def _draw(self) -> None:
        before, statistics = self._fluid, self._engine.statistics
        self._known = _costs_and_selectivities(self._plan, statistics)
        self._fluid = FluidModel(build_charts(self._plan, statistics))
        if before is not None:
            self._fluid.migrate_from(before, {place: place for place in range(len(self._plan.streams))})


def build_charts(plan: Plan, statistics: Statistics, sized: bool = False) -> list[list[ChartPiece[str]]]:
    """Return, by stream, the lower envelope of all work on one of its tuples, in tuples or bytes.

    Start-up costs are left out: a scheduler that takes large batches hardly pays them.
    """
    trees = build_trees(
        plan,
        statistics.of,
        lambda estimate: estimate.marginal_cost,
        lambda station: station.size if sized else 1.0,
    )
    forks: Forks = "split" if plan.settings.buffers == "shared" else "private"
    charts = []
    for stream in plan.streams:
        readers = [trees[station.index] for station in stream.consumers]
        pieces = partition(readers, size=stream.size if sized else 1.0, memory=1, forks=forks)
        charts.append([ChartPiece(tuple(s.name for s in piece.members), piece.time, piece.gain) for piece in pieces])
    return charts


def _costs_and_selectivities(plan: Plan, statistics: Statistics) -> list[tuple[float, float]]:
    return [(estimate.marginal_cost, estimate.selectivity) for estimate in map(statistics.of, plan.stations)]
