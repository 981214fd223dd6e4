"""The inputs of a join: what they are, what of them is kept, and the sides that hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dsms.algebra import Window
from dsms.batch import Batch
from dsms.dataflow import Difference, Expression, Stream
from dsms.dataflow import inputs as streams
from dsms.errors import PlanError, existing
from dsms.joins.events import PORTS
from dsms.joins.keys import common_kind
from dsms.joins.relation import RelationSide
from dsms.joins.sides import FifoSide, InputSide, Layout, StoredSide
from dsms.schema import Schema

ANYTHING = "*"  # an attribute that all rows agree in: inputs that share it alone meet in all their rows


@dataclass(frozen=True)
class Input:
    """One input of a join: a stream with a window, a relation that comes as changes, or one that is always there."""

    alias: str
    schema: Schema
    window: Window | None = None  # None: its rows come with signs
    attributes: Mapping[str, str] = field(default_factory=dict)  # of the expression: the column of each
    rows: Batch | None = None  # stored: it has no port

    def __post_init__(self) -> None:
        for column in self.attributes.values():
            if column not in self.schema:
                raise PlanError(f"input {self.alias!r} has no column {column!r}{existing(column, self.schema)}")
        if self.window is not None and self.window.slide:
            raise PlanError(f"the window of {self.alias!r} slides by {self.window.slide}: record it before the join")


def pure(expression: Expression) -> bool:
    """Whether it is made of joins alone."""
    if isinstance(expression, Stream):
        return True
    return not isinstance(expression, Difference) and pure(expression.left) and pure(expression.right)


def shown(expression: Expression) -> tuple[str, ...]:
    """The streams whose rows are in the results: not those that only take away."""
    if isinstance(expression, Stream):
        return (expression.name,)
    right = () if isinstance(expression, Difference) else shown(expression.right)
    return (*shown(expression.left), *right)


def sides_of(inputs: Sequence[Input], expression: Expression, columns: Sequence[str]) -> dict[str, InputSide]:
    """An empty side for each input, by alias."""
    _check(inputs, expression, columns)
    kinds = {
        attribute: common_kind(
            [part.schema[part.attributes[attribute]] for part in inputs if attribute in part.attributes]
        )
        for attribute in {attribute for part in inputs for attribute in part.attributes}
    }
    found: dict[str, InputSide] = {}
    port = 0
    for part in inputs:
        wanted = {
            *part.attributes.values(),
            *(name.partition(".")[2] for name in columns if _alias(name) == part.alias),
        }
        attributes = {name: (column, kinds[name]) for name, column in part.attributes.items()}
        kept = tuple(name for name in part.schema if name in wanted)
        layout = Layout(part.alias, -1 if part.rows is not None else port, part.schema, kept, attributes)
        if part.rows is not None:
            found[part.alias] = StoredSide(layout, part.rows)
            continue
        found[part.alias] = RelationSide(layout) if part.window is None else FifoSide(layout, part.window)
        port += 1
    if port > PORTS:
        raise PlanError(f"a join of {port} inputs; there are at most {PORTS}")
    return found


def _check(inputs: Sequence[Input], expression: Expression, columns: Sequence[str]) -> None:
    by_alias = {part.alias: part for part in inputs}
    if len(by_alias) < len(inputs) or set(by_alias) != set(expression.streams):
        raise PlanError(f"inputs {[part.alias for part in inputs]} are not the streams of {expression}, each once")
    if all(by_alias[alias].rows is not None for alias in shown(expression)):
        raise PlanError(f"all rows of {expression} are stored: nothing would ever come")
    for stream in streams(expression):
        for attribute in stream.attributes:
            if attribute != ANYTHING and attribute not in by_alias[stream.name].attributes:
                known = existing(attribute, by_alias[stream.name].attributes)
                raise PlanError(f"input {stream.name!r} has no column for attribute {attribute!r}{known}")
    known_columns = [f"{alias}.{column}" for alias in shown(expression) for column in by_alias[alias].schema]
    for name in columns:
        if name not in known_columns:
            raise PlanError(f"no column {name!r} in the results of {expression}{existing(name, known_columns)}")


def _alias(column: str) -> str:
    return column.partition(".")[0]
