"""Stream, Station and Query: the nodes of a plan's graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a host needs no algebra and no arrivals
    from dsms.algebra import Node
    from dsms.arrivals import Arrivals
    from dsms.data.schema import Schema
    from dsms.operators import Operator


@dataclass(eq=False)
class Stream:
    """A source of tuples."""

    name: str
    size: float = 1.0  # bytes of a tuple
    arrivals: Callable[[int], Arrivals] | None = None  # makes the arrivals from the run's seed; None: rows are pushed
    schema: Schema | None = None  # of real rows; None: any columns
    timestamp: str | None = None  # the column that holds a row's timestamp; None: the instant of arrival
    source: Mapping[str, Any] | None = None  # the file that `dsms run` reads, as written in the plan
    late: int = 0  # microseconds by which a row's timestamp may be lower than an earlier row's
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by column: how a load fills it, as written
    consumers: list[Station] = field(default_factory=list, repr=False)


@dataclass(eq=False)
class Station:
    """An operator in a plan: its inputs, its consumers, and whether results of its query leave here."""

    name: str  # unique in the plan: the operator's own name where that is unique, else query.operator
    query: Query
    operator: Operator
    inputs: tuple[Stream | Station, ...] = field(default=(), repr=False)
    consumers: list[Station] = field(default_factory=list, repr=False)
    index: int = 0  # in topological order
    depth: int = 0  # operators on the longest path from a stream to here
    size: float = 1.0  # bytes of an output tuple
    sink: bool = False
    timed: bool = False  # whether a watermark without rows makes it, or a station behind it, produce something


@dataclass(frozen=True)
class SheddingRule:
    """How a query sheds load: which waiting rows it drops, and above what queue length."""

    way: str  # "oldest" or "random"
    ceiling: int


@dataclass(eq=False)
class Query:
    """A continuous query: its stations and the weight of its freshness."""

    name: str
    weight: float = 1.0
    index: int = 0  # its place in the plan
    stations: list[Station] = field(default_factory=list, repr=False)
    node: Node | None = None  # its relational algebra, for a query on real rows
    sink: Any = None  # the file that `dsms run` writes, as written in the plan
    shed: SheddingRule | None = None  # None: it drops nothing
