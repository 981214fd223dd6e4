"""From a logical expression to dataflow expressions, one a stream, in every order that means the same.

Getta, Vossough: a result inside the expression is either stored in a window of its own, or worked out anew from the
windows below it. Then natural joins are taken in any order in which each shares attributes with what is joined so far,
and `(r join s) - t` is `(r - t) join s` where r has the attributes: between two stored results lies one set of steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from dsms.dataflow.expression import RESULT, Difference, Expression, Stream, inputs, intermediates
from dsms.dataflow.operation import Dataflow, Operation
from dsms.errors import PlanError, existing

Plan = tuple[Dataflow, ...]


class NotStoredError(PlanError):
    """A result without a window that no order of operations can do without."""


@dataclass(frozen=True)
class _Step:
    """What is yet to be done to an item: join a part, or with `minus` stay only if nothing in the part equals it."""

    part: Expression
    minus: tuple[str, ...] = ()

    def after(self, have: frozenset[str]) -> Operation | None:
        """The operation on an item that has these attributes; None where they are not enough."""
        if self.minus:
            return Operation("left", window(self.part), self.minus) if have.issuperset(self.minus) else None
        on = tuple(sorted(have.intersection(self.part.attributes)))
        return Operation("join", window(self.part), on) if on else None

    def gains(self, have: frozenset[str]) -> frozenset[str]:
        """The attributes of an item after it."""
        return have if self.minus else have.union(self.part.attributes)


def window(part: Expression) -> str:
    """The name of the window of a stream or of a stored result."""
    return f"w_{part.name}"


def translate(expression: Expression, stored: Collection[str] = ()) -> Plan:
    """One dataflow expression a stream; `stored` names the results with a window: see `intermediates`.

    The order is the paper's: up the expression, and what is not stored is entered from the side of the stream.
    """
    return tuple(next(orders(expression, stream.name, stored)) for stream in inputs(expression))


def plans(expression: Expression, stored: Collection[str] = ()) -> Iterator[Plan]:
    """Every choice of an order for every stream."""
    return product(*(list(orders(expression, stream.name, stored)) for stream in inputs(expression)))


def orders(expression: Expression, stream: str, stored: Collection[str] = ()) -> Iterator[Dataflow]:
    """Every order of the operations on a stream's items that its attributes allow; the paper's comes first."""
    if stream not in expression.streams:
        raise PlanError(f"no stream {stream!r} in {expression}{existing(stream, expression.streams)}")
    inside = intermediates(expression)
    for name in stored:
        if name not in inside:
            raise PlanError(f"no result {name!r} to store inside {expression}{existing(name, inside)}")
    source, *results = _stops(expression, stream, stored)
    recorders = [Operation("record", window(part)) for part in results[:-1]]
    ways = [
        [(*way, recorder) for way in _ways(before, result, stored)]
        for before, result, recorder in zip(
            [source, *results], results, [*recorders, Operation("record", f"w_{RESULT}")], strict=False
        )
    ]
    first = Operation("record", window(source))
    for way in product(*ways):
        yield Dataflow(stream, (first, *(operation for part in way for operation in part)))


def _stops(expression: Expression, stream: str, stored: Collection[str]) -> list[Expression]:
    """From a stream up: itself, the stored results that it is part of, the whole expression."""
    above = []
    part = expression
    while not isinstance(part, Stream):
        if part is expression or part.name in stored:
            above.append(part)
        part = part.left if stream in part.left.streams else part.right
    return [part, *reversed(above)] if above else [part, part]


def _ways(source: Expression, result: Expression, stored: Collection[str]) -> Iterator[tuple[Operation, ...]]:
    """The orders of operations that lead from one stop to the next."""
    taken_from, steps = _steps(source, result, stored)
    have = frozenset(source.attributes)
    if not taken_from:
        yield from _sequences(have, steps)
        return
    # Only a whole result can be taken back, so a single window has to tell which; the rest is joined to it.
    able = [step for step in steps if not step.minus and set(step.part.attributes).issuperset(taken_from)]
    if not able:
        raise NotStoredError(
            f"{source} takes away on {list(taken_from)}, which no window in {result} has together; "
            f"store one of {list(intermediates(result))}"
        )
    for step in able:
        first = Operation("right", window(step.part), taken_from, window(source))
        rest = [other for other in steps if other is not step]
        for way in _sequences(frozenset(step.part.attributes), rest):
            yield (first, *way)


def _steps(source: Expression, result: Expression, stored: Collection[str]) -> tuple[tuple[str, ...], list[_Step]]:
    """What is to be done between two stops, nearest first; and the attributes on which the source takes away, if so."""
    if isinstance(result, Stream) or result is source:
        return (), []
    within = set(source.streams)
    on_left = within.issubset(result.left.streams)
    if isinstance(result, Difference):
        if on_left:
            minus, steps = _steps(source, result.left, stored)
            return minus, [*steps, _Step(_kept(result.right, stored), tuple(result.on))]
        _kept(result.right, stored)
        return tuple(result.on), _parts(result.left, stored)[::-1]
    near, far = (result.left, result.right) if on_left else (result.right, result.left)
    minus, steps = _steps(source, near, stored)
    return minus, [*steps, *_parts(far, stored)[:: 1 if on_left else -1]]


def _parts(part: Expression, stored: Collection[str]) -> list[_Step]:
    """The steps that make up a part: itself if there is a window of it, or all that it is made from."""
    if isinstance(part, Stream) or part.name in stored:
        return [_Step(part)]
    if isinstance(part, Difference):
        return [*_parts(part.left, stored), _Step(_kept(part.right, stored), tuple(part.on))]
    return [*_parts(part.left, stored), *_parts(part.right, stored)]


def _kept(part: Expression, stored: Collection[str]) -> Expression:
    """What takes away, which must have a window: whether nothing equals an item is no question to its parts."""
    if isinstance(part, Stream) or part.name in stored:
        return part
    raise NotStoredError(f"{part} takes away and has no window; store {part.name!r}")


def _sequences(have: frozenset[str], steps: Sequence[_Step]) -> Iterator[tuple[Operation, ...]]:
    """All orders of steps in which each has the attributes it needs, in the order of the steps where they do."""
    if not steps:
        yield ()
    for i, step in enumerate(steps):
        operation = step.after(have)
        if operation:
            for rest in _sequences(step.gains(have), [*steps[:i], *steps[i + 1 :]]):
                yield (operation, *rest)
