"""Queries as dataflow expressions: what each stream's rows go through, how long that takes, what was changed for it.

Getta, Vossough: T of an expression is the time from a row's arrival until it is through; of several orders of its
operations the one with the least T is the best, and which results are worth a window of their own depends on the rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from typing import Literal as OneOf

from dsms import algebra, dataflow
from dsms.algebra import Node, Select, Windowed, inputs_of
from dsms.clock import WallClock
from dsms.dataflow import Cost, Dataflow, Detour, Join
from dsms.engine import Engine
from dsms.errors import PlanError
from dsms.execution import feed_of
from dsms.expressions.tree import columns_of, conjuncts, renamed, text_of
from dsms.joins import MultiJoin, why_in_order
from dsms.operators import Operator
from dsms.operators.aggregation import Aggregate, Distinct
from dsms.operators.arrange import Arrange
from dsms.operators.changes import Changes
from dsms.operators.pipe import Keep, Pipe
from dsms.operators.recorder import Recorder
from dsms.operators.union import Union
from dsms.plan import Plan, Query, Station, Stream
from dsms.planfile import plan_from, read_plan
from dsms.policies.registry import policy_named
from dsms.statistics import Measured

Order = OneOf["preserving", "weak"] | int
SAMPLE = 100_000  # rows by which operations are measured
ROWS = 500  # in a batch: a join decides on its plan every so many


@dataclass(frozen=True)
class Line:
    """One stream's way through a query."""

    stream: str
    expression: str
    operations: list[tuple[str, Cost]]
    block: float  # T where an operation starts when the one before is done
    item: float  # T where it starts as soon as there is an item for it

    def to_json(self) -> dict[str, Any]:
        steps = [{"operation": text, "time": c.time, "outputs": c.outputs} for text, c in self.operations]
        times = {"block": self.block, "item": self.item}
        return {"stream": self.stream, "expression": self.expression, "operations": steps, "T": times}


@dataclass(frozen=True)
class JoinOrder:
    """In which order a join puts its results out, and the dashed edges when a row of each of its inputs is pending."""

    station: str
    order: Order
    because: str | None  # why it keeps the order although the plan would let it not
    dashed_edges: int  # of the scheduling graph in that order, timestamps deciding what is read
    without_timestamps: int  # if every operation waited for all that it conflicts with


@dataclass(frozen=True)
class QueryFlows:
    """A query as dataflow expressions."""

    query: str
    lines: list[Line]
    changes: list[str]  # what was done to it, and what that saves
    windows: list[str]  # of results inside joins: whether they are worth keeping
    joins: list[JoinOrder]

    def to_json(self) -> dict[str, Any]:
        lines, joins = [line.to_json() for line in self.lines], [asdict(join) for join in self.joins]
        said = {"changes": self.changes, "windows": self.windows}
        return {"query": self.query, "streams": lines, **said, "joins": joins}


@dataclass(frozen=True)
class Dataflows:
    """All queries of a plan that work on rows."""

    plan: str
    order: Order
    rows: int  # by which operations were measured; 0: there was nothing to measure them by
    queries: list[QueryFlows]

    def to_json(self) -> dict[str, Any]:
        queries = [query.to_json() for query in self.queries]
        return {"plan": self.plan, "order": self.order, "sample": self.rows, "queries": queries}


def dataflows(
    plan: Plan | str | Path | Mapping[str, Any], *, sources: Mapping[str, Any] | None = None, sample: int = SAMPLE
) -> Dataflows:
    """The dataflow expressions of a plan's queries, measured on the first rows of its sources where it has some."""
    if not isinstance(plan, Plan):
        plan = plan_from(plan) if isinstance(plan, Mapping) else read_plan(plan)
    written = [query for query in plan.queries if query.node is not None]
    if not written:
        raise PlanError("no query is written as CQL: abstract operators have no dataflow", "queries", plan.name)
    trial = _Trial(plan, sources or {}, sample)
    found = [_flows(plan, query, trial) for query in written]
    return Dataflows(plan.name, plan.settings.order, trial.rows, found)


class _Trial:
    """A plan run on a sample of rows, to see what its operations do."""

    def __init__(self, plan: Plan, sources: Mapping[str, Any], sample: int) -> None:
        self.counts, self.rows = Measured(plan), 0
        self.engine = Engine(plan, policy_named("fifo"), clock=WallClock(), observers=[self.counts])
        if all(s.name in sources or s.source is not None for s in plan.streams if s.consumers):
            for stream, batch in feed_of(plan, sources, min(ROWS, sample), lambda stream, row: None):
                self.engine.push(stream, batch)
                self.engine.run()
                self.rows += len(batch)
                if self.rows >= sample:
                    break
        self.engine.finish(self.engine.clock.now())

    def operator(self, station: Station) -> Operator:
        """The operator as it is after the sample."""
        return self.engine.runner.operator(station)

    def cost(self, station: Station) -> Cost:
        """What a row costs a station, and what it makes of it; as declared where no row came."""
        seen = self.counts.totals[station.index]
        if not seen.consumed:
            return Cost(station.operator.cost, station.operator.selectivity)
        return Cost(seen.busy / seen.consumed, seen.produced / seen.consumed)


def _flows(plan: Plan, query: Query, trial: _Trial) -> QueryFlows:
    top = query.stations[-1]
    lines = [_line(way, trial) for way in _ways(top)]
    changes = [*_pushed(query, trial), *_shared(query)]
    windows: list[str] = []
    joins: list[JoinOrder] = []
    for station in _above(top):
        join = trial.operator(station)
        if isinstance(join, MultiJoin):
            changes += _reordered(join)
            windows += _inner_window(join)
            joins.append(_order(plan, station, join))
    return QueryFlows(query.name, lines, changes, windows, joins)


def _order(plan: Plan, station: Station, join: MultiJoin) -> JoinOrder:
    wanted = plan.settings.order
    because = why_in_order(join.inputs, join.expression) if wanted != "preserving" else None
    order: Order = wanted if because is None else "preserving"
    pending = [flow.stream for flow in join.plan]
    graph = dataflow.SchedulingGraph.of(join.plan, dataflow.Execution(join.plan, order=order).matrix)
    for stream in pending:
        graph = graph.arrive(stream)
    return JoinOrder(station.name, order, because, graph.waits, dataflow.edges(join.plan, pending))


def _ways(station: Station) -> Iterator[list[tuple[Station | Stream, int]]]:
    """Every way from a stream to this station: what is passed, and by which port each is entered."""
    for port, producer in enumerate(station.inputs):
        if isinstance(producer, Stream):
            yield [(producer, 0), (station, port)]
        else:
            yield from ([*way, (station, port)] for way in _ways(producer))


def _above(station: Station) -> dict[Station, None]:
    found: dict[Station, None] = {}
    for producer in station.inputs:
        if isinstance(producer, Station):
            found |= _above(producer)
    return found | {station: None}


def _line(way: list[tuple[Station | Stream, int]], trial: _Trial) -> Line:
    (source, _), *stations = way
    name, operations = source.name, list[tuple[str, Cost]]()
    for station, port in stations:
        assert isinstance(station, Station)
        operator, cost = trial.operator(station), trial.cost(station)
        if isinstance(operator, MultiJoin):
            name, estimate = operator.ports[port], operator.estimate()
            flow = next(flow for flow in operator.plan if flow.stream == name)
            # What the last recorder would be is the end of the query, wherever that is.
            operations += [(str(operation), estimate(operation)) for operation in flow.operations[:-1]]
        else:
            operations += _steps(operator, cost, source.name)
    operations.append(("->(w_out)", Cost(0)))
    costs = [cost for _, cost in operations]
    text = f"{name}: {', '.join(text for text, _ in operations)}"
    return Line(source.name, text, operations, dataflow.duration(costs, "block"), dataflow.duration(costs, "item"))


def _steps(operator: Operator, cost: Cost, stream: str) -> list[tuple[str, Cost]]:
    """What a station does, as operations of a dataflow expression."""
    match operator:
        case Arrange(late=late):
            return [(f"order[{late} us]" if late else "order", cost)]
        case Pipe(steps=steps):
            texts = [
                f"select[{text_of(step.condition)}]"
                if isinstance(step, Keep)
                else f"transform[{', '.join(name for name, _ in step.items)}]"
                for step in steps
            ]
            # They are one operator and were measured as one: the time stands at the first, the outputs at the last.
            last = len(texts) - 1
            return [
                (text, Cost(cost.time if place == 0 else 0, cost.outputs if place == last else 1))
                for place, text in enumerate(texts)
            ]
        case Recorder():
            return [(f"->(w_{stream})", cost)]
        case Aggregate(keys=keys):
            return [(f"group[{', '.join(keys)}]", cost)]
        case Distinct():
            return [("distinct", cost)]
        case Union():
            return [("union", cost)]
        case Changes(kind=kind):
            return [(kind, cost)]
        case _:
            return [(type(operator).__name__.lower(), cost)]


def _reordered(join: MultiJoin) -> list[str]:
    """How the plan of a join differs from the one its query is written in, and what an item gains by it."""
    estimate, said = join.estimate(), []
    for flow, before in zip(join.plan, join.first(), strict=True):
        if flow != before:
            now, then = (dataflow.duration_of(each, estimate, join.mode) for each in (flow, before))
            gained = f"T of the join {1 - now / then:.0%} less" if now < then else "as the window has to be kept"
            said.append(f"{flow} instead of {_inner(before)}: {gained}")
    return said


def _inner_window(join: MultiJoin) -> list[str]:
    """Of a join of three: what a window of the first two is worth to a row of the third, by equation 1."""
    whole = join.expression
    if not isinstance(whole, Join) or not isinstance(whole.left, Join) or len(whole.streams) != 3:
        return []
    estimate = join.estimate()
    two, name = whole.left, whole.streams[-1]
    with_it, without = (
        next(flow for flow in dataflow.translate(whole, stored) if flow.stream == name) for stored in ([two.name], [])
    )
    detour = Detour.of(estimate, with_it, without)
    kept = any(operation.window == f"w_{two.name}" for flow in join.plan for operation in flow.operations)
    times = f"{detour.with_window(math.inf):.2g} s with it and {detour.without_window():.2g} s without (equation 1)"
    upkeep = f"each row in it {detour.record_rs:.2g} s to record"
    return [f"w_{two.name} is {'' if kept else 'not '}kept: a row of {name} takes {times}, {upkeep}"]


def _inner(flow: Dataflow) -> str:
    return ", ".join(map(str, flow.operations[1:-1]))


def _pushed(query: Query, trial: _Trial) -> list[str]:
    """Conditions that are met before a window or a join that the query puts before them."""
    said, above = [], _written_above(query.node) if query.node is not None else set()
    for station in query.stations:
        behind = [s for s in station.consumers if s.query is query and isinstance(s.operator, Recorder | MultiJoin)]
        if isinstance(station.operator, Pipe) and behind:
            steps = [step.condition for step in station.operator.steps if isinstance(step, Keep)]
            conditions = [text_of(condition) for condition in steps if text_of(condition) in above]
            if conditions:
                passed = f": {max(0.0, 1 - trial.cost(station).outputs):.0%} of the rows do not get there"
                said.append(f"{' and '.join(conditions)} checked before {behind[0].name}{passed if trial.rows else ''}")
    return said


def _written_above(node: Node) -> set[str]:
    """The conditions that a query has above a window or a join, as texts with bare names."""
    found: set[str] = set()
    if isinstance(node, Select) and _holds_rows(node.of):
        for condition in conjuncts(node.condition):
            bare = {name: name.rpartition(".")[2] for name in columns_of(condition)}
            found.add(text_of(renamed(condition, bare)))
    return found.union(*map(_written_above, inputs_of(node)))


def _holds_rows(node: Node) -> bool:
    return isinstance(node, Windowed | algebra.Join) or any(map(_holds_rows, inputs_of(node)))


def _shared(query: Query) -> list[str]:
    """Parts that are worked out for another query too, and only once."""
    read = {station: None for mine in query.stations for station in mine.inputs if isinstance(station, Station)}
    return [f"{s.name} is shared with query {s.query.name!r}" for s in read if s.query is not query and not s.sink]
