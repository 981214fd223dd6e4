"""Random expression trees for tests, and a naive evaluator that computes them row by row."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from dsms.data.schema import Schema
from dsms.expressions.tree import Call, Case, Cast, Column, Expression, Literal, Value
from dsms.expressions.types import type_of

SCHEMA = Schema.of({"n": "int64", "j": "int64", "x": "float64", "b": "bool", "s": "string", "t": "timestamp"})
N, J, X, B, S, T = map(Column, SCHEMA)
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def call(name: str, *arguments: Expression | Value) -> Call:
    """Make a call; plain values become literals."""
    return Call(name, tuple(Literal(a) if isinstance(a, Value) else a for a in arguments))


class NoValueError(Exception):
    """The naive evaluator has no value for a row."""


def number(whole: bool, result: Any) -> Any:
    if whole and not LOWEST <= result <= HIGHEST:
        raise NoValueError
    return result


def divide(a: Any, b: Any, whole: bool) -> Any:
    if b == 0:
        raise NoValueError
    if not whole:
        return float(a) / float(b)
    return number(True, abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def take_remainder(a: Any, b: Any, whole: bool) -> Any:
    if b == 0:
        raise NoValueError
    rest = abs(a) % abs(b) if whole else math.fmod(abs(a), abs(b))
    return -rest if a < 0 else rest


ARITHMETIC: dict[str, Callable[[Any, Any, bool], Any]] = {
    "+": lambda a, b, whole: number(whole, a + b),
    "-": lambda a, b, whole: number(whole, a - b),
    "*": lambda a, b, whole: number(whole, a * b),
    "/": lambda a, b, whole: divide(a, b, False),
    "//": divide,
    "%": take_remainder,
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Any:
    """Return the value for one row; raise NoValueError if there is none."""
    match expression:
        case Column(name):
            return row[name]
        case Literal(value):
            return value
        case Case(branches, otherwise):
            chosen = next((value for condition, value in branches if evaluate(condition, row)), otherwise)
            return convert(evaluate(chosen, row), type_of(expression, SCHEMA))
        case Cast(of, kind):
            return convert(evaluate(of, row), kind)
        case Call("and" | "or" as name, (left, right)):
            return logic(name == "or", left, right, row)
        case Call("coalesce", arguments):
            kind = type_of(expression, SCHEMA)
            return next((convert(v, kind) for part in arguments if (v := evaluate(part, row)) is not None), None)
        case Call(name, arguments):
            return naive_call(name, arguments, row, type_of(expression, SCHEMA))


def convert(value: Any, kind: str) -> Any:
    return float(value) if kind == "float64" and value is not None else value


def logic(decides: bool, left: Expression, right: Expression, row: Mapping[str, Any]) -> Any:
    first = evaluate(left, row)
    if first is decides:
        return decides
    second = evaluate(right, row)
    if second is decides:
        return decides
    return None if first is None or second is None else not decides


def naive_call(name: str, arguments: tuple[Expression, ...], row: Mapping[str, Any], kind: str) -> Any:
    given = [evaluate(part, row) for part in arguments]
    types = [type_of(part, SCHEMA) for part in arguments]
    if name == "is null":
        return given[0] is None
    if name == "in":
        if given[0] is None:
            return None
        found = [None if one is None else one == given[0] for one in given[1:]]
        return True if True in found else None if None in found else False
    if name in ("least", "greatest"):
        known = [convert(one, kind) for one in given if one is not None]
        return (min(known) if name == "least" else max(known)) if known else None
    if None in given:
        return None
    if "float64" in types:
        given = [float(one) if not isinstance(one, str) else one for one in given]
    if name in COMPARISONS:
        return COMPARISONS[name](*given)
    if name == "not":
        return not given[0]
    if name in ("neg", "abs"):
        return number("float64" not in types, -given[0] if name == "neg" else abs(given[0]))
    return ARITHMETIC[name](given[0], given[1], "float64" not in types)


LEAVES: dict[str, list[Expression]] = {
    "int64": [N, J, Literal(0), Literal(3), Literal(-2), Literal(HIGHEST)],
    "float64": [X, Literal(0.5), Literal(0.0)],
    "bool": [B, Literal(True), Literal(False)],
}


def trees(kind: str, depth: int) -> st.SearchStrategy[Expression]:
    """Draw expressions of a type."""
    leaves = st.sampled_from([*LEAVES[kind], *([N] if kind == "float64" else []), Literal(None)])
    if depth == 0:
        return leaves
    inside, truth = st.deferred(lambda: trees(kind, depth - 1)), st.deferred(lambda: trees("bool", depth - 1))
    whole, real = st.deferred(lambda: trees("int64", depth - 1)), st.deferred(lambda: trees("float64", depth - 1))
    pair = st.tuples(inside, inside)
    options = [
        leaves,
        st.builds(lambda c, p: Case(((c, p[0]),), p[1]), truth, pair),
        st.builds(lambda p: Call("coalesce", p), pair),
    ]
    if kind == "bool":
        two = st.one_of(st.tuples(whole, whole), st.tuples(real, whole), st.tuples(real, real))
        options += [
            st.builds(Call, st.sampled_from(["and", "or"]), pair),
            st.builds(Call, st.sampled_from(sorted(COMPARISONS)), two),
            st.builds(lambda p: Call("is null", p), st.tuples(whole)),
            st.builds(lambda p: Call("not", p), st.tuples(inside)),
            st.builds(lambda p: Call("in", p), st.tuples(whole, whole, whole)),
        ]
    else:
        names = ["+", "-", "*", "//", "%", *(["/"] if kind == "float64" else []), "least", "greatest"]
        options += [st.builds(Call, st.sampled_from(names), pair)]
        options += [st.builds(Call, st.sampled_from(["neg", "abs"]), st.tuples(inside))]
    return st.one_of(options)


def nullable(some: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(some, st.none())


INTEGERS = st.one_of(st.integers(-5, 5), st.sampled_from([LOWEST, LOWEST + 1, HIGHEST, 2**32, -(2**31)]))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": nullable(INTEGERS),
            "j": nullable(INTEGERS),
            "x": nullable(st.sampled_from([0.0, -1.5, 2.0, 1e300, 0.1])),
            "b": nullable(st.booleans()),
        }
    ),
    min_size=1,
    max_size=8,
)


def or_fault(expression: Expression, row: Mapping[str, Any]) -> Any:
    """Return the naive value, or "fault"."""
    try:
        return evaluate(expression, row)
    except NoValueError:
        return "fault"
