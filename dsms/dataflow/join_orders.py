"""Lists the dataflow expressions of a join: for each stream, every equivalent order of its operations.

Getta, Vossough: an intermediate result is either stored in a window of its own, or recomputed from the windows below
it. Natural joins may run in any order in which each shares attributes with the join so far, and `(r join s) - t` equals
`(r - t) join s` if r has the attributes. So the steps between two stored results can be reordered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from dsms.dataflow.expression import (
    RESULT_WINDOW,
    DifferenceTerm,
    Expression,
    StreamTerm,
    input_streams,
    intermediate_names,
)
from dsms.dataflow.operation import Dataflow, Operation
from dsms.errors import PlanError, existing

Plan = tuple[Dataflow, ...]


class NotStoredError(PlanError):
    """No order of operations exists unless some intermediate result gets a window."""


@dataclass(frozen=True)
class _Step:
    """A remaining step of an item: join a part; or with `minus`, keep the item only if the part has no equal item."""

    part: Expression
    minus: tuple[str, ...] = ()

    def after(self, have: frozenset[str]) -> Operation | None:
        """Return the operation on an item with these attributes; None: attributes are missing."""
        if self.minus:
            return Operation("left", window_name(self.part), self.minus) if have.issuperset(self.minus) else None
        on = tuple(sorted(have.intersection(self.part.attributes)))
        return Operation("join", window_name(self.part), on) if on else None

    def gains(self, have: frozenset[str]) -> frozenset[str]:
        """Return the attributes of an item after the step."""
        return have if self.minus else have.union(self.part.attributes)


def window_name(part: Expression) -> str:
    """Return the window name of a stream or stored result."""
    return f"w_{part.name}"


def translate(expression: Expression, stored: Collection[str] = ()) -> Plan:
    """Return one dataflow expression for each stream; `stored` names the results with a window (`intermediate_names`).

    The order is the paper's: up the expression, and into results that are not stored from the side of the stream.
    """
    return tuple(next(enumerate_orders(expression, stream.name, stored)) for stream in input_streams(expression))


def enumerate_plans(expression: Expression, stored: Collection[str] = ()) -> Iterator[Plan]:
    """Yield every combination of orders for all streams."""
    return product(*(list(enumerate_orders(expression, stream.name, stored)) for stream in input_streams(expression)))


def enumerate_orders(expression: Expression, stream: str, stored: Collection[str] = ()) -> Iterator[Dataflow]:
    """Yield every order of operations that the attributes of a stream's items allow; the paper's order comes first."""
    if stream not in expression.streams:
        raise PlanError(f"no stream {stream!r} in {expression}{existing(stream, expression.streams)}")
    inside = intermediate_names(expression)
    for name in stored:
        if name not in inside:
            raise PlanError(f"no result {name!r} to store inside {expression}{existing(name, inside)}")
    source, *results = _stored_results(expression, stream, stored)
    recorders = [Operation("record", window_name(part)) for part in results[:-1]]
    choices = [
        [(*order, recorder) for order in _enumerate_operations(before, result, stored)]
        for before, result, recorder in zip(
            [source, *results], results, [*recorders, Operation("record", f"w_{RESULT_WINDOW}")], strict=False
        )
    ]
    first = Operation("record", window_name(source))
    for choice in product(*choices):
        yield Dataflow(stream, (first, *(operation for part in choice for operation in part)))


def _stored_results(expression: Expression, stream: str, stored: Collection[str]) -> list[Expression]:
    """Return the stream, the stored results that contain it from the inside out, and the whole expression."""
    above = []
    part = expression
    while not isinstance(part, StreamTerm):
        if part is expression or part.name in stored:
            above.append(part)
        part = part.left if stream in part.left.streams else part.right
    return [part, *reversed(above)] if above else [part, part]


def _enumerate_operations(
    source: Expression, result: Expression, stored: Collection[str]
) -> Iterator[tuple[Operation, ...]]:
    """Yield the orders of operations from one stored result to the next."""
    minus, steps = _steps(source, result, stored)
    have = frozenset(source.attributes)
    if not minus:
        yield from _sequences(have, steps)
        return
    # Only a whole result can be retracted, so one window must have all the attributes; the rest is joined to it.
    starts = [step for step in steps if not step.minus and set(step.part.attributes).issuperset(minus)]
    if not starts:
        raise NotStoredError(
            f"{source} is subtracted on {list(minus)}, and no window in {result} has all of them; "
            f"store one of {list(intermediate_names(result))}"
        )
    for step in starts:
        first = Operation("right", window_name(step.part), minus, window_name(source))
        rest = [other for other in steps if other is not step]
        for order in _sequences(frozenset(step.part.attributes), rest):
            yield (first, *order)


def _steps(source: Expression, result: Expression, stored: Collection[str]) -> tuple[tuple[str, ...], list[_Step]]:
    """Return the attributes on which the source is subtracted (empty: it is not), and the steps to the result."""
    if isinstance(result, StreamTerm) or result is source:
        return (), []
    within = set(source.streams)
    on_left = within.issubset(result.left.streams)
    if isinstance(result, DifferenceTerm):
        if on_left:
            minus, steps = _steps(source, result.left, stored)
            return minus, [*steps, _Step(_nearest_stored(result.right, stored), tuple(result.on))]
        _nearest_stored(result.right, stored)
        return tuple(result.on), _steps_for(result.left, stored)[::-1]
    near, far = (result.left, result.right) if on_left else (result.right, result.left)
    minus, steps = _steps(source, near, stored)
    return minus, [*steps, *_steps_for(far, stored)[:: 1 if on_left else -1]]


def _steps_for(part: Expression, stored: Collection[str]) -> list[_Step]:
    """Return the steps that join a part: the part itself if it has a window, otherwise its components."""
    if isinstance(part, StreamTerm) or part.name in stored:
        return [_Step(part)]
    if isinstance(part, DifferenceTerm):
        return [*_steps_for(part.left, stored), _Step(_nearest_stored(part.right, stored), tuple(part.on))]
    return [*_steps_for(part.left, stored), *_steps_for(part.right, stored)]


def _nearest_stored(part: Expression, stored: Collection[str]) -> Expression:
    """Return the right side of a difference, which must have a window: its parts cannot show that no item is equal."""
    if isinstance(part, StreamTerm) or part.name in stored:
        return part
    raise NotStoredError(f"{part} is subtracted and has no window; store {part.name!r}")


def _sequences(have: frozenset[str], steps: Sequence[_Step]) -> Iterator[tuple[Operation, ...]]:
    """Yield all orders in which each step has the attributes it needs, the given order first if it qualifies."""
    if not steps:
        yield ()
    for i, step in enumerate(steps):
        operation = step.after(have)
        if operation:
            for rest in _sequences(step.gains(have), [*steps[:i], *steps[i + 1 :]]):
                yield (operation, *rest)
