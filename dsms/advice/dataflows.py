"""Explains how joins run: the join operations on each stream's rows in order, their time, and the plan's rewrites.

Getta, Vossough: T of an expression is the time from a row's arrival until its last operation ends. The order of
operations with the least T is the best; whether an intermediate result deserves a window depends on the rates.
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
from dsms.dataflow import Cost, Dataflow, JoinTerm, WindowTradeoff
from dsms.engine.engine import Engine
from dsms.engine.statistics import MeasuredStatistics
from dsms.errors import PlanError
from dsms.expressions.tree import columns_of, conjuncts, rename_columns, text_of
from dsms.operators import Operator
from dsms.operators.aggregation import AggregateOperator, DistinctOperator
from dsms.operators.fused import FilterStep, FusedOperator
from dsms.operators.joins import MultiJoin, explain_order_requirement
from dsms.operators.relation_to_stream import RelationToStreamOperator
from dsms.operators.reorder import ReorderOperator
from dsms.operators.union import UnionOperator
from dsms.operators.window import WindowOperator
from dsms.plan.graph import Plan, Query, Station, Stream
from dsms.policies.registry import policy_named
from dsms.query.plan_file import plan_from, read_plan
from dsms.run_plan import open_sources

Order = OneOf["preserving", "weak"] | int
SAMPLE_ROWS = 100_000  # that operations are measured on
BATCH_ROWS = 500  # in a batch: a join reconsiders its plan after each


@dataclass(frozen=True)
class DataflowRow:
    """One stream's path through a query."""

    stream: str
    expression: str
    operations: list[tuple[str, Cost]]
    block: float  # T if an operation starts when the one before has ended
    item: float  # T if it starts as soon as it has an item

    def to_json(self) -> dict[str, Any]:
        steps = [{"operation": text, "time": c.time, "outputs": c.outputs} for text, c in self.operations]
        times = {"block": self.block, "item": self.item}
        return {"stream": self.stream, "expression": self.expression, "operations": steps, "T": times}


@dataclass(frozen=True)
class JoinOrder:
    """The order of a join's results, and the dashed edges when a row of each of its inputs is pending."""

    station: str
    order: Order
    because: str | None  # why it preserves the order although the plan does not require it
    dashed_edges: int  # of the scheduling graph in that order, with timestamps
    without_timestamps: int  # if every operation waited for all conflicting ones


@dataclass(frozen=True)
class QueryFlows:
    """A query as dataflow expressions."""

    query: str
    lines: list[DataflowRow]
    changes: list[str]  # rewrites, and what they save
    windows: list[str]  # of intermediate results: whether they are kept
    joins: list[JoinOrder]

    def to_json(self) -> dict[str, Any]:
        lines, joins = [line.to_json() for line in self.lines], [asdict(join) for join in self.joins]
        said = {"changes": self.changes, "windows": self.windows}
        return {"query": self.query, "streams": lines, **said, "joins": joins}


@dataclass(frozen=True)
class Dataflows:
    """All CQL queries of a plan."""

    plan: str
    order: Order
    rows: int  # that operations were measured on; 0: there were none
    queries: list[QueryFlows]

    def to_json(self) -> dict[str, Any]:
        queries = [query.to_json() for query in self.queries]
        return {"plan": self.plan, "order": self.order, "sample": self.rows, "queries": queries}


def dataflows(
    plan: Plan | str | Path | Mapping[str, Any], *, sources: Mapping[str, Any] | None = None, sample: int = SAMPLE_ROWS
) -> Dataflows:
    """The dataflow expressions of a plan's CQL queries, measured on the first rows of its sources, if it has any."""
    if not isinstance(plan, Plan):
        plan = plan_from(plan) if isinstance(plan, Mapping) else read_plan(plan)
    compiled = [query for query in plan.queries if query.node is not None]
    if not compiled:
        raise PlanError("the plan has no CQL query: abstract operators have no dataflow", "queries", plan.name)
    trial = _SampleRun(plan, sources or {}, sample)
    flows = [_describe_query(plan, query, trial) for query in compiled]
    return Dataflows(plan.name, plan.settings.order, trial.rows, flows)


class _SampleRun:
    """Runs a plan on a sample of rows to measure its operations."""

    def __init__(self, plan: Plan, sources: Mapping[str, Any], sample: int) -> None:
        self.counts, self.rows = MeasuredStatistics(plan), 0
        self.engine = Engine(plan, policy_named("fifo"), clock=WallClock(), observers=[self.counts])
        if all(s.name in sources or s.source is not None for s in plan.streams if s.consumers):
            for stream, batch in open_sources(plan, sources, min(BATCH_ROWS, sample), lambda stream, row: None):
                self.engine.push(stream, batch)
                self.engine.run()
                self.rows += len(batch)
                if self.rows >= sample:
                    break
        self.engine.finish(self.engine.clock.now())

    def operator(self, station: Station) -> Operator:
        """The operator in its state after the sample."""
        return self.engine.row_runner.operator(station)

    def cost(self, station: Station) -> Cost:
        """The measured cost and selectivity of a station; the declared ones if no row reached it."""
        seen = self.counts.totals[station.index]
        if not seen.consumed:
            return Cost(station.operator.cost, station.operator.selectivity)
        return Cost(seen.busy / seen.consumed, seen.produced / seen.consumed)


def _describe_query(plan: Plan, query: Query, trial: _SampleRun) -> QueryFlows:
    top = query.stations[-1]
    lines = [_describe_path(way, trial) for way in _enumerate_paths(top)]
    changes = [*_explain_pushdown(query, trial), *_explain_sharing(query)]
    windows: list[str] = []
    joins: list[JoinOrder] = []
    for station in _upstream_stations(top):
        join = trial.operator(station)
        if isinstance(join, MultiJoin):
            changes += _explain_reordering(join)
            windows += _explain_inner_window(join)
            joins.append(_describe_order(plan, station, join))
    return QueryFlows(query.name, lines, changes, windows, joins)


def _describe_order(plan: Plan, station: Station, join: MultiJoin) -> JoinOrder:
    required = plan.settings.order
    because = explain_order_requirement(join.inputs, join.expression) if required != "preserving" else None
    order: Order = required if because is None else "preserving"
    pending = [flow.stream for flow in join.plan]
    graph = dataflow.SchedulingGraph.of(join.plan, dataflow.DataflowExecution(join.plan, order=order).matrix)
    for stream in pending:
        graph = graph.arrive(stream)
    return JoinOrder(station.name, order, because, graph.waits, dataflow.count_dashed_edges(join.plan, pending))


def _enumerate_paths(station: Station) -> Iterator[list[tuple[Station | Stream, int]]]:
    """Every path from a stream to this station, with the input port at each station."""
    for port, producer in enumerate(station.inputs):
        if isinstance(producer, Stream):
            yield [(producer, 0), (station, port)]
        else:
            yield from ([*way, (station, port)] for way in _enumerate_paths(producer))


def _upstream_stations(station: Station) -> dict[Station, None]:
    found: dict[Station, None] = {}
    for producer in station.inputs:
        if isinstance(producer, Station):
            found |= _upstream_stations(producer)
    return found | {station: None}


def _describe_path(way: list[tuple[Station | Stream, int]], trial: _SampleRun) -> DataflowRow:
    (source, _), *stations = way
    name, operations = source.name, list[tuple[str, Cost]]()
    for station, port in stations:
        assert isinstance(station, Station)
        operator, cost = trial.operator(station), trial.cost(station)
        if isinstance(operator, MultiJoin):
            name, estimate = operator.ports[port], operator.estimate()
            flow = next(flow for flow in operator.plan if flow.stream == name)
            # The last operation, which would record the result, is the end of the query.
            operations += [(str(operation), estimate(operation)) for operation in flow.operations[:-1]]
        else:
            operations += _operation_costs(operator, cost, source.name)
    operations.append(("->(w_out)", Cost(0)))
    costs = [cost for _, cost in operations]
    text = f"{name}: {', '.join(text for text, _ in operations)}"
    return DataflowRow(
        source.name, text, operations, dataflow.total_time(costs, "block"), dataflow.total_time(costs, "item")
    )


def _operation_costs(operator: Operator, cost: Cost, stream: str) -> list[tuple[str, Cost]]:
    """A station as operations of a dataflow expression, with their costs."""
    match operator:
        case ReorderOperator(late=late):
            return [(f"order[{late} us]" if late else "order", cost)]
        case FusedOperator(steps=steps):
            texts = [
                f"select[{text_of(step.condition)}]"
                if isinstance(step, FilterStep)
                else f"transform[{', '.join(name for name, _ in step.items)}]"
                for step in steps
            ]
            # They are measured as one operator: the first gets the time, the last the outputs.
            last = len(texts) - 1
            return [
                (text, Cost(cost.time if place == 0 else 0, cost.outputs if place == last else 1))
                for place, text in enumerate(texts)
            ]
        case WindowOperator():
            return [(f"->(w_{stream})", cost)]
        case AggregateOperator(keys=keys):
            return [(f"group[{', '.join(keys)}]", cost)]
        case DistinctOperator():
            return [("distinct", cost)]
        case UnionOperator():
            return [("union", cost)]
        case RelationToStreamOperator(kind=kind):
            return [(kind, cost)]
        case _:
            return [(operator.kind_name(), cost)]


def _explain_reordering(join: MultiJoin) -> list[str]:
    """How the plan of a join differs from the order in the query, and how much time that saves."""
    estimate, said = join.estimate(), []
    for flow, before in zip(join.plan, join.first(), strict=True):
        if flow != before:
            now, then = (dataflow.dataflow_time(each, estimate, join.mode) for each in (flow, before))
            gained = f"T of the join {1 - now / then:.0%} less" if now < then else "as the window has to be kept"
            said.append(f"{flow} instead of {_inner_result_name(before)}: {gained}")
    return said


def _explain_inner_window(join: MultiJoin) -> list[str]:
    """For a join of three: the time a window of the first two saves for a row of the third, by equation 1."""
    whole = join.expression
    if not isinstance(whole, JoinTerm) or not isinstance(whole.left, JoinTerm) or len(whole.streams) != 3:
        return []
    estimate = join.estimate()
    two, name = whole.left, whole.streams[-1]
    with_it, without = (
        next(flow for flow in dataflow.translate(whole, stored) if flow.stream == name) for stored in ([two.name], [])
    )
    detour = WindowTradeoff.of(estimate, with_it, without)
    kept = any(operation.window == f"w_{two.name}" for flow in join.plan for operation in flow.operations)
    times = f"{detour.with_window(math.inf):.2g} s with it and {detour.without_window():.2g} s without (equation 1)"
    upkeep = f"each row in it {detour.record_rs:.2g} s to record"
    return [f"w_{two.name} is {'' if kept else 'not '}kept: a row of {name} takes {times}, {upkeep}"]


def _inner_result_name(flow: Dataflow) -> str:
    return ", ".join(map(str, flow.operations[1:-1]))


def _explain_pushdown(query: Query, trial: _SampleRun) -> list[str]:
    """Conditions that are checked before a window or join, although the query has them after it."""
    said, above = [], _conditions_above(query.node) if query.node is not None else set()
    for station in query.stations:
        behind = [
            s for s in station.consumers if s.query is query and isinstance(s.operator, WindowOperator | MultiJoin)
        ]
        if isinstance(station.operator, FusedOperator) and behind:
            steps = [step.condition for step in station.operator.steps if isinstance(step, FilterStep)]
            conditions = [text_of(condition) for condition in steps if text_of(condition) in above]
            if conditions:
                passed = f": {max(0.0, 1 - trial.cost(station).outputs):.0%} of the rows do not get there"
                said.append(f"{' and '.join(conditions)} checked before {behind[0].name}{passed if trial.rows else ''}")
    return said


def _conditions_above(node: Node) -> set[str]:
    """The conditions above a window or join, as texts without aliases."""
    found: set[str] = set()
    if isinstance(node, Select) and _is_stateful(node.of):
        for condition in conjuncts(node.condition):
            bare = {name: name.rpartition(".")[2] for name in columns_of(condition)}
            found.add(text_of(rename_columns(condition, bare)))
    return found.union(*map(_conditions_above, inputs_of(node)))


def _is_stateful(node: Node) -> bool:
    return isinstance(node, Windowed | algebra.Join) or any(map(_is_stateful, inputs_of(node)))


def _explain_sharing(query: Query) -> list[str]:
    """Stations of other queries that this query shares."""
    read = {station: None for mine in query.stations for station in mine.inputs if isinstance(station, Station)}
    return [f"{s.name} is shared with query {s.query.name!r}" for s in read if s.query is not query and not s.sink]
