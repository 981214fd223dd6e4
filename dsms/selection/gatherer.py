"""The statistics gatherer: what operators, queries and the plan did, period by period, under which algorithm.

Sutherland, Raindrop thesis, chapter 3: one view per scheduling algorithm, one historic view that every value goes into
as well, one generic view of the present state. Between ticks a turn costs a comparison, and three additions a step.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsms.errors import DsmsError, existing
from dsms.journal import Journal
from dsms.ledger import NOTHING
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.runners.base import Step
from dsms.segment import Segment
from dsms.selection.views import Column, Values, View, ratio

if TYPE_CHECKING:
    from dsms.engine import Engine

# Of operators (eq. 3.2-3.5): `input` is the product over the inputs, the outputs there would be at selectivity 1;
# `taken` their sum, by which `cost` is reckoned, since a join's time goes by the tuples it takes. All are a period's.
# Of the plan (eq. 3.6-3.9): `age` is the time in the system per tuple admitted, from the beginning of execution.
STATISTICS = {
    "operator": ("input", "taken", "output", "time", "selectivity", "output_rate", "cost", "throughput", "queued"),
    "query": ("throughput", "output_rate", "queued", "delay"),
    "plan": ("throughput", "output_rate", "queued", "delay", "age"),
}
PRESENT = {"operator": ("queued", "priority"), "query": ("queued",), "plan": ("queued", "bytes")}
log = logging.getLogger("dsms")


@dataclass(frozen=True)
class Statistic:
    """One of the user's own: `function(engine, object)` of every operator or query, or `function(engine)` of the plan.

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
            raise DsmsError(f"{self.kind} statistic {self.name!r} exists already: another name is wanted")


class Gatherer(Observer):
    """Fills the views while a plan runs; `period` is how often."""

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
        self._start_anew()
        if engine.journal.instants:  # of what went before nothing is to be counted
            engine.fold()
            self._start_anew()
            self._held_ever = 0.0
        self.algorithm: str | None = None  # who decides; as a text, as people would type it

    def define(self, statistic: Statistic) -> None:
        """Gather a statistic of the user's own too, from now on."""
        if statistic.name in self._known[statistic.kind]:
            raise DsmsError(f"{statistic.kind} statistic {statistic.name!r} exists already: define it once")
        self._known[statistic.kind].append(statistic.name)
        for view in (self.historic, *self.views.values()):
            view.declare(statistic.kind, statistic.name)
        self._own.append(statistic)

    def statistics(self, kind: str = "plan") -> list[str]:
        """What is gathered of this kind of object."""
        return self._known[kind]

    def view(self, algorithm: str) -> View:
        """What was seen under one algorithm."""
        if algorithm not in self.views:
            raise DsmsError(f"no view of {algorithm!r}: it has not run{existing(algorithm, self.views)}")
        return self.views[algorithm]

    def learnt(self) -> dict[str, dict[str, Column]]:
        """What was seen of the plan as a whole, which is all that scores go by: by algorithm; under "" of all."""
        return {name: view.columns("plan") for name, view in {"": self.historic, **self.views}.items()}

    def recall(self, learnt: Mapping[str, Mapping[str, Column]]) -> None:
        """Go on from what another has seen."""
        self.forget()
        for name, columns in learnt.items():
            view = self.views.setdefault(name, self._fresh()) if name else self.historic
            view.columns("plan").update(columns)

    def forget(self) -> None:
        """Begin all views anew."""
        self.views: dict[str, View] = {}
        self.historic = self._fresh()

    @property
    def generic(self) -> View:
        """The present state: what is queued where, and the priority of every operator that has one now."""
        engine, view = self._engine, View(self._names, PRESENT, 0.0)
        queued = self._queued()
        view.add("operator", "queued", queued)
        view.add("operator", "priority", self._priorities())
        view.add("query", "queued", _sums(self._query_of, queued, len(self._plan.queries)))
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
            self.algorithm = text_of(before)
        if not self.settle():  # what is left is nobody's
            self._engine.fold()
            self._start_anew()
        self.algorithm = text_of(self._engine.policy)

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
            self._delays += _sums(whose, delays, len(self._delays))
            self._results += np.bincount(whose, minlength=len(self._results))
        for query, left, since, count in journal.result_runs:
            self._delays[query] += (left - since) * count
            self._results[query] += count
        for query, left, arrived in journal.result_batches:
            self._delays[query] += float((left - arrived).sum())
            self._results[query] += len(arrived)

    def settle(self) -> bool:
        """Gather what there is, unless it is less than half a period, which says too little of a rate."""
        enough = self._now() - self._began >= self.period / 2
        if enough:
            self.gather()
        return enough

    def gather(self) -> None:
        """End the period here: its figures go into the view of who decides, and into the historic one."""
        engine = self._engine
        engine.fold()
        now = self._now()
        span = now - self._began
        if span <= 0:
            return
        queued = self._queued()
        made = self._by_station(self._made)
        self._of_operators(queued, made)
        results = _sums(self._query_of, made * self._sinks, len(self._plan.queries))
        self._add("query", "throughput", results)
        self._add("query", "output_rate", results / span)
        self._add("query", "queued", _sums(self._query_of, queued, len(self._plan.queries)))
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
        self._start_anew()

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
        """The same value to the algorithm's view and to the historic one."""
        self._view().add(kind, statistic, values)
        self.historic.add(kind, statistic, values)

    def _always(self, steps: Sequence[Step]) -> None:
        for statistic in self._own:
            if statistic.always:
                ran = {step[0].station.index for step in steps}
                if statistic.kind == "query":
                    ran = {int(self._query_of[station]) for station in ran}
                self._evaluate(statistic, [0] if statistic.kind == "plan" else sorted(ran))

    def _evaluate(self, statistic: Statistic, places: Sequence[int]) -> None:
        """Ask the user's function; one that fails is not asked again, the run goes on."""
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
        return self._by_station([q.count if q.oldest != NOTHING else 0.0 for q in self._engine.ledger.queues])

    def _by_station(self, by_queue: Sequence[float]) -> Values:
        return _sums(self._station_of, by_queue, len(self._plan.stations))

    def _priorities(self) -> Values:
        """Of every operator, the highest among its segments; one without work has none where the backlog decides."""
        engine, found = self._engine, np.full(len(self._plan.stations), math.nan)
        asked: dict[int, float] = {}
        for queue in engine.ledger.queues:
            for segment in queue.segments:
                if segment.pending > 0 or not engine.policy.by_backlog(engine.plan):
                    if segment.serial not in asked:
                        asked[segment.serial] = engine.policy.priority(segment)
                    place = queue.station.index
                    found[place] = np.fmax(found[place], asked[segment.serial])
        return found

    def _view(self) -> View:
        if self.algorithm is None:
            self.algorithm = text_of(self._engine.policy)
        if self.algorithm not in self.views:
            self.views[self.algorithm] = self._fresh()
        return self.views[self.algorithm]

    def _fresh(self) -> View:
        return View(self._names, self._known, self._plan.settings.history)

    def _start_anew(self) -> None:
        """A period begins."""
        self._began = self._now()
        self._due = self._began + self.period
        self._held = 0.0  # tuples times time
        self._taken, self._made, self._busy = ([0.0] * len(self._station_of) for _ in range(3))  # by queue
        self._delays, self._results = np.zeros(len(self._plan.queries)), np.zeros(len(self._plan.queries), np.int64)


def text_of(policy: Policy) -> str:
    """The policy as people would type it: its name, and the parameters that are not as they are by default."""
    parameters: Sequence[Any] = dataclasses.fields(policy) if dataclasses.is_dataclass(policy) else ()
    given = {p.name: getattr(policy, p.name) for p in parameters if p.init and getattr(policy, p.name) != p.default}
    text = ",".join(f"{name}={str(value).removesuffix('.0').replace(',', '+')}" for name, value in given.items())
    return f"{policy.name}:{text}" if text else policy.name


def _sums(places: NDArray[np.intp], values: ArrayLike, size: int) -> Values:
    """What comes to each place."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)
