"""The inputs of a multiway join: validates them, and creates the state that holds each input's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dsms.algebra import Window
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.dataflow import DifferenceTerm, Expression, StreamTerm, input_streams
from dsms.errors import PlanError, existing
from dsms.operators.joins.state.event_order import MAX_PORTS
from dsms.operators.joins.state.key_codes import common_kind
from dsms.operators.joins.state.relation_input import RetractableState
from dsms.operators.joins.state.window_state import FifoWindowState, InputLayout, InputState, StaticState

COMMON_ATTRIBUTE = "*"  # equal in all rows: inputs that share only this one form a cross product


@dataclass(frozen=True)
class JoinInput:
    """One input of a join: a stream with a window, a relation that arrives as changes, or a stored relation."""

    alias: str
    schema: Schema
    window: Window | None = None  # None: its rows come with signs
    attributes: Mapping[str, str] = field(default_factory=dict)  # the column of each attribute of the expression
    rows: Batch | None = None  # stored: it has no port

    def __post_init__(self) -> None:
        for column in self.attributes.values():
            if column not in self.schema:
                raise PlanError(f"input {self.alias!r} has no column {column!r}{existing(column, self.schema)}")
        if self.window is not None and self.window.slide:
            raise PlanError(
                f"the window of {self.alias!r} slides by {self.window.slide}: put a window operator before the join"
            )


def is_join_only(expression: Expression) -> bool:
    """Whether an expression contains only joins, no differences."""
    if isinstance(expression, StreamTerm):
        return True
    return (
        not isinstance(expression, DifferenceTerm) and is_join_only(expression.left) and is_join_only(expression.right)
    )


def output_streams(expression: Expression) -> tuple[str, ...]:
    """Return the streams whose rows are part of the results: not the right sides of differences."""
    if isinstance(expression, StreamTerm):
        return (expression.name,)
    right = () if isinstance(expression, DifferenceTerm) else output_streams(expression.right)
    return (*output_streams(expression.left), *right)


def create_input_states(
    inputs: Sequence[JoinInput], expression: Expression, columns: Sequence[str]
) -> dict[str, InputState]:
    """Create the empty state of each input, by alias."""
    _check(inputs, expression, columns)
    kinds = {
        attribute: common_kind(
            [part.schema[part.attributes[attribute]] for part in inputs if attribute in part.attributes]
        )
        for attribute in {attribute for part in inputs for attribute in part.attributes}
    }
    states: dict[str, InputState] = {}
    port = 0
    for part in inputs:
        needed = {
            *part.attributes.values(),
            *(name.partition(".")[2] for name in columns if _alias_of(name) == part.alias),
        }
        attributes = {name: (column, kinds[name]) for name, column in part.attributes.items()}
        kept = tuple(name for name in part.schema if name in needed)
        layout = InputLayout(part.alias, -1 if part.rows is not None else port, part.schema, kept, attributes)
        if part.rows is not None:
            states[part.alias] = StaticState(layout, part.rows)
            continue
        states[part.alias] = RetractableState(layout) if part.window is None else FifoWindowState(layout, part.window)
        port += 1
    if port > MAX_PORTS:
        raise PlanError(f"a join of {port} inputs: it can have at most {MAX_PORTS}")
    return states


def _check(inputs: Sequence[JoinInput], expression: Expression, columns: Sequence[str]) -> None:
    by_alias = {part.alias: part for part in inputs}
    if len(by_alias) < len(inputs) or set(by_alias) != set(expression.streams):
        raise PlanError(
            f"inputs {[part.alias for part in inputs]} do not match the streams of {expression}: it needs each once"
        )
    if all(by_alias[alias].rows is not None for alias in output_streams(expression)):
        raise PlanError(f"{expression} joins stored relations only and never emits a row: join a stream too")
    for stream in input_streams(expression):
        for attribute in stream.attributes:
            if attribute != COMMON_ATTRIBUTE and attribute not in by_alias[stream.name].attributes:
                known = existing(attribute, by_alias[stream.name].attributes)
                raise PlanError(f"input {stream.name!r} has no column for attribute {attribute!r}{known}")
    known_columns = [f"{alias}.{column}" for alias in output_streams(expression) for column in by_alias[alias].schema]
    for name in columns:
        if name not in known_columns:
            raise PlanError(f"no column {name!r} in the results of {expression}{existing(name, known_columns)}")


def _alias_of(column: str) -> str:
    return column.partition(".")[0]
