"""The relational algebra of continuous queries: a logical query tree, before the planner chooses operators for it.

Every node emits rows with a sign, in timestamp order. The signed rows of a relation up to an instant add up to its
contents at that instant. An append-only node (`is_append_only`) never retracts a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from dsms import dataflow
from dsms.data.schema import Schema
from dsms.expressions.tree import Expression


@dataclass(frozen=True)
class Window:
    """Which rows of a stream are in the relation at an instant; times in microseconds."""

    kind: OneOf["rows", "range", "unbounded"] = "unbounded"
    length: int = 0  # in rows; or in time: a row is inside from ts to ts + length, both included (0: NOW)
    slide: int = 0  # contents change only at multiples of this, in time or in rows; slide == length: tumbling


@dataclass(frozen=True)
class StreamScan:
    """The rows of an input stream."""

    name: str
    schema: Schema
    is_append_only = True


@dataclass(frozen=True)
class StoredRelation:
    """A relation that is read from a file and never changes; only a join can read it."""

    name: str
    schema: Schema
    is_append_only = True


class _KeepsColumns:
    """A node with the same columns as its input."""

    of: Node

    @property
    def schema(self) -> Schema:
        return self.of.schema


class _KeepsSigns:
    """A node that is append-only if its input is."""

    of: Node

    @property
    def is_append_only(self) -> bool:
        return self.of.is_append_only


@dataclass(frozen=True)
class AliasedNode(_KeepsColumns, _KeepsSigns):
    """The results of another query in the plan."""

    name: str
    of: Node


@dataclass(frozen=True)
class Windowed(_KeepsColumns):
    """A window over a stream; the result is a relation."""

    of: Node
    window: Window

    @property
    def is_append_only(self) -> bool:
        return self.window.kind == "unbounded"


@dataclass(frozen=True)
class Select(_KeepsColumns, _KeepsSigns):
    """The rows for which a condition is true; unknown does not count as true."""

    of: Node
    condition: Expression


@dataclass(frozen=True)
class Project(_KeepsSigns):
    """New columns that expressions compute from the input's columns."""

    of: Node
    items: tuple[tuple[str, Expression], ...]
    schema: Schema


@dataclass(frozen=True)
class Apply(_KeepsSigns):
    """A user function applied to whole batches."""

    of: Node
    function: str  # module:name
    schema: Schema


@dataclass(frozen=True)
class Join:
    """An equi-join of two or more inputs; its output columns are named alias.column."""

    inputs: tuple[tuple[str, Node], ...]  # alias, input; two or more
    on: tuple[tuple[str, str], ...]  # pairs of qualified columns of different inputs, as in ("r.src", "s.src")
    schema: Schema  # qualified columns of all inputs

    @property
    def is_append_only(self) -> bool:
        return all(part.is_append_only for _, part in self.inputs)


@dataclass(frozen=True)
class Difference:
    """The rows of the left input that match no row of the right input (an anti-join)."""

    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]  # pairs: column of the left, column of the right
    nulls_equal: bool = False  # whether null equals null, as in EXCEPT
    is_append_only = False

    @property
    def schema(self) -> Schema:
        return self.left.schema


@dataclass(frozen=True)
class Union:
    """The rows of all inputs; column types must agree, and names come from the first input."""

    inputs: tuple[Node, ...]

    @property
    def schema(self) -> Schema:
        return self.inputs[0].schema

    @property
    def is_append_only(self) -> bool:
        return all(part.is_append_only for part in self.inputs)


@dataclass(frozen=True)
class Aggregation:
    """One aggregate column: `count` without a column counts rows; all other aggregates skip nulls."""

    name: str  # of the output column
    function: OneOf["count", "sum", "avg", "min", "max", "count distinct"]
    column: str | None


@dataclass(frozen=True)
class Aggregate:
    """One row for each group; without keys exactly one row, even if the input is empty."""

    of: Node
    keys: tuple[str, ...]
    aggregations: tuple[Aggregation, ...]
    schema: Schema  # the keys, then the aggregations
    emit_unchanged: bool = False  # whether an instant that touches a group without changing it emits a row too
    is_append_only = False


@dataclass(frozen=True)
class Distinct(_KeepsColumns, _KeepsSigns):
    """The input without duplicate rows."""

    of: Node


@dataclass(frozen=True)
class ToStream(_KeepsColumns):
    """A relation as a stream: its insertions (istream), deletions (dstream), or all rows at each change (rstream)."""

    of: Node
    kind: OneOf["istream", "dstream", "rstream"]
    is_append_only = True


# Which changes a multiway join emits: rows of both signs, or the rows of one sign as a stream.
Emit = OneOf["both", "insertions", "deletions"]


@dataclass(frozen=True)
class MultiwayJoinInput:
    """One input of a multiway join: a window over a stream, a relation (no window), or a stored relation."""

    alias: str
    of: Node
    window: Window | None
    attributes: tuple[tuple[str, str], ...] = ()  # pairs: dataflow attribute, column of this input


@dataclass(frozen=True)
class MultiwayJoin:
    """Joins and differences of several inputs as one dataflow expression over their attributes."""

    inputs: tuple[MultiwayJoinInput, ...]
    expression: dataflow.Expression
    schema: Schema  # qualified columns
    emit: Emit = "both"

    @property
    def is_append_only(self) -> bool:
        return self.emit != "both" or all(part.window == Window() for part in self.inputs)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node reads directly; an `AliasedNode` has none, because another query owns its input."""
    match node:
        case StreamScan() | StoredRelation() | AliasedNode():
            return ()
        case Join(inputs=inputs):
            return tuple(part for _, part in inputs)
        case MultiwayJoin(inputs=parts):
            return tuple(part.of for part in parts)
        case Union(inputs=nodes):
            return nodes
        case Difference(left, right):
            return (left, right)
        case _:
            return (node.of,)


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """Return a copy of the node that reads other inputs."""
    match node:
        case StreamScan() | StoredRelation() | AliasedNode() | MultiwayJoin():
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
    StreamScan | StoredRelation | AliasedNode | Windowed | Select | Project | Apply | Join | Difference | Union
    | Aggregate | Distinct | ToStream | MultiwayJoin
)  # fmt: skip
