"""Errors in CQL: each as a text and its message; and random texts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.data.schema import Schema
from dsms.errors import PlanError
from dsms.expressions.scalar_functions import UserFunction
from dsms.query.cql import Catalog, CqlError, compile_query

PACKETS = Schema.of({"src": "int64", "dst": "int64", "size": "int64", "tag": "string"})
CATALOG = Catalog(
    {"packets": PACKETS, "flows": Schema.of({"src": "int64", "rate": "float64"})},
    {"hosts": Schema.of({"src": "int64", "name": "string"})},
    functions={"grade": UserFunction(abs, "int64")},
)
QUERIES = {name: compile_query(text, CATALOG) for name, text in (
    ("heavy", "SELECT * FROM packets WHERE size > 1000"), ("sums", "SELECT count(*) AS n FROM packets"),
)}  # fmt: skip


def tree(text):
    return compile_query(text, replace(CATALOG, queries=QUERIES))


NO_JOIN = "is not part of CQL; there are JOIN, CROSS JOIN and ANTI JOIN"
NO_END = "is not part of CQL: a continuous query has no last row"
UNKEYED = "is neither in GROUP BY nor inside an aggregate; keys are ['dst']"
ELSEWHERE = "a sub-query is allowed in FROM only; write a JOIN or an ANTI JOIN"
NO_OVER = "a window function (OVER) is not part of CQL; a window belongs in brackets after a stream in FROM"
NO_UNIT = "expected a unit of time as in RANGE 5 SECONDS, not ']'"
MEND = "use ISTREAM to make a stream of it"
KINDS = "there are ['int64', 'float64', 'bool', 'timestamp', 'string']"
STARTS = "a query starts with SELECT or as in ISTREAM (SELECT"
BY_EQUALS = "ANTI JOIN compares a column of the left with one of the right by ="
THERE = "there are ['dst', 'size', 'src', 'tag']"
SOURCES = "there are ['flows', 'heavy', 'hosts', 'packets', 'sums']"
UNITS = "there are ['microseconds', 'milliseconds', 'seconds', 'minutes', 'hours', 'days']"
NAMES = [
    (
        "SELECT src\nFROM packets WHERE szie > 3",
        f"line 2, column 20: no column 'szie' in 'packets' (did you mean 'size'?); {THERE}",
    ),
    ("SELECT p.szie FROM packets p", f"line 1, column 8: no column 'szie' in 'p' (did you mean 'size'?); {THERE}"),
    ("SELECT q.size FROM packets p", "line 1, column 8: no source 'q' in FROM; there are ['p']"),
    (
        "SELECT src FROM packets, flows",
        "line 1, column 8: column 'src' is ambiguous; there are ['packets.src', 'flows.src']",
    ),
    (
        "SELECT abc FROM packets p, flows f",
        "line 1, column 8: no column 'abc' in any of ['p', 'f']; there are ['dst', 'rate', 'size', 'src', 'tag']",
    ),
    (
        "SELECT * FROM pakets",
        f"line 1, column 15: no stream, stored relation or query 'pakets' (did you mean 'packets'?); {SOURCES}",
    ),
    (
        "SELECT 1 FROM packets, packets",
        "line 1, column 24: two sources are called 'packets'; give one another name with AS",
    ),
    (
        'SELECT size AS "a.b" FROM packets',
        "line 1, column 16: 'a.b' cannot be the name of a column: no ? and no . in it",
    ),
    (
        "SELECT * FROM (SELECT src FROM packets)",
        "line 1, column 15: a sub-query in FROM needs a name: (SELECT ...) AS s",
    ),
]
WINDOWS = [
    ("SELECT * FROM packets [RANGE 5]", f"line 1, column 31: {NO_UNIT}; {UNITS}"),
    ("SELECT 1 FROM flows, packets [RANGE 5]", f"line 1, column 38: {NO_UNIT}; {UNITS}"),
    ("SELECT * FROM packets [ROWS 0]", "line 1, column 29: ROWS needs a whole number above 0, not '0'"),
    ("SELECT * FROM packets [NOW", "line 1, column 24: expected ] at the end of a window, not the end of the text"),
    ("SELECT * FROM packets [ROWS", "line 1, column 24: ROWS needs a whole number above 0, not the end of the text"),
    ("SELECT * FROM packets [ROWS x]", "line 1, column 29: ROWS needs a whole number above 0, not 'x'"),
    ("SELECT * FROM packets [ROWS 5 SLIDE 0]", "line 1, column 37: SLIDE needs a whole number above 0, not '0'"),
    (
        "SELECT * FROM packets [RANGE 0.5 us]",
        "line 1, column 30: RANGE: '0.5 us' is not a whole number of microseconds",
    ),
    ("SELECT * FROM packets [RANGE 1 DAY SLIDE 0 DAYS]", "line 1, column 44: SLIDE needs a duration above 0"),
    (
        "SELECT * FROM packets [5]",
        "line 1, column 24: a window is one of [RANGE 10 SECONDS], [RANGE 10 SECONDS SLIDE 1 SECOND], [ROWS 100], "
        "[ROWS 100 SLIDE 10], [NOW] or [UNBOUNDED], not '5'",
    ),
    ("SELECT * FROM packets p [NOW]", "line 1, column 25: a window belongs before the alias: [...] AS p"),
    (
        "SELECT n FROM sums [NOW]",
        f"line 1, column 20: a window needs a stream, and this is a relation: an aggregate's results change; {MEND}",
    ),
    (
        "SELECT * FROM (SELECT src FROM packets [NOW]) [NOW] s",
        f"line 1, column 47: a window needs a stream, and this is a relation: rows leave the window in it; {MEND}",
    ),
    (
        "SELECT * FROM (SELECT src FROM packets EXCEPT SELECT src FROM flows) [NOW] s",
        "line 1, column 70: a window needs a stream, and this is a relation: a row of a difference is "
        f"retracted when the right side gets an equal one; {MEND}",
    ),
    (
        "SELECT 1 FROM packets, hosts [NOW]",
        "line 1, column 30: a window needs a stream, and 'hosts' is stored: it has no timestamps",
    ),
]
TYPES = [
    (
        "SELECT 1 FROM packets WHERE size > 1 AND tag > 3",
        "line 1, column 42: '>' of string and int64: they have no common type",
    ),
    ("SELECT 1 FROM packets WHERE size", "line 1, column 29: expected a condition, not a value of type int64"),
    ("SELECT src, sum(tag) FROM packets GROUP BY src", "line 1, column 17: sum of string: expected int64 or float64"),
    (
        "SELECT NULL FROM packets",
        "line 1, column 8: a NULL without a type cannot be a column: write CAST(NULL AS int64)",
    ),
    ("SELECT 99999999999999999999 FROM packets", "line 1, column 8: 99999999999999999999 is more than int64 can hold"),
    (
        "SELECT src FROM packets UNION SELECT tag FROM packets",
        "line 1, column 25: both sides need columns of the same types, not ['int64'] and ['string']",
    ),
    (
        "SELECT 1 FROM packets p ANTI JOIN flows f ON p.tag = f.src",
        "line 1, column 25: ANTI JOIN compares string with int64: both must have the same type",
    ),
    ("SELECT CAST(size AS json) FROM packets", f"line 1, column 13: no type 'json' to CAST to; {KINDS}"),
]
AGGREGATES = [
    ("SELECT src, count(*) FROM packets GROUP BY dst", f"line 1, column 8: column 'src' {UNKEYED}"),
    ("SELECT src FROM packets WHERE count(*) > 1", "line 1, column 31: the aggregate count is not allowed here"),
    ("SELECT sum(max(size)) FROM packets", "line 1, column 12: the aggregate max is not allowed here"),
    ("SELECT sum(size, src) FROM packets", "line 1, column 8: sum takes one argument, not 2"),
    ("SELECT sum(*) FROM packets", "line 1, column 12: * is allowed alone in SELECT or in count(*)"),
    (
        "SELECT sum(DISTINCT size) FROM packets",
        "line 1, column 8: DISTINCT belongs after SELECT or before the one argument of count",
    ),
    ("SELECT src FROM packets GROUP BY 1", "line 1, column 34: GROUP BY needs columns or expressions over them"),
]
REFUSED = [
    ("SELECT src FROM packets ORDER BY src", f"line 1, column 25: ORDER BY {NO_END}"),
    ("SELECT src FROM packets\nLIMIT 3", f"line 2, column 1: LIMIT {NO_END}"),
    ("SELECT 1 FROM packets LEFT JOIN flows USING (src)", f"line 1, column 23: LEFT JOIN {NO_JOIN}"),
    ("SELECT 1 FROM packets FULL OUTER JOIN flows USING (src)", f"line 1, column 23: FULL OUTER JOIN {NO_JOIN}"),
    ("SELECT 1 FROM packets NATURAL JOIN flows", f"line 1, column 23: NATURAL JOIN {NO_JOIN}"),
    (
        "SELECT 1 FROM packets p ANTI JOIN flows f",
        "line 1, column 25: ANTI JOIN needs ON or USING with the columns to compare",
    ),
    ("SELECT 1 FROM packets p ANTI JOIN flows f ON p.src > f.src", f"line 1, column 46: {BY_EQUALS}"),
    (
        "SELECT 1 FROM packets ANTI JOIN hosts USING (src)",
        "line 1, column 33: 'hosts' is stored; ANTI JOIN needs a stream or a query",
    ),
    (
        "SELECT name FROM hosts",
        "line 1, column 18: ['hosts'] are stored: a continuous query joins them with at least one stream",
    ),
    ("SELECT sum(size) OVER () FROM packets", f"line 1, column 8: {NO_OVER}"),
    ("SELECT src FROM packets WHERE src IN (SELECT src FROM flows)", f"line 1, column 39: {ELSEWHERE}"),
    ("SELECT src FROM packets WHERE EXISTS (SELECT src FROM flows)", f"line 1, column 39: {ELSEWHERE}"),
    ("SELECT 1 FROM packets WHERE tag LIKE 'a' ESCAPE 'b'", "line 1, column 29: escape is not part of CQL"),
    (
        "SELECT 1 FROM packets WHERE size BETWEEN SYMMETRIC 2 AND 1",
        "line 1, column 29: SYMMETRIC is not part of CQL here",
    ),
    ("SELECT a.b.c FROM packets", "line 1, column 8: a column is called name or alias.name, without a further dot"),
    ("SELECT 1e400 FROM packets", "line 1, column 8: 1e400 is more than float64 can hold"),
    (
        "SELECT src FROM packets INTERSECT SELECT src FROM flows",
        "line 1, column 25: INTERSECT is not part of CQL; there are UNION, UNION ALL and EXCEPT",
    ),
    (
        "SELECT src FROM packets EXCEPT ALL SELECT src FROM flows",
        "line 1, column 25: EXCEPT ALL is not part of CQL; there are EXCEPT and ANTI JOIN",
    ),
    ("SELECT 1", "line 1, column 1: FROM is missing: a continuous query reads at least one stream"),
    ("DROP TABLE packets", f"line 1, column 1: {STARTS}, not 'DROP'"),
    ("SELECT src FROM packets; SELECT 1", "expected one query, not 2"),
    ("SELECT src FROM packets WHERE size >", "line 1, column 36: something is missing at '>'"),
    ("SELECT src size tag FROM packets", "line 1, column 17: 'tag' is not expected here"),
    ("SELECT 'a FROM packets", "line 1, column 8: expected ': what starts here is not closed"),
]
MISTAKES = NAMES + WINDOWS + TYPES + AGGREGATES + REFUSED


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_a_mistake_is_told_with_its_line_and_column(text, message):
    with pytest.raises(CqlError) as caught:
        tree(text)
    assert str(caught.value) == message


def test_an_unknown_function_is_told_with_the_nearest():
    with pytest.raises(CqlError, match=r"line 1, column 12: no function 'grad' \(did you mean 'grade'\?\)"):
        tree("SELECT 1 + grad(size) FROM packets")


def test_in_a_plan_file_line_and_column_stay_with_the_message():
    with pytest.raises(CqlError) as caught:
        tree("SELECT szie FROM packets")
    placed = caught.value.within("queries.q.cql", "plan.toml")
    assert isinstance(placed, PlanError)
    assert str(placed).startswith("plan.toml: queries.q.cql: line 1, column 8: no column 'szie'")


def test_a_query_nested_too_deeply_is_refused():
    with pytest.raises(CqlError):
        tree(f"SELECT {'(' * 5000}1{')' * 5000} FROM packets")


WORDS = (
    "SELECT FROM WHERE HAVING DISTINCT ISTREAM DSTREAM ( ) [ ] , . * + - / // % = <> < >= AND OR NOT IS NULL IN LIKE "
    "|| packets flows hosts p f src size tag rate AS JOIN ANTI ON USING EXCEPT UNION ALL ROWS RANGE SLIDE NOW "
    "UNBOUNDED SECONDS 10 0 1.5 'a' ' count sum avg min abs CASE WHEN THEN ELSE END CAST int64 BETWEEN LIMIT LEFT "
    'OVER WITH ; : :: ? @ $1 "x" INTERVAL EXISTS LATERAL VALUES PIVOT INTERSECT NATURAL true TIMESTAMP ARRAY -> IF ANY'
)
SALAD = st.lists(st.sampled_from([*WORDS.split(), "GROUP BY", "ORDER BY", "PARTITION BY"]), max_size=12).map(" ".join)
FRAMES = st.sampled_from(
    ["{}", "SELECT {} FROM packets", "SELECT src FROM packets {}", "SELECT src FROM packets WHERE {}",
     "SELECT src, count(*) FROM packets GROUP BY {}", "ISTREAM (SELECT src FROM packets) {}"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(FRAMES, SALAD)
def test_no_text_whatever_raises_anything_but_a_cql_error(frame, salad):
    """A text that compiles has each column once."""
    try:
        names = list(tree(frame.format(salad)).schema)
    except CqlError:
        return
    assert len(set(names)) == len(names)
