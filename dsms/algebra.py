"""Continuous queries as trees of relational operations: what a query means, before anybody decides how to run it.

Every part puts out rows with a sign, in the order of their timestamps. Added up, the rows of a relation up to an
instant are what it holds then; the rows of a stream (`appends`) are never taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from dsms import dataflow
from dsms.expressions.tree import Expression
from dsms.schema import Schema


@dataclass(frozen=True)
class Window:
    """Which rows of a stream count now; times in microseconds."""

    kind: OneOf["rows", "range", "unbounded"] = "unbounded"
    length: int = 0  # rows; or how long a row counts: from its ts to ts + length, both included (0: NOW)
    slide: int = 0  # contents change at multiples of this alone, in time or in rows; slide == length: tumbling


@dataclass(frozen=True)
class Stream:
    """The rows of an input stream."""

    name: str
    schema: Schema
    appends = True


@dataclass(frozen=True)
class Stored:
    """A relation from a file, which does not change; only ever an input of a join."""

    name: str
    schema: Schema
    appends = True


class _SameColumns:
    """A part with the columns of what it reads."""

    of: Node

    @property
    def schema(self) -> Schema:
        return self.of.schema


class _SameSigns:
    """A part that appends if what it reads does."""

    of: Node

    @property
    def appends(self) -> bool:
        return self.of.appends


@dataclass(frozen=True)
class Named(_SameColumns, _SameSigns):
    """The results of another query of the plan."""

    name: str
    of: Node


@dataclass(frozen=True)
class Windowed(_SameColumns):
    """A window on a stream: a relation."""

    of: Node
    window: Window

    @property
    def appends(self) -> bool:
        return self.window.kind == "unbounded"


@dataclass(frozen=True)
class Select(_SameColumns, _SameSigns):
    """The rows for which a condition holds; unknown is not true."""

    of: Node
    condition: Expression


@dataclass(frozen=True)
class Project(_SameSigns):
    """New columns from old ones, by expressions."""

    of: Node
    items: tuple[tuple[str, Expression], ...]
    schema: Schema


@dataclass(frozen=True)
class Apply(_SameSigns):
    """User code over whole batches."""

    of: Node
    function: str  # module:name
    schema: Schema


@dataclass(frozen=True)
class Join:
    """Inputs with equal values in the paired columns; an output column is called alias.column."""

    inputs: tuple[tuple[str, Node], ...]  # alias, input; two or more
    on: tuple[tuple[str, str], ...]  # pairs of qualified columns of different inputs, as in ("r.src", "s.src")
    schema: Schema  # qualified columns of all inputs

    @property
    def appends(self) -> bool:
        return all(part.appends for _, part in self.inputs)


@dataclass(frozen=True)
class Difference:
    """The rows of the left whose columns equal those of no row of the right."""

    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]  # pairs: column of the left, column of the right
    nulls: bool = False  # whether a null equals a null: in EXCEPT it does
    appends = False

    @property
    def schema(self) -> Schema:
        return self.left.schema


@dataclass(frozen=True)
class Union:
    """The rows of all inputs, which have columns of the same types; named as in the first."""

    inputs: tuple[Node, ...]

    @property
    def schema(self) -> Schema:
        return self.inputs[0].schema

    @property
    def appends(self) -> bool:
        return all(part.appends for part in self.inputs)


@dataclass(frozen=True)
class Aggregation:
    """One column of a grouping: `count` without a column counts rows; nulls are passed over by all others."""

    name: str  # of the output column
    function: OneOf["count", "sum", "avg", "min", "max", "count distinct"]
    column: str | None


@dataclass(frozen=True)
class Aggregate:
    """One row a group; without keys, one row in all, even of nothing."""

    of: Node
    keys: tuple[str, ...]
    aggregations: tuple[Aggregation, ...]
    schema: Schema  # the keys, then the aggregations
    every: bool = False  # whether an instant that changes nothing is told too
    appends = False


@dataclass(frozen=True)
class Distinct(_SameColumns, _SameSigns):
    """Each row once."""

    of: Node


@dataclass(frozen=True)
class ToStream(_SameColumns):
    """A relation's changes as a stream: what came (istream), what went (dstream), or all at each change (rstream)."""

    of: Node
    kind: OneOf["istream", "dstream", "rstream"]
    appends = True


Emit = OneOf["both", "births", "deaths"]  # of what a flow puts out: rows of both signs, or those of one as a stream


@dataclass(frozen=True)
class Input:
    """One input of a flow: a window on a stream, a relation (no window), or a stored relation."""

    alias: str
    of: Node
    window: Window | None
    attributes: tuple[tuple[str, str], ...] = ()  # the dataflow attribute, and the column it is here


@dataclass(frozen=True)
class Flow:
    """Joins and differences as the dataflow level has them: inputs that meet by an expression of attributes."""

    inputs: tuple[Input, ...]
    expression: dataflow.Expression
    schema: Schema  # qualified columns
    emit: Emit = "both"

    @property
    def appends(self) -> bool:
        return self.emit != "both" or all(part.window == Window() for part in self.inputs)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """What a part reads directly; of another query's results, nothing: they are its own."""
    match node:
        case Stream() | Stored() | Named():
            return ()
        case Join(inputs=inputs):
            return tuple(part for _, part in inputs)
        case Flow(inputs=parts):
            return tuple(part.of for part in parts)
        case Union(inputs=nodes):
            return nodes
        case Difference(left, right):
            return (left, right)
        case _:
            return (node.of,)


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """The same part, reading these instead."""
    match node:
        case Stream() | Stored() | Named() | Flow():
            return node
        case Join(inputs=before):
            return replace(node, inputs=tuple((alias, new) for (alias, _), new in zip(before, inputs, strict=True)))
        case Union():
            return replace(node, inputs=tuple(inputs))
        case Difference():
            left, right = inputs
            return replace(node, left=left, right=right)
        case _:
            (of,) = inputs
            return replace(node, of=of)


Node = (
    Stream | Stored | Named | Windowed | Select | Project | Apply | Join | Difference | Union | Aggregate | Distinct
    | ToStream | Flow
)  # fmt: skip
