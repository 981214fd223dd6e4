"""Builds the stations of queries: equal parts share one station, consecutive filters and projections are fused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsms.algebra import (
    Aggregate,
    AliasedNode,
    Apply,
    Distinct,
    MultiwayJoin,
    Node,
    Project,
    Select,
    StoredRelation,
    StreamScan,
    ToStream,
    Union,
    Windowed,
    inputs_of,
)
from dsms.data.batch import Batch
from dsms.dataflow import Mode
from dsms.errors import PlanError
from dsms.expressions.scalar_functions import UserFunction
from dsms.operators import FunctionOperator, Operator
from dsms.operators.aggregation.aggregate import AggregateOperator
from dsms.operators.aggregation.distinct import DistinctOperator
from dsms.operators.base import DEFAULT_ROW_COST_S
from dsms.operators.fused import FilterStep, FusedOperator, ProjectStep
from dsms.operators.joins import JoinInput, MultiJoin, explain_order_requirement
from dsms.operators.relation_to_stream import RelationToStreamOperator
from dsms.operators.reorder import ReorderOperator
from dsms.operators.union import UnionOperator
from dsms.operators.window import WindowOperator
from dsms.plan.graph import Query, Station, Stream
from dsms.query.planner.null_keys import rewrite_null_comparisons
from dsms.query.planner.physical import PhysicalPlanner
from dsms.query.planner.pushdown import push_down_conditions


@dataclass(frozen=True)
class ExistingQueries:
    """Queries that are built already: later ones may read and share their stations, and do not change them."""

    nodes: Mapping[str, Node] = field(default_factory=dict)  # by query: its tree
    output_stations: Mapping[str, Station] = field(default_factory=dict)  # by query: its last station
    parts: Mapping[Node, Station] = field(default_factory=dict)  # trees that may be shared, with their stations
    stations: Collection[Station] = ()


@dataclass
class PlanBuilder:
    """Builds the stations of all queries of a plan together, or of queries that are added to existing ones."""

    streams: Mapping[str, Stream]
    stored: Mapping[str, Batch] = field(default_factory=dict)
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    load: Callable[[str], Callable[[Batch], Any]] | None = None  # loads the function `module:name`
    on_error: str = "fail"
    eager_rows: float = 0  # rows that a join may process ahead of older ones, if it can: the plan's `order`
    mode: Mode = "block"
    existing_queries: ExistingQueries = field(default_factory=ExistingQueries)

    def __post_init__(self) -> None:
        self.built: list[Station] = []  # each after the stations that it reads
        self._built: dict[Node, Stream | Station] = dict(self.existing_queries.parts)
        # By query: the station that puts out its results.
        self.output_stations: dict[str, Station] = dict(self.existing_queries.output_stations)
        self._uses: Counter[Node] = Counter()
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._taken = {station.name for station in self.existing_queries.stations}

    def build(self, queries: Mapping[str, tuple[Query, Node]]) -> None:
        """Build the stations of these queries; a query that reads another one follows it."""
        plans = {name: push_down_conditions(rewrite_null_comparisons(node)) for name, (_, node) in queries.items()}
        physical = PhysicalPlanner(plans.values())
        done = {name: physical.of(plan) for name, plan in plans.items()}
        self._count(done.values())
        for name, (query, _) in queries.items():
            top = self._of(done[name], query)
            if not isinstance(top, Station) or top.query is not query:
                top = self._station("pass", query, FusedOperator(steps=(), schema=done[name].schema), top)
            self.output_stations[name] = top

    @property
    def parts(self) -> dict[Node, Station]:
        """The stations that have been built, by the tree that they compute."""
        return {node: built for node, built in self._built.items() if isinstance(built, Station)}

    @property
    def reordered(self) -> dict[str, Station]:
        """By stream with timestamps: the station that puts its rows in order."""
        return {node.name: station for node, station in self.parts.items() if isinstance(node, StreamScan)}

    def _count(self, plans: Iterable[Node]) -> None:
        """Count the readers of each part: a part with several readers is not fused with one of them."""
        ahead, seen = list(plans), set[Node]()
        self._uses.update(ahead)
        while ahead:
            node = ahead.pop()
            if node not in seen:
                seen.add(node)
                self._uses.update(inputs_of(node))
                ahead += inputs_of(node)

    def _of(self, node: Node, query: Query) -> Stream | Station:
        """The stream or station that puts out the rows of a part."""
        if isinstance(node, AliasedNode):
            return self.output_stations[node.name]
        if node not in self._built:
            self._built[node] = self._made(node, query)
        return self._built[node]

    def _made(self, node: Node, query: Query) -> Stream | Station:
        if isinstance(node, StreamScan):
            source = self.streams[node.name]
            if source.timestamp is None:
                return source
            return self._station(
                "arrange",
                query,
                ReorderOperator(column=source.timestamp, late=source.late, on_error=self.on_error),
                source,
            )
        if isinstance(node, Select | Project):
            return self._pipe(node, query)
        stored = [part.name for part in (node, *inputs_of(node)) if isinstance(part, StoredRelation)]
        inputs = [part for part in inputs_of(node) if not isinstance(part, StoredRelation)]
        if stored and not (inputs and isinstance(node, MultiwayJoin)):
            raise _misplaced_relation(stored[0], query)
        try:
            kind, operator = self._operator(node)
        except PlanError as error:
            raise error.within(f"queries.{query.name}") from None
        return self._station(kind, query, operator, *(self._of(part, query) for part in inputs))

    def _pipe(self, node: Node, query: Query) -> Station:
        """Fuse consecutive filters and projections, down to a part that other parts read too."""
        steps: list[FilterStep | ProjectStep] = []
        top = node
        while isinstance(node, Select | Project) and (
            node is top or (self._uses[node] == 1 and node not in self._built)
        ):
            steps.append(FilterStep(node.condition) if isinstance(node, Select) else ProjectStep(node.items))
            node = node.of
        if isinstance(node, StoredRelation):
            raise _misplaced_relation(node.name, query)
        pipe = FusedOperator(
            steps=tuple(reversed(steps)), schema=node.schema, functions=self.functions, on_error=self.on_error
        )
        kind = "where" if all(isinstance(step, FilterStep) for step in steps) else "select"
        return self._station(kind, query, pipe, self._of(node, query))

    def _operator(self, node: Node) -> tuple[str, Operator]:
        """The operator that computes a part, and its name."""
        match node:
            case Windowed(_, window):
                return "window", WindowOperator(window=window)
            case Distinct(of):
                return "distinct", DistinctOperator(schema=of.schema)
            case Aggregate(of, keys, aggregations, _, emit_unchanged):
                return "group", AggregateOperator(
                    schema=of.schema,
                    keys=keys,
                    aggregations=aggregations,
                    emit_unchanged=emit_unchanged,
                    on_error=self.on_error,
                    is_append_only=of.is_append_only,
                )
            case ToStream(of, kind):
                return kind, RelationToStreamOperator(kind=kind, schema=of.schema)
            case Union(inputs=parts):
                return "union", UnionOperator(inputs=len(parts), names=tuple(tuple(part.schema) for part in parts))
            case MultiwayJoin():
                return "join", self._join(node)
            case Apply(_, function):
                if self.load is None:
                    raise PlanError(f"function {function!r} cannot be loaded: the builder has no loader")
                return "apply", FunctionOperator(cost=DEFAULT_ROW_COST_S, function=self.load(function))
            case _:
                raise TypeError(f"no operator computes {node}")

    def _join(self, flow: MultiwayJoin) -> MultiJoin:
        inputs = tuple(
            JoinInput(
                part.alias,
                part.of.schema,
                part.window,
                dict(part.attributes),
                rows=self.stored[part.of.name] if isinstance(part.of, StoredRelation) else None,
            )
            for part in flow.inputs
        )
        return MultiJoin(
            inputs=inputs,
            expression=flow.expression,
            columns=tuple(flow.schema),
            emit=flow.emit,
            mode=self.mode,
            eager_rows=0 if explain_order_requirement(inputs, flow.expression) else self.eager_rows,
        )

    def _station(self, kind: str, query: Query, operator: Operator, *inputs: Stream | Station) -> Station:
        name = self._name(query.name, kind)
        while name in self._taken:  # by stations of a removed query of this name, which others still read
            name = self._name(query.name, kind)
        station = Station(name, query, operator, inputs)
        query.stations.append(station)
        self.built.append(station)
        return station

    def _name(self, query: str, kind: str) -> str:
        self._numbers[query, kind] += 1
        number = self._numbers[query, kind]
        return f"{query}.{kind}{number if number > 1 else ''}"


def _misplaced_relation(name: str, query: Query) -> PlanError:
    """The error of a stored relation that is not joined with a stream."""
    return PlanError(f"{name!r} is a stored relation: it can only be joined with a stream", f"queries.{query.name}")
