"""Expressions in queries and in Python, and the trees that they compile to."""

from __future__ import annotations

import pytest

from dsms.data.schema import Schema
from dsms.expressions.scalar_functions import UserFunction
from dsms.expressions.tree import Call, Case, Cast, Column, Literal
from dsms.query.cql import CqlError, compile_condition, compile_expression

PACKETS = Schema.of({"src": "int64", "dst": "int64", "size": "int64", "tag": "string"})
FUNCTIONS = {"grade": UserFunction(abs, "int64")}
SIZE, TAG = Column("size"), Column("tag")


def more(column, number):
    return Call(">", (column, Literal(number)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size + 1 - 2 * -3", Call("-", (Call("+", (SIZE, Literal(1))), Call("*", (Literal(2), Literal(-3)))))),
        ("-size", Call("neg", (SIZE,))),
        ("size / 2 % 3 // 4", Call("//", (Call("%", (Call("/", (SIZE, Literal(2))), Literal(3))), Literal(4)))),
        ("1.5e3", Literal(1500.0)),
        ("'it''s'", Literal("it's")),
        ("size <> 1 OR FALSE", Call("or", (Call("<>", (SIZE, Literal(1))), Literal(False)))),
        ("NOT (size > 3)", Call("not", (more(SIZE, 3),))),
        ("size != 1", Call("<>", (SIZE, Literal(1)))),
        ("tag IS NULL", Call("is null", (TAG,))),
        ("tag IS NOT NULL", Call("not", (Call("is null", (TAG,)),))),
        ("size IN (1, 2)", Call("in", (SIZE, Literal(1), Literal(2)))),
        ("size NOT IN (1, 2)", Call("not", (Call("in", (SIZE, Literal(1), Literal(2))),))),
        ("size BETWEEN 1 AND 5", Call("and", (Call(">=", (SIZE, Literal(1))), Call("<=", (SIZE, Literal(5)))))),
        ("tag LIKE 'a%'", Call("like", (TAG, Literal("a%")))),
        ("tag NOT LIKE 'a%'", Call("not", (Call("like", (TAG, Literal("a%"))),))),
        ("tag || 'x'", Call("||", (TAG, Literal("x")))),
        ("ABS(size)", Call("abs", (SIZE,))),
        ("substring(tag, 1, 2)", Call("substr", (TAG, Literal(1), Literal(2)))),
        ("coalesce(size, dst, 0)", Call("coalesce", (SIZE, Column("dst"), Literal(0)))),
        ("grade(size)", Call("grade", (SIZE,))),
        ("CAST(size AS float64)", Cast(SIZE, "float64")),
        ("size::DOUBLE", Cast(SIZE, "float64")),
        ("CASE WHEN size > 3 THEN 1 END", Case(((more(SIZE, 3), Literal(1)),))),
        ("CASE size WHEN 3 THEN 'a' ELSE tag END", Case(((Call("=", (SIZE, Literal(3))), Literal("a")),), TAG)),
        ("TRUE", Literal(True)),
    ],
)  # fmt: skip
def test_expressions_are_read_as_in_sql(text, expected):
    assert compile_expression(text, PACKETS, FUNCTIONS) == expected


@pytest.mark.parametrize("function", ["round", "floor", "ceil", "sqrt", "ln", "exp", "power", "least", "greatest"])
def test_functions_of_numbers_keep_their_names(function):
    arguments = (SIZE, Literal(2)) if function in ("power", "least", "greatest") else (SIZE,)
    text = f"{function.upper()}({', '.join(['size', '2'][: len(arguments)])})"
    assert compile_expression(text, PACKETS) == Call(function, arguments)


@pytest.mark.parametrize("function", ["lower", "upper", "length", "trim"])
def test_functions_of_strings_keep_their_names(function):
    assert compile_expression(f"{function}(tag)", PACKETS) == Call(function, (TAG,))


def test_an_expression_over_a_join_may_qualify_its_columns():
    schema = Schema((("p.src", "int64"), ("f.src", "int64"), ("f.rate", "float64")))
    assert compile_expression("p.src = f.src", schema) == Call("=", (Column("p.src"), Column("f.src")))
    assert compile_expression("rate", schema) == Column("f.rate")
    with pytest.raises(CqlError, match=r"column 'src' is ambiguous; there are \['p.src', 'f.src'\]"):
        compile_expression("src", schema)


def test_a_condition_is_true_false_or_unknown():
    assert compile_condition("size > 3", PACKETS) == more(SIZE, 3)
    with pytest.raises(CqlError, match="line 1, column 1: expected a condition, not a value of type int64"):
        compile_condition("size + 3", PACKETS)
