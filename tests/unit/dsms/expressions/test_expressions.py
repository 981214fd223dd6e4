"""Expressions: types, and values, nulls and row errors against a naive evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.queries.naive_expressions import (
    ARITHMETIC,
    HIGHEST,
    LOWEST,
    ROWS,
    SCHEMA,
    B,
    J,
    N,
    S,
    T,
    X,
    call,
    or_fault,
    trees,
)
from support.strategies import DETERMINISTIC, EXAMPLES

from dsms.data.batch import NULLS_SUFFIX
from dsms.data.schema import DTYPES, Schema
from dsms.expressions.evaluate import compile_evaluator
from dsms.expressions.functions import UserFunction
from dsms.expressions.row_errors import RowErrors
from dsms.expressions.tree import Call, Case, Cast, Column, Expression, Literal, text_of
from dsms.expressions.types import ExpressionError, type_of


def columns(schema: Schema = SCHEMA, **values: list[Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Columns of these values, None as null."""
    made = {}
    for name, column in values.items():
        kind = schema[name]
        filled = [("" if kind == "string" else 0) if value is None else value for value in column]
        made[name] = np.array(filled, dtype=DTYPES[kind])
        if None in column:
            made[name + NULLS_SUFFIX] = np.array([value is None for value in column])
    return made


def values(
    expression: Expression, functions: Mapping[str, UserFunction] | None = None, rows: int = 0, **given: list[Any]
) -> list[Any]:
    """Return for each row the value of the expression, None for null, or the reason of the error."""
    evaluator = compile_evaluator(expression, SCHEMA, functions or {})
    faults = RowErrors()
    rows = max([rows, *map(len, given.values())])
    column, nulls = evaluator(columns(**given), rows, faults)
    assert len(column) == rows
    if evaluator.type != "null":
        assert column.dtype == DTYPES[evaluator.type]
    answers = column.tolist()
    for row in [] if nulls is None else np.flatnonzero(nulls).tolist():
        answers[row] = None
    for positions, reason in faults.by_reason(rows):
        for row in positions.tolist():
            answers[row] = f"fault: {reason}"
    return answers


def value(expression: Expression) -> Any:
    return values(expression, rows=1)[0]


def marked(answers: list[Any]) -> list[Any]:
    """Replace every error by the same mark."""
    return ["fault" if isinstance(one, str) else one for one in answers]


@settings(DETERMINISTIC, max_examples=EXAMPLES or 400)
@given(st.one_of(trees("bool", 3), trees("int64", 3), trees("float64", 3)), ROWS)
def test_values_nulls_and_errors_equal_a_naive_evaluator(expression: Expression, rows: Any) -> None:
    expected = [or_fault(expression, row) for row in rows]
    got = marked(values(expression, **{name: [row[name] for row in rows] for name in rows[0]}))
    assert got == [pytest.approx(one, nan_ok=True) if isinstance(one, float) else one for one in expected]


CORNERS = [LOWEST, LOWEST + 1, -(2**32), -7, -2, -1, 0, 1, 2, 7, 2**31, 2**32, HIGHEST - 1, HIGHEST]


@pytest.mark.parametrize("name", ARITHMETIC)
def test_integer_arithmetic_is_right_up_to_the_int64_limits(name: str) -> None:
    pairs = [{"n": a, "j": b} for a in CORNERS for b in CORNERS]
    got = values(call(name, N, J), n=[pair["n"] for pair in pairs], j=[pair["j"] for pair in pairs])
    assert marked(got) == [or_fault(call(name, N, J), pair) for pair in pairs]
    for constant in CORNERS:
        for signs in (CORNERS[:6], CORNERS[6:]):
            for expression in (call(name, N, constant), call(name, constant, N)):
                assert marked(values(expression, n=signs)) == [or_fault(expression, {"n": a}) for a in signs]


TRUTHS = [True, False, None]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("and", [True, False, None, False, False, False, None, False, None]),
        ("or", [True, True, True, True, False, None, True, None, None]),
    ],
)
def test_and_and_or_have_three_values(name: str, expected: list[bool | None]) -> None:
    pairs = [(a, b) for a in TRUTHS for b in TRUTHS]
    assert [value(call(name, a, b)) for a, b in pairs] == expected
    column = [a for a, _ in pairs]
    other = Case(((call("=", N, 1), Literal(True)), (call("=", N, 0), Literal(False))))
    assert values(Call(name, (B, other)), b=column, n=[{True: 1, False: 0, None: 2}[b] for _, b in pairs]) == expected


def test_not_of_unknown_is_unknown_and_is_null_is_known() -> None:
    assert values(call("not", B), b=TRUTHS) == [False, True, None]
    assert values(call("is null", B), b=TRUTHS) == [False, False, True]
    assert values(call("is null", B), b=[True]) == [False]


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("-7 // 2", call("//", -7, 2)),
        ("7 // -2", call("//", 7, -2)),
        ("-7 % 3", call("%", -7, 3)),
        ("7 % -3", call("%", 7, -3)),
        ("-7.5::double // 2", call("//", -7.5, 2)),
        ("-7.5::double % 2", call("%", -7.5, 2)),
        ("1 / 4", call("/", 1, 4)),
        ("round(-2.5::double)", call("round", -2.5)),
        ("round(2.5::double)", call("round", 2.5)),
        ("round(0.49999999999999994::double)", call("round", 0.49999999999999994)),
        ("round(2.675::double, 2)", call("round", 2.675, 2)),
        ("round(1234.5::double, -2)", call("round", 1234.5, -2)),
        ("round(1250, -2)", call("round", 1250, -2)),
        ("round(-1250, -2)", call("round", -1250, -2)),
        ("round(1250, 2)", call("round", 1250, 2)),
        ("floor(-1.5::double)", call("floor", -1.5)),
        ("ceil(7)", call("ceil", 7)),
        ("sqrt(2)", call("sqrt", 2)),
        ("ln(2)", call("ln", 2)),
        ("exp(1)", call("exp", 1)),
        ("power(2, -1)", call("power", 2, -1)),
        ("least(3, null, 2)", call("least", 3, None, 2)),
        ("greatest('a', 'b')", call("greatest", "a", "b")),
        ("least(trim('b'), lower('A'))", Call("least", (call("trim", "b"), call("lower", "A")))),
        ("coalesce(null, 4)", call("coalesce", None, 4)),
        ("nullif(3, 3)", call("nullif", 3, 3)),
        ("nullif(3, null)", call("nullif", 3, None)),
        ("lower('AbC')", call("lower", "AbC")),
        ("upper('AbC')", call("upper", "AbC")),
        ("length('né')", call("length", "né")),
        ("trim('  a b ')", call("trim", "  a b ")),
        ("concat('a', null, 'b')", call("concat", "a", None, "b")),
        ("'a' || 'b'", call("||", "a", "b")),
        ("'a' || null", call("||", "a", None)),
        ("'a.c%' like 'a._%'", call("like", "a.c%", "a._%")),
        ("'abc' like 'a%d'", call("like", "abc", "a%d")),
        ("2 in (1, null)", call("in", 2, 1, None)),
        ("2 in (2, null)", call("in", 2, 2, None)),
        ("2 in (1, 3)", call("in", 2, 1, 3)),
        ("cast(2.5::double as bigint)", Cast(Literal(2.5), "int64")),
        ("cast(' 12 ' as bigint)", Cast(Literal(" 12 "), "int64")),
        ("cast('1.5' as bigint)", Cast(Literal("1.5"), "int64")),
        ("cast('1e3' as double)", Cast(Literal("1e3"), "float64")),
        ("cast('t' as boolean)", Cast(Literal("t"), "bool")),
        ("cast(true as varchar)", Cast(Literal(True), "string")),
        ("cast(12 as varchar)", Cast(Literal(12), "string")),
        ("cast(1.5::double as varchar)", Cast(Literal(1.5), "string")),
        ("cast(null as bigint)", Cast(Literal(None), "int64")),
        *[
            (f"substr('hello', {start}{end})", call("substr", "hello", start, *count))
            for start in (-10, -2, 0, 1, 2, 10)
            for end, count in [("", ()), (", 2", (2,)), (", 7", (7,)), (", 0", (0,)), (", -1", (-1,))]
        ],
    ],
)
def test_functions_give_the_results_of_duckdb(text: str, expression: Expression) -> None:
    answer = duckdb.connect().execute(f"select {text}").fetchall()[0][0]
    expected = pytest.approx(float(answer)) if isinstance(answer, float) else answer
    assert value(expression) == expected


def test_functions_of_columns_are_null_where_an_argument_is() -> None:
    assert values(call("+", N, J), n=[1, None, 3], j=[None, 2, 4]) == [None, None, 7]
    assert values(call("upper", S), s=["a", None]) == ["A", None]
    assert values(call("substr", S, N, 2), s=["abc", "abc"], n=[2, -2]) == ["bc", "bc"]
    assert values(call("like", S, "%b_"), s=["abc", "b", None]) == [True, False, None]
    assert values(call("concat", S, "-", S), s=["a", None]) == ["a-a", "-"]
    assert values(call("=", S, "a"), s=["a", "b"]) == [True, False]
    assert values(call("greatest", S, "b"), s=["a", "c", None]) == ["b", "c", "b"]


def test_constants_are_as_long_as_the_batch_and_no_rows_give_none() -> None:
    assert values(call("+", 1, 2), rows=3) == [3, 3, 3]
    assert values(Literal("a"), rows=2) == ["a", "a"]
    assert values(Literal(None), rows=2) == [None, None]
    assert values(call("/", N, 0), n=[]) == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (call("+", N, 1), ["fault: int64 overflow", 1]),
        (call("-", N, -1), ["fault: int64 overflow", 1]),
        (call("*", N, 2), ["fault: int64 overflow", 0]),
        (call("//", call("-", call("neg", N), 1), -1), ["fault: int64 overflow", 1]),
        (call("neg", call("-", call("neg", N), 1)), ["fault: int64 overflow", 1]),
        (call("abs", call("-", call("neg", N), 1)), ["fault: int64 overflow", 1]),
        (call("/", 1, call("-", N, HIGHEST)), ["fault: division by zero", 1 / -HIGHEST]),
        (call("//", 1, N), [0, "fault: division by zero"]),
        (call("%", 1.5, N), [1.5, "fault: modulo by zero"]),
        (call("%", 1, N), [1, "fault: modulo by zero"]),
        (call("sqrt", call("-", 0, N)), ["fault: square root of a negative number", 0.0]),
        (call("ln", call("-", 1, N)), ["fault: logarithm of a number that is not positive", 0.0]),
        (Cast(call("*", N, 1.0), "int64"), ["fault: the value does not fit int64", 0]),
        (Cast(call("||", Cast(N, "string"), "0"), "int64"), ["fault: the text is not a valid int64", 0]),
        (
            Cast(call("substr", "7x", call("+", call("%", N, 2), 1)), "float64"),
            ["fault: the text is not a valid float64"] * 2,
        ),
        (
            Cast(call("-", call("/", N, 1e-300), call("/", N, 1e-300)), "int64"),
            ["fault: the value does not fit int64", 0],
        ),
    ],
)
def test_an_error_affects_only_its_own_row(expression: Expression, expected: list[Any]) -> None:
    assert values(expression, n=[HIGHEST, 0]) == expected


def test_a_null_row_has_no_error() -> None:
    assert values(call("/", N, J), n=[None, 1, 1], j=[0, None, 2]) == [None, None, 0.5]


def test_an_error_counts_only_where_its_part_decides() -> None:
    tenth = call(">", call("/", 10, N), 2)
    bad = "fault: division by zero"
    assert values(call("and", B, tenth), b=[True, False, None], n=[0, 0, 0]) == [bad, False, bad]
    assert values(call("or", B, tenth), b=[True, False, None], n=[0, 0, 0]) == [True, bad, bad]
    assert values(call("and", False, call(">", call("/", 1, 0), 2)), rows=1) == [False]
    safe = Case(((call("=", N, 0), Literal(-1.0)),), call("/", 10, N))
    assert values(safe, n=[0, 5]) == [-1.0, 2.0]
    assert values(call("coalesce", X, call("/", 10, N)), x=[1.0, None, None], n=[0, 0, 5]) == [1.0, bad, 2.0]


def test_a_case_without_a_true_branch_is_null() -> None:
    assert values(Case(((B, S),)), b=TRUTHS, s=["x", "y", "z"]) == ["x", None, None]


def doubled(values: Any) -> Any:
    if (values == 13).any():
        raise ValueError("unlucky")
    return values * 2


def test_a_user_function_gets_arrays_without_nulls() -> None:
    seen = []

    def spy(a: Any, b: Any) -> Any:
        seen.append((a.tolist(), b.tolist()))
        return a + b

    functions = {"plus": UserFunction(spy, "int64")}
    assert values(call("plus", N, 10), functions, n=[1, None, 3]) == [11, None, 13]
    assert seen == [([1, 3], [10, 10])]
    assert values(call("plus", N, None), functions, n=[1, 2]) == [None, None]


def test_a_user_function_that_raises_is_an_error_of_the_failing_rows_only() -> None:
    functions = {"doubled": UserFunction(doubled, "int64")}
    reason = "fault: function 'doubled': ValueError: unlucky"
    assert values(call("doubled", N), functions, n=[1, 13, None, 3]) == [2, reason, None, 6]


def test_a_per_row_user_function_may_return_null_or_fail() -> None:
    functions = {"f": UserFunction(lambda a, s: {"": None}.get(s, s[a]), "string", per_row=True)}
    got = values(call("f", N, S), functions, n=[0, 7, None], s=["abc", "abc", "abc"])
    assert got == ["a", "fault: function 'f': IndexError: string index out of range", None]
    functions = {"f": UserFunction(lambda a: None if a == 1 else a, "int64", per_row=True)}
    assert values(call("f", N), functions, n=[0, 1, None]) == [0, None, None]


def test_a_user_function_with_a_wrong_result_type_is_an_error() -> None:
    functions = {"f": UserFunction(lambda a: a * 0.5, "int64"), "g": UserFunction(lambda a: "x", "int64", per_row=True)}
    assert "it returned float64: expected int64" in values(call("f", N), functions, n=[1])[0]
    assert "it returned 'x': expected int64" in values(call("g", N), functions, n=[1])[0]
    big = {"f": UserFunction(lambda a: 2**70, "int64", per_row=True)}
    assert "does not fit int64" in values(call("f", N), big, n=[1])[0]
    total = {"f": UserFunction(np.sum, "int64")}
    assert all("shape" in one for one in values(call("f", N), total, n=[1, 2]))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (call("+", N, X), "float64"),
        (call("/", N, J), "float64"),
        (call("//", N, J), "int64"),
        (call("-", T, T), "int64"),
        (call("-", T, N), "timestamp"),
        (call("+", N, T), "timestamp"),
        (call("<", T, N), "bool"),
        (call("+", None, N), "int64"),
        (call("coalesce", N, X), "float64"),
        (call("coalesce", None, T), "timestamp"),
        (Case(((B, N),), X), "float64"),
        (Cast(N, "string"), "string"),
        (Literal(None), "null"),
        (Literal(True), "bool"),
    ],
)
def test_types(expression: Expression, expected: str) -> None:
    assert type_of(expression, SCHEMA) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (call("+", S, N), "'+' of string and int64: it takes numbers"),
        (call("+", T, T), "'+' of timestamp and timestamp: it takes a timestamp and an int64"),
        (call("=", S, N), "'=' of string and int64: they have no common type"),
        (call("and", B, N), "'and' of bool and int64: it takes bool and bool"),
        (call("sqrt", N, J), "'sqrt' of 2 arguments: it takes 1"),
        (call("||", S, N), "'||' of string and int64: it takes string and string"),
        (Column("k"), "no column 'k'; there are ['b', 'j', 'n', 's', 't', 'x']"),
        (call("sqr", N), "no function 'sqr' (did you mean 'sqrt'?)"),
        (Cast(T, "bool"), "cast of timestamp to bool: timestamp can be cast to ['int64']"),
        (Cast(N, "int"), "cast to 'int': no such type (did you mean 'int64'?)"),
        (Case(((N, N),)), "a condition of 'case' is int64: it must be bool"),
        (Literal(2**63), "9223372036854775808 does not fit int64"),
    ],
)
def test_an_expression_without_a_type_is_refused_with_the_reason(expression: Expression, message: str) -> None:
    with pytest.raises(ExpressionError) as error:
        type_of(expression, SCHEMA)
    assert str(error.value).startswith(message)


def test_an_expression_is_formatted_as_sql() -> None:
    expression = call("and", call("=", call("%", N, 2), 0), call("not", call("in", S, "it's", None)))
    assert text_of(expression) == "((n % 2) = 0) and (not (s in ('it''s', null)))"
    assert text_of(Case(((call("is null", X), Literal(True)),), Cast(call("neg", N), "bool"))) == (
        "case when x is null then true else cast(-n as bool) end"
    )
    assert text_of(call("round", X, 2)) == "round(x, 2)"
