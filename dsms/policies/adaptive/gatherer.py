"""Gatherer: collects statistics of operators, queries and the plan, period by period, for each policy.

Sutherland, Raindrop thesis, chapter 3: one view per scheduling algorithm, one historic view that every value goes into
as well, one generic view of the present state. Between ticks a turn costs a comparison, and three additions a step.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsms.data.journal import Journal
from dsms.engine.engine import Engine
from dsms.engine.ledger import NO_HEAD
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy, as_stateful
from dsms.engine.runners.runner import Step
from dsms.errors import DsmsError, existing
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment
from dsms.policies.adaptive.statistic_views import StatisticColumn, StatisticsView, Values, ratio

# Of operators (eq. 3.2-3.5): `input` is the product over the inputs, the outputs there would be at selectivity 1;
# `taken` is their sum, the base of `cost`, since a join's time depends on the tuples it takes. All are per period.
# Of the plan (eq. 3.6-3.9): `age` is the time in the system per admitted tuple since the start.
STATISTICS = {
    "operator": ("input", "taken", "output", "time", "selectivity", "output_rate", "cost", "throughput", "queued"),
    "query": ("throughput", "output_rate", "queued", "delay"),
    "plan": ("throughput", "output_rate", "queued", "delay", "age"),
}
CURRENT_STATISTICS = {"operator": ("queued", "priority"), "query": ("queued",), "plan": ("queued", "bytes")}
log = logging.getLogger("dsms")


@dataclass(frozen=True)
class Statistic:
    """A user-defined statistic: `function(engine, object)` for operators and queries, `function(engine)` for the plan.

    It answers a number or, where there is none, None. `always`: after every turn, of what ran in it.
    """

    name: str
    kind: str
    function: Callable[..., float | None]
    always: bool = False

    def __post_init__(self) -> None:
        if self.kind not in STATISTICS:
            raise DsmsError(
                f"statistic {self.name!r} of kind {self.kind!r}: no such kind{existing(self.kind, STATISTICS)}"
            )
        if self.name in STATISTICS[self.kind]:
            raise DsmsError(f"{self.kind} statistic {self.name!r} exists already: choose another name")


class Gatherer(Observer):
    """Fills the views once a period while a plan runs."""

    trusted = True

    def __init__(self, plan: Plan, period: float = 1.0, statistics: Sequence[Statistic] = ()) -> None:
        self._plan, self.period = plan, period
        self._objects: dict[str, list[Any]] = {"operator": plan.stations, "query": plan.queries, "plan": [plan]}
        self._names = {
            "operator": [station.name for station in plan.stations],
            "query": [query.name for query in plan.queries],
            "plan": ["plan"],
        }
        self._known = {kind: list(names) for kind, names in STATISTICS.items()}
        self._own: list[Statistic] = []
        self.forget()
        for statistic in statistics:
            self.define(statistic)

    def attach(self, engine: Engine) -> None:
        self._engine, self._now = engine, engine.clock.now
        stations, queues = self._plan.stations, engine.ledger.queues
        self._station_of = np.array([queue.station.index for queue in queues], np.intp)
        self._query_of = np.array([station.query.index for station in stations], np.intp)
        self._sinks = np.array([station.sink for station in stations])
        self._several = [(s.index, [q.index for q in engine.ledger.inputs[s.index]]) for s in stations if s.inputs[1:]]
        self._began = self._last = self._now()
        self._held_ever, self._admitted_before = 0.0, engine.admitted
        self._begin_period()
        if engine.journal.instants:  # earlier turns do not count
            engine.fold()
            self._begin_period()
            self._held_ever = 0.0
        self.algorithm: str | None = None  # the policy that decides, as text

    def define(self, statistic: Statistic) -> None:
        """Gather a user-defined statistic from now on."""
        if statistic.name in self._known[statistic.kind]:
            raise DsmsError(f"{statistic.kind} statistic {statistic.name!r} exists already: define it once")
        self._known[statistic.kind].append(statistic.name)
        for view in (self.historic, *self.views.values()):
            view.declare(statistic.kind, statistic.name)
        self._own.append(statistic)

    def statistics(self, kind: str = "plan") -> list[str]:
        """Return the names of the statistics of this kind of object."""
        return self._known[kind]

    def view(self, algorithm: str) -> StatisticsView:
        """Return the view of one policy."""
        if algorithm not in self.views:
            raise DsmsError(f"no statistics of policy {algorithm!r}: it has not run{existing(algorithm, self.views)}")
        return self.views[algorithm]

    def snapshot(self) -> dict[str, dict[str, StatisticColumn]]:
        """Return the plan statistics by policy, and under "" of all policies, for a checkpoint."""
        return {name: view.columns("plan") for name, view in {"": self.historic, **self.views}.items()}

    def restore(self, snapshot: Mapping[str, Mapping[str, StatisticColumn]]) -> None:
        """Continue from the statistics of another gatherer."""
        self.forget()
        for name, columns in snapshot.items():
            view = self.views.setdefault(name, self._fresh()) if name else self.historic
            view.columns("plan").update(columns)

    def forget(self) -> None:
        """Clear all views."""
        self.views: dict[str, StatisticsView] = {}
        self.historic = self._fresh()

    @property
    def generic(self) -> StatisticsView:
        """Return the current queue lengths and operator priorities."""
        engine, view = self._engine, StatisticsView(self._names, CURRENT_STATISTICS, 0.0)
        queued = self._queued()
        view.add("operator", "queued", queued)
        view.add("operator", "priority", self._priorities())
        view.add("query", "queued", _sum_by_place(self._query_of, queued, len(self._plan.queries)))
        size, held = engine.ledger.size, engine.ledger.held
        view.add("plan", "queued", np.array([float(held)]))
        view.add("plan", "bytes", np.array([engine.ledger.held_bytes if size is None else held * size]))
        return view

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        taken_by, made_by, busy = self._taken, self._made, self._busy
        for queue, taken, made, cost, _, _, _ in steps:
            index = queue.index
            taken_by[index] += taken
            made_by[index] += made
            busy[index] += cost
        if self._own:
            self._always(steps)
        if self._now() >= self._due:
            self.gather()

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        if self.algorithm is None:
            self.algorithm = format_policy(before)
        if not self.flush():  # too short a period: discard it
            self._engine.fold()
            self._begin_period()
        self.algorithm = format_policy(self._engine.control.policy)

    def read(self, journal: Journal) -> None:
        if journal.instants:
            instants = np.fromiter(journal.instants, np.float64, len(journal.instants))
            spans = np.diff(instants, prepend=self._last)
            held = float(spans @ np.fromiter(journal.held, np.float64, len(journal.held)))
            self._held += held
            self._held_ever += held
            self._last = journal.instants[-1]
        if journal.result_left:
            whose = np.fromiter(journal.result_query, np.intp, len(journal.result_query))
            delays = np.subtract(journal.result_left, journal.result_arrived)
            self._delays += _sum_by_place(whose, delays, len(self._delays))
            self._results += np.bincount(whose, minlength=len(self._results))
        for query, left, since, count in journal.result_runs:
            self._delays[query] += (left - since) * count
            self._results[query] += count
        for query, left, arrived in journal.result_batches:
            self._delays[query] += float((left - arrived).sum())
            self._results[query] += len(arrived)

    def flush(self) -> bool:
        """Gather now, unless less than half a period has passed; return whether it did."""
        enough = self._now() - self._began >= self.period / 2
        if enough:
            self.gather()
        return enough

    def gather(self) -> None:
        """End the period: add its figures to the view of the deciding policy and to the historic one."""
        engine = self._engine
        engine.fold()
        now = self._now()
        span = now - self._began
        if span <= 0:
            return
        queued = self._queued()
        made = self._by_station(self._made)
        self._of_operators(queued, made)
        results = _sum_by_place(self._query_of, made * self._sinks, len(self._plan.queries))
        self._add("query", "throughput", results)
        self._add("query", "output_rate", results / span)
        self._add("query", "queued", _sum_by_place(self._query_of, queued, len(self._plan.queries)))
        self._add("query", "delay", ratio(self._delays, self._results))
        admitted = engine.admitted - self._admitted_before
        for name, value in (
            ("throughput", results.sum()),
            ("output_rate", results.sum() / span),
            ("queued", self._held / span),
            ("delay", self._delays.sum() / self._results.sum() if self._results.any() else math.nan),
            ("age", self._held_ever / admitted if admitted else math.nan),
        ):
            self._add("plan", name, np.array([float(value)]))
        for statistic in self._own:
            if not statistic.always:
                self._evaluate(statistic, range(len(self._names[statistic.kind])))
        self._begin_period()

    def _of_operators(self, queued: Values, made: Values) -> None:
        taken, busy = self._by_station(self._taken), self._by_station(self._busy)
        product = taken.copy()
        for station, queues in self._several:
            product[station] = math.prod(self._taken[queue] for queue in queues)
        self._add("operator", "input", product)
        self._add("operator", "taken", taken)
        self._add("operator", "output", made)
        self._add("operator", "time", busy)
        self._add("operator", "selectivity", ratio(made, product))
        self._add("operator", "output_rate", ratio(made, busy))
        self._add("operator", "cost", ratio(busy, taken))
        self._add("operator", "throughput", made)
        self._add("operator", "queued", queued)

    def _add(self, kind: str, statistic: str, values: Values) -> None:
        """Add values to the policy's view and to the historic one."""
        self._view().add(kind, statistic, values)
        self.historic.add(kind, statistic, values)

    def _always(self, steps: Sequence[Step]) -> None:
        for statistic in self._own:
            if statistic.always:
                ran = {step.queue.station.index for step in steps}
                if statistic.kind == "query":
                    ran = {int(self._query_of[station]) for station in ran}
                self._evaluate(statistic, [0] if statistic.kind == "plan" else sorted(ran))

    def _evaluate(self, statistic: Statistic, places: Sequence[int]) -> None:
        """Call the user's function; one that fails is not called again, and the run continues."""
        objects = self._objects[statistic.kind]
        values = np.full(len(objects), math.nan)
        try:
            for place in places:
                mine = () if statistic.kind == "plan" else (objects[place],)
                value = statistic.function(self._engine, *mine)
                values[place] = math.nan if value is None else value
        except Exception:
            self._own.remove(statistic)
            log.exception("statistic %r failed and is not gathered any more", statistic.name)
            return
        self._add(statistic.kind, statistic.name, values)

    def _queued(self) -> Values:
        return self._by_station([q.count if q.oldest != NO_HEAD else 0.0 for q in self._engine.ledger.queues])

    def _by_station(self, by_queue: Sequence[float]) -> Values:
        return _sum_by_place(self._station_of, by_queue, len(self._plan.stations))

    def _priorities(self) -> Values:
        """Return each operator's highest priority; NaN without work, if priorities depend on backlogs."""
        engine, found = self._engine, np.full(len(self._plan.stations), math.nan)
        asked: dict[int, float] = {}
        for queue in engine.ledger.queues:
            for segment in queue.segments:
                if segment.pending > 0 or not as_stateful(engine.control.policy).is_dynamic(engine.plan):
                    if segment.serial not in asked:
                        asked[segment.serial] = engine.control.policy.priority(segment)
                    place = queue.station.index
                    found[place] = np.fmax(found[place], asked[segment.serial])
        return found

    def _view(self) -> StatisticsView:
        if self.algorithm is None:
            self.algorithm = format_policy(self._engine.control.policy)
        if self.algorithm not in self.views:
            self.views[self.algorithm] = self._fresh()
        return self.views[self.algorithm]

    def _fresh(self) -> StatisticsView:
        return StatisticsView(self._names, self._known, self._plan.settings.history)

    def _begin_period(self) -> None:
        """Start a period."""
        self._began = self._now()
        self._due = self._began + self.period
        self._held = 0.0  # tuples times time
        self._taken, self._made, self._busy = ([0.0] * len(self._station_of) for _ in range(3))  # by queue
        self._delays, self._results = np.zeros(len(self._plan.queries)), np.zeros(len(self._plan.queries), np.int64)


def format_policy(policy: Policy) -> str:
    """Return the policy as text: its name and the parameters that differ from their defaults."""
    parameters: Sequence[Any] = dataclasses.fields(policy) if dataclasses.is_dataclass(policy) else ()
    given = {p.name: getattr(policy, p.name) for p in parameters if p.init and getattr(policy, p.name) != p.default}
    text = ",".join(f"{name}={str(value).removesuffix('.0').replace(',', '+')}" for name, value in given.items())
    return f"{policy.name}:{text}" if text else policy.name


def _sum_by_place(places: NDArray[np.intp], values: ArrayLike, size: int) -> Values:
    """Return the sum of the values by place."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)
