"""Logical expressions of joins and differences over streams, independent of the order of evaluation.

Getta, Vossough: joins are natural, so they can be re-associated; `r -x s` is the items of r that equal no item of s
on x.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from dsms.errors import PlanError

RESULT_WINDOW = "out"  # w_out is the window of the whole expression's results


def format_attributes(attributes: Iterable[str]) -> str:
    """Format attributes for messages: `a,c`."""
    return ",".join(attributes)


@dataclass(frozen=True)
class StreamTerm:
    """An input stream with its attributes; "ab" is short for ("a", "b"), as in the paper."""

    name: str
    attributes: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(sorted(set(self.attributes))))
        if not self.name or self.name == RESULT_WINDOW or not self.attributes:
            raise PlanError(
                f"stream {self.name!r} of {[*self.attributes]}: it needs attributes, and a name other than "
                f"{RESULT_WINDOW!r}"
            )

    @property
    def streams(self) -> tuple[str, ...]:
        """The input streams below, from left to right."""
        return (self.name,)

    def __str__(self) -> str:
        return f"{self.name}({format_attributes(self.attributes)})"


@dataclass(frozen=True)
class _BinaryTerm:
    """The common part of joins and differences."""

    left: Expression
    right: Expression
    on: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", tuple(sorted(set(self.on))))
        shared = set(self.left.attributes) & set(self.right.attributes)
        if not self.on or not shared.issuperset(self.on):
            both = sorted(shared) or "there are none"
            raise PlanError(f"{self.left} and {self.right} on {list(self.on)}: expected attributes of both: {both}")
        names = [name for side in (self.left, self.right) for name in _names(side)]
        names += [self.name, RESULT_WINDOW]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise PlanError(
                f"{self} has {twice} twice: each stream and result needs a unique name other than {RESULT_WINDOW!r}"
            )

    @property
    def name(self) -> str:
        """The name of its window, without w_: the concatenated stream names, with _ between longer ones."""
        return ("" if all(len(name) == 1 for name in self.streams) else "_").join(self.streams)

    @property
    def streams(self) -> tuple[str, ...]:
        """The input streams below, from left to right."""
        return self.left.streams + self.right.streams


@dataclass(frozen=True)
class JoinTerm(_BinaryTerm):
    """The natural join; `on` must be all shared attributes, because one name must not have two values."""

    def __post_init__(self) -> None:
        super().__post_init__()
        shared = sorted(set(self.left.attributes) & set(self.right.attributes))
        if list(self.on) != shared:
            raise PlanError(f"{self} omits some of the shared attributes {shared}: join on all, or rename some")

    @property
    def attributes(self) -> Sequence[str]:
        """The attributes of both sides."""
        return tuple(sorted({*self.left.attributes, *self.right.attributes}))

    def __str__(self) -> str:
        return f"({self.left} join[{format_attributes(self.on)}] {self.right})"


@dataclass(frozen=True)
class DifferenceTerm(_BinaryTerm):
    """The items of the left that equal no item of the right on the attributes `on`."""

    @property
    def attributes(self) -> Sequence[str]:
        """The attributes of the left: the right only removes items."""
        return self.left.attributes

    def __str__(self) -> str:
        return f"({self.left} -[{format_attributes(self.on)}] {self.right})"


Expression = StreamTerm | JoinTerm | DifferenceTerm


def input_streams(expression: Expression) -> Iterator[StreamTerm]:
    """Return the streams of an expression, from left to right."""
    if isinstance(expression, StreamTerm):
        return iter((expression,))
    return chain(input_streams(expression.left), input_streams(expression.right))


def intermediate_names(expression: Expression) -> tuple[str, ...]:
    """Return the names of all intermediate results, innermost first; each may get a window."""
    return tuple(name for name in _names(expression)[:-1] if name not in expression.streams)


def subexpressions(expression: Expression) -> list[Expression]:
    """Return the joins and differences inside an expression, innermost first."""
    if isinstance(expression, StreamTerm):
        return []
    inside = [*subexpressions(expression.left), *subexpressions(expression.right)]
    return [*inside, *(part for part in (expression.left, expression.right) if not isinstance(part, StreamTerm))]


def _names(expression: Expression) -> list[str]:
    """Return the names of an expression and all its parts, its own last."""
    if isinstance(expression, StreamTerm):
        return [expression.name]
    return [*_names(expression.left), *_names(expression.right), expression.name]
