"""Hostile queries and values: the compiler accepts or refuses each in good time, and raises nothing else."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.queries.hostile_queries import CATALOG, SCHEMA, VALID_QUERIES, refusal
from support.strategies import DETERMINISTIC, EXAMPLES

from dsms.expressions.evaluate import compile_evaluator
from dsms.expressions.row_errors import RowErrors
from dsms.expressions.strings import like
from dsms.query.cql import compile_expression, compile_query
from dsms.query.plan_file import plan_from

PIECES = [piece for text in VALID_QUERIES for piece in re.findall(r"\w+|\s+|[^\w\s]", text)]
SIGNS = st.sampled_from(
    ["(", ")", "'", '"', "[", "]", "--", "/*", "*/", ";", "\\", "\0", "\ud800", "é", "9" * 400, "%"]
)
MANY = EXAMPLES or 150


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """Draw a valid query with some of its pieces changed."""
    pieces = re.findall(r"\w+|\s+|[^\w\s]", draw(st.sampled_from(VALID_QUERIES)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(pieces) - 1))
        change = draw(st.integers(0, 3))
        new = draw(st.one_of(st.sampled_from(PIECES), SIGNS, st.text(max_size=5)))
        match change:
            case 0:
                pieces[at] = new
            case 1:
                pieces.insert(at, new)
            case 2:
                pieces[at] = pieces[at] * draw(st.sampled_from([0, 2, 50]))
            case _:
                pieces[at:at] = pieces[at : at + draw(st.integers(1, 12))]
    return "".join(pieces)


@settings(DETERMINISTIC, max_examples=MANY * 4)
@given(mangled())
def test_a_mangled_query_is_understood_or_refusal(text: str) -> None:
    assert refusal(lambda: compile_query(text, CATALOG)) != ""


@settings(DETERMINISTIC, max_examples=MANY)
@given(mangled())
def test_a_plan_with_a_mangled_query_is_built_or_refusal(text: str) -> None:
    columns = {"schema": dict(SCHEMA.fields)}
    table = {"streams": {"s": columns, "t": columns}, "queries": {"q": {"cql": text}}}
    assert "queries.q" in (refusal(lambda: plan_from(table)) or "queries.q")


@pytest.mark.parametrize("depth", [100, 1000, 5000])
@pytest.mark.parametrize(
    "form",
    ["SELECT {0}n{1} FROM s", "SELECT n FROM {2}s{3}", "SELECT n FROM s WHERE {4}n > 1", "SELECT n{5} FROM s",
     "SELECT n FROM s{6}", "SELECT {7}1{8} FROM s", "SELECT {9} FROM s", "SELECT {10}", "{10}SELECT n FROM s"],
)  # fmt: skip
def test_a_query_of_any_depth_or_length_is_understood_or_refusal(form: str, depth: int) -> None:
    openings = ("(", ")", "(SELECT * FROM ", ") AS a", "NOT ", " + n", " UNION ALL SELECT n FROM s")
    text = form.format(*(part * depth for part in (*openings, "CASE WHEN n > 1 THEN ", " ELSE 0 END", "9", "[")))
    assert refusal(lambda: compile_query(text, CATALOG)) != ""


EXPRESSIONS = (
    "CAST(who AS int64)", "CAST(who AS float64)", "CAST(who AS bool)", "CAST(x AS int64)",
    "who LIKE what", "who LIKE '%_%a%_'", "substr(who, n, n)", "substr(who, n)", "who || what", "lower(who) = what",
    "n + n * n - n // n", "n % n", "x / x", "abs(n)", "CAST(n AS string)", "length(who) > n", "-n",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=20), st.sampled_from(["9" * 5000, "1e999", "nan", "-0", "%" * 50, "_%" * 30, "\0", " "])
)
ROWS = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(), TEXTS, TEXTS).map(tuple), min_size=1, max_size=4
)


@settings(DETERMINISTIC, max_examples=MANY)
@given(st.sampled_from(EXPRESSIONS), ROWS)
def test_no_values_in_rows_make_an_expression_fail_but_their_own_rows(text: str, rows: list[tuple[Any, ...]]) -> None:
    columns = {name: np.array(values, dtype=kind) for (name, kind), values in zip(
        (("n", np.int64), ("x", np.float64), ("who", object), ("what", object)), zip(*rows, strict=True), strict=True
    )}  # fmt: skip
    faults = RowErrors()
    found, _ = compile_evaluator(compile_expression(text, SCHEMA), SCHEMA, {})(columns, len(rows), faults)
    assert len(found) == len(rows)


def test_no_pattern_takes_longer_than_its_length_times_the_texts() -> None:
    """A matcher that tried every split of the text would take years."""
    text, patterns = "a" * 20_000, ["%a" * 40 + "%b", "%a_" * 40 + "b", "%" * 1000 + "b", "a%" * 100 + "b%"]
    assert not like(np.array([text] * len(patterns), dtype=object), np.array(patterns, dtype=object)).any()
    assert like(np.array([text + "b"] * len(patterns), dtype=object), np.array(patterns, dtype=object)).all()


@settings(DETERMINISTIC, max_examples=MANY * 2)
@given(st.text("ab\n", max_size=8), st.text("ab%_\n", max_size=8))
def test_a_pattern_means_what_trying_everything_would_find(text: str, pattern: str) -> None:
    naive = "".join({"%": ".*", "_": "."}.get(sign) or re.escape(sign) for sign in pattern)
    found = bool(like(np.array([text], dtype=object), pattern)[0])
    assert found is (re.fullmatch(naive, text, re.DOTALL) is not None)
