"""The expression tree of WHERE conditions and SELECT columns, independent of the parser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COMPARISON_CALLS = ("=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is null")
Value = int | float | bool | str | None


@dataclass(frozen=True)
class Column:
    """A column by its name in the batch."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A constant; None is a null of any type."""

    value: Value


@dataclass(frozen=True)
class Call:
    """A call of a function or operator by name: `+`, `=`, `and`, `is null`, `like`, `abs`, or a user function."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Case:
    """The value of the first true condition; a branch is evaluated only for the rows that take it."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression = Literal(None)


@dataclass(frozen=True)
class Cast:
    """A value converted to another type."""

    of: Expression
    type: str


Expression = Column | Literal | Call | Case | Cast

INFIX = frozenset(["+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or", "like", "||"])


def columns_of(expression: Expression) -> frozenset[str]:
    """Return the names of the columns that an expression reads."""
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


def is_comparison_only(expression: Expression) -> bool:
    """Whether an expression only compares columns and constants, so that it cannot fail."""
    if isinstance(expression, Call):
        return expression.name in COMPARISON_CALLS and all(map(is_comparison_only, expression.arguments))
    return isinstance(expression, Column | Literal)


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Return the parts of a condition that `and` combines."""
    if isinstance(expression, Call) and expression.name == "and":
        return tuple(part for argument in expression.arguments for part in conjuncts(argument))
    return (expression,)


def rename_columns(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Return the expression with some columns renamed; all others keep their names."""
    match expression:
        case Column(name):
            return Column(names.get(name, name))
        case Call(name, arguments):
            return Call(name, tuple(rename_columns(argument, names) for argument in arguments))
        case Case(branches, otherwise):
            changed = tuple((rename_columns(when, names), rename_columns(then, names)) for when, then in branches)
            return Case(changed, rename_columns(otherwise, names))
        case Cast(of, kind):
            return Cast(rename_columns(of, names), kind)
        case _:
            return expression


def text_of(expression: Expression) -> str:
    """Return an expression as SQL text, for messages."""
    match expression:
        case Column(name):
            return name
        case Literal(value):
            if isinstance(value, str):
                return "'" + value.replace("'", "''") + "'"
            return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
        case Cast(of, kind):
            return f"cast({text_of(of)} as {kind})"
        case Case(branches, otherwise):
            parts = [f"when {text_of(condition)} then {text_of(value)}" for condition, value in branches]
            return " ".join(["case", *parts, f"else {text_of(otherwise)} end"])
        case Call(name, arguments):
            return _call_text(name, arguments)


def _call_text(name: str, arguments: tuple[Expression, ...]) -> str:
    texts = [f"({text_of(part)})" if _is_infix(part) else text_of(part) for part in arguments]
    if name in ("neg", "not"):
        return f"{'-' if name == 'neg' else 'not '}{texts[0]}"
    if name == "is null":
        return f"{texts[0]} is null"
    if name == "in":
        return f"{texts[0]} in ({', '.join(map(text_of, arguments[1:]))})"
    if name in INFIX:
        return f" {name} ".join(texts)
    return f"{name}({', '.join(map(text_of, arguments))})"


def _is_infix(expression: Expression) -> bool:
    return isinstance(expression, Call) and (
        expression.name in INFIX or expression.name in ("neg", "not", "in", "is null")
    )
