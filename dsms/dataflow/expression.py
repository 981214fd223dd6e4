"""Logical expressions over streams: what a query means, whatever the order in which it is worked out.

Getta, Vossough: joins are natural, so that they may be re-associated; `r -x s` is what of r no item of s equals on x.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from dsms.errors import PlanError

RESULT = "out"  # the window of the whole expression's results is w_out


def listed(attributes: Iterable[str]) -> str:
    """Attributes as they are printed: `a,c`."""
    return ",".join(attributes)


@dataclass(frozen=True)
class Stream:
    """An input stream and its attributes; "ab" is short for ("a", "b"), as in the paper."""

    name: str
    attributes: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(sorted(set(self.attributes))))
        if not self.name or self.name == RESULT or not self.attributes:
            raise PlanError(f"stream {self.name!r} of {[*self.attributes]} needs attributes and a name, not {RESULT!r}")

    @property
    def streams(self) -> tuple[str, ...]:
        """The input streams below, from left to right."""
        return (self.name,)

    def __str__(self) -> str:
        return f"{self.name}({listed(self.attributes)})"


@dataclass(frozen=True)
class _Pair:
    """What the operations of two arguments have in common."""

    left: Expression
    right: Expression
    on: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", tuple(sorted(set(self.on))))
        shared = set(self.left.attributes) & set(self.right.attributes)
        if not self.on or not shared.issuperset(self.on):
            raise PlanError(f"{self.left} meets {self.right} on {list(self.on)}: they share {sorted(shared)}")
        names = [name for side in (self.left, self.right) for name in _names(side)]
        names += [self.name, RESULT]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise PlanError(f"{self} has {twice} twice: each stream and result needs a name of its own, not {RESULT!r}")

    @property
    def name(self) -> str:
        """What its window is called after w_: its streams' names in a row, apart where they are not single letters."""
        return ("" if all(len(name) == 1 for name in self.streams) else "_").join(self.streams)

    @property
    def streams(self) -> tuple[str, ...]:
        """The input streams below, from left to right."""
        return self.left.streams + self.right.streams


@dataclass(frozen=True)
class Join(_Pair):
    """The natural join; `on` has to be all that the two share, as one name must not stand for two values."""

    def __post_init__(self) -> None:
        super().__post_init__()
        shared = sorted(set(self.left.attributes) & set(self.right.attributes))
        if list(self.on) != shared:
            raise PlanError(f"{self} leaves out some of the attributes {shared} that both have: join on all or rename")

    @property
    def attributes(self) -> Sequence[str]:
        """Those of both."""
        return tuple(sorted({*self.left.attributes, *self.right.attributes}))

    def __str__(self) -> str:
        return f"({self.left} join[{listed(self.on)}] {self.right})"


@dataclass(frozen=True)
class Difference(_Pair):
    """What is in the left and equals nothing in the right on the attributes `on`."""

    @property
    def attributes(self) -> Sequence[str]:
        """Those of the left: the right only takes away."""
        return self.left.attributes

    def __str__(self) -> str:
        return f"({self.left} -[{listed(self.on)}] {self.right})"


Expression = Stream | Join | Difference


def inputs(expression: Expression) -> Iterator[Stream]:
    """The streams of an expression, from left to right."""
    if isinstance(expression, Stream):
        return iter((expression,))
    return chain(inputs(expression.left), inputs(expression.right))


def intermediates(expression: Expression) -> tuple[str, ...]:
    """The names of all results inside an expression, the innermost first: each may be given a window."""
    return tuple(name for name in _names(expression)[:-1] if name not in expression.streams)


def parts(expression: Expression) -> list[Expression]:
    """The operations inside an expression, the innermost first."""
    if isinstance(expression, Stream):
        return []
    inside = [*parts(expression.left), *parts(expression.right)]
    return [*inside, *(part for part in (expression.left, expression.right) if not isinstance(part, Stream))]


def _names(expression: Expression) -> list[str]:
    """The names of an expression and all its parts, its own last."""
    if isinstance(expression, Stream):
        return [expression.name]
    return [*_names(expression.left), *_names(expression.right), expression.name]
