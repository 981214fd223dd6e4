"""Expressions over columns as trees: what a WHERE or SELECT says, whoever parsed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Value = int | float | bool | str | None


@dataclass(frozen=True)
class Column:
    """A column by its name in the batch."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A constant; None is null, of any type."""

    value: Value


@dataclass(frozen=True)
class Call:
    """A function or operator by its name: `+`, `=`, `and`, `is null`, `like`, `abs`, or one of the user's."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Case:
    """The value beside the first condition that holds; a branch is worked out only for the rows that take it."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression = Literal(None)


@dataclass(frozen=True)
class Cast:
    """The same value as another type."""

    of: Expression
    type: str


Expression = Column | Literal | Call | Case | Cast


def columns_of(expression: Expression) -> frozenset[str]:
    """The names of the columns an expression reads."""
    match expression:
        case Column(name):
            return frozenset({name})
        case Call(_, arguments):
            return frozenset().union(*map(columns_of, arguments))
        case Case(branches, otherwise):
            return columns_of(otherwise).union(*(columns_of(part) for branch in branches for part in branch))
        case Cast(of, _):
            return columns_of(of)
        case _:
            return frozenset()


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a condition that all have to hold."""
    if isinstance(expression, Call) and expression.name == "and":
        return tuple(part for argument in expression.arguments for part in conjuncts(argument))
    return (expression,)


def renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The same expression over columns of other names; those that are not given keep theirs."""
    match expression:
        case Column(name):
            return Column(names.get(name, name))
        case Call(name, arguments):
            return Call(name, tuple(renamed(argument, names) for argument in arguments))
        case Case(branches, otherwise):
            changed = tuple((renamed(when, names), renamed(then, names)) for when, then in branches)
            return Case(changed, renamed(otherwise, names))
        case Cast(of, kind):
            return Cast(renamed(of, names), kind)
        case _:
            return expression
