"""Stations for what queries mean: equal parts of them are one station, filters and projections in a row one pipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsms.algebra import (
    Aggregate,
    Apply,
    Distinct,
    Flow,
    Named,
    Node,
    Project,
    Select,
    Stored,
    Stream,
    ToStream,
    Union,
    Windowed,
    inputs_of,
)
from dsms.batch import Batch
from dsms.dataflow import Mode
from dsms.errors import PlanError
from dsms.expressions.user import UserFunction
from dsms.joins import Input, MultiJoin, why_in_order
from dsms.operators import Function, Operator
from dsms.operators.aggregation.aggregate import Aggregate as Grouping
from dsms.operators.aggregation.distinct import Distinct as Once
from dsms.operators.arrange import Arrange
from dsms.operators.base import ROW_COST
from dsms.operators.changes import Changes
from dsms.operators.pipe import Keep, Make, Pipe
from dsms.operators.recorder import Recorder
from dsms.operators.union import Union as Merged
from dsms.plan import Query, Station
from dsms.plan import Stream as Source
from dsms.planner.nulls import marked
from dsms.planner.physical import Physical
from dsms.planner.pushdown import pushed


@dataclass(frozen=True)
class Standing:
    """What is built already: queries that come later may read and share it, and leave it as it is."""

    nodes: Mapping[str, Node] = field(default_factory=dict)  # by query: what it means
    tops: Mapping[str, Station] = field(default_factory=dict)  # by query: where its results come out
    parts: Mapping[Node, Station] = field(default_factory=dict)  # those that may be shared: where their rows come out
    stations: Collection[Station] = ()


@dataclass
class Builder:
    """Builds the stations of all queries of a plan together, or of those that come to others."""

    streams: Mapping[str, Source]
    stored: Mapping[str, Batch] = field(default_factory=dict)
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    load: Callable[[str], Callable[[Batch], Any]] | None = None  # the function that `module:name` stands for
    on_error: str = "fail"
    ahead: float = 0  # rows that a join may work on before their time, if it can: the plan's `order`
    mode: Mode = "block"
    standing: Standing = field(default_factory=Standing)

    def __post_init__(self) -> None:
        self.found: list[Station] = []  # each after those it reads
        self._built: dict[Node, Source | Station] = dict(self.standing.parts)
        self.tops: dict[str, Station] = dict(self.standing.tops)  # by query: where its results come out
        self._uses: Counter[Node] = Counter()
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._taken = {station.name for station in self.standing.stations}

    def build(self, queries: Mapping[str, tuple[Query, Node]]) -> None:
        """Stations for these queries; one that reads another's results comes after it."""
        plans = {name: pushed(marked(node)) for name, (_, node) in queries.items()}
        physical = Physical(plans.values())
        done = {name: physical.of(plan) for name, plan in plans.items()}
        self._count(done.values())
        for name, (query, _) in queries.items():
            top = self._of(done[name], query)
            if not isinstance(top, Station) or top.query is not query:
                top = self._station("pass", query, Pipe(steps=(), schema=done[name].schema), top)
            self.tops[name] = top

    @property
    def parts(self) -> dict[Node, Station]:
        """What has been built, by what it means."""
        return {node: built for node, built in self._built.items() if isinstance(built, Station)}

    @property
    def arranged(self) -> dict[str, Station]:
        """By stream with timestamps of its own: where its rows come in their order."""
        return {node.name: station for node, station in self.parts.items() if isinstance(node, Stream)}

    def _count(self, plans: Iterable[Node]) -> None:
        """How many parts read each part: one that several read is not drawn into the pipe of one of them."""
        ahead, seen = list(plans), set[Node]()
        self._uses.update(ahead)
        while ahead:
            node = ahead.pop()
            if node not in seen:
                seen.add(node)
                self._uses.update(inputs_of(node))
                ahead += inputs_of(node)

    def _of(self, node: Node, query: Query) -> Source | Station:
        """Where the rows of a part come out."""
        if isinstance(node, Named):
            return self.tops[node.name]
        if node not in self._built:
            self._built[node] = self._made(node, query)
        return self._built[node]

    def _made(self, node: Node, query: Query) -> Source | Station:
        if isinstance(node, Stream):
            source = self.streams[node.name]
            if source.timestamp is None:
                return source
            return self._station(
                "arrange", query, Arrange(column=source.timestamp, late=source.late, on_error=self.on_error), source
            )
        if isinstance(node, Select | Project):
            return self._pipe(node, query)
        try:
            kind, operator = self._operator(node)
        except PlanError as error:
            raise error.within(f"queries.{query.name}") from None
        inputs = [part for part in inputs_of(node) if not isinstance(part, Stored)]
        return self._station(kind, query, operator, *(self._of(part, query) for part in inputs))

    def _pipe(self, node: Node, query: Query) -> Station:
        """Filters and projections in a row, down to what others read too."""
        steps: list[Keep | Make] = []
        top = node
        while isinstance(node, Select | Project) and (
            node is top or (self._uses[node] == 1 and node not in self._built)
        ):
            steps.append(Keep(node.condition) if isinstance(node, Select) else Make(node.items))
            node = node.of
        if isinstance(node, Stored):
            raise PlanError(f"{node.name!r} is a stored relation: it can only be joined with a stream")
        pipe = Pipe(steps=tuple(reversed(steps)), schema=node.schema, functions=self.functions, on_error=self.on_error)
        kind = "where" if all(isinstance(step, Keep) for step in steps) else "select"
        return self._station(kind, query, pipe, self._of(node, query))

    def _operator(self, node: Node) -> tuple[str, Operator]:
        """What does a part, and what it is called."""
        match node:
            case Windowed(_, window):
                return "window", Recorder(window=window)
            case Distinct(of):
                return "distinct", Once(schema=of.schema)
            case Aggregate(of, keys, aggregations, _, every):
                return "group", Grouping(
                    schema=of.schema,
                    keys=keys,
                    aggregations=aggregations,
                    every=every,
                    on_error=self.on_error,
                    appends=of.appends,
                )
            case ToStream(of, kind):
                return kind, Changes(kind=kind, schema=of.schema)
            case Union(inputs=parts):
                return "union", Merged(inputs=len(parts), names=tuple(tuple(part.schema) for part in parts))
            case Flow():
                return "join", self._join(node)
            case Apply(_, function):
                if self.load is None:
                    raise PlanError(f"function {function!r}: there is nobody to load it")
                return "apply", Function(cost=ROW_COST, function=self.load(function))
            case _:
                raise PlanError(f"a stored relation can only be joined with a stream: {node}")

    def _join(self, flow: Flow) -> MultiJoin:
        inputs = tuple(
            Input(
                part.alias,
                part.of.schema,
                part.window,
                dict(part.attributes),
                rows=self.stored[part.of.name] if isinstance(part.of, Stored) else None,
            )
            for part in flow.inputs
        )
        return MultiJoin(
            inputs=inputs,
            expression=flow.expression,
            columns=tuple(flow.schema),
            emit=flow.emit,
            mode=self.mode,
            ahead=0 if why_in_order(inputs, flow.expression) else self.ahead,
        )

    def _station(self, kind: str, query: Query, operator: Operator, *inputs: Source | Station) -> Station:
        name = self._name(query.name, kind)
        while name in self._taken:  # by what is left of an earlier query of this name
            name = self._name(query.name, kind)
        station = Station(name, query, operator, inputs)
        query.stations.append(station)
        self.found.append(station)
        return station

    def _name(self, query: str, kind: str) -> str:
        self._numbers[query, kind] += 1
        number = self._numbers[query, kind]
        return f"{query}.{kind}{number if number > 1 else ''}"
