"""CQL: each rule of the language as a text and the tree it means, each mistake as a text and what is said of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.algebra import (
    Aggregate,
    Aggregation,
    Difference,
    Distinct,
    Join,
    Named,
    Project,
    Select,
    Stored,
    Stream,
    ToStream,
    Union,
    Window,
    Windowed,
)
from dsms.cql import Catalog, CqlError, condition, expression, query
from dsms.errors import PlanError
from dsms.expressions.tree import Call, Case, Cast, Column, Literal
from dsms.expressions.types import type_of
from dsms.expressions.user import UserFunction
from dsms.schema import Schema

PACKETS = Schema.of({"src": "int64", "dst": "int64", "size": "int64", "tag": "string"})
FLOWS = Schema.of({"src": "int64", "rate": "float64"})
HOSTS = Schema.of({"src": "int64", "name": "string"})
HEAVY = Select(Stream("packets", PACKETS), Call(">", (Column("size"), Literal(1000))))
SUMS = Aggregate(
    Stream("packets", PACKETS), (), (Aggregation("n", "count", None),), Schema.of({"n": "int64"})
)  # fmt: skip
CATALOG = Catalog(
    {"packets": PACKETS, "flows": FLOWS},
    {"hosts": HOSTS},
    {"heavy": HEAVY, "sums": SUMS},
    {"grade": UserFunction(abs, "int64")},
)
P, F = Stream("packets", PACKETS), Stream("flows", FLOWS)
SRC, SIZE, TAG = Column("src"), Column("size"), Column("tag")


def tree(text):
    return query(text, CATALOG)


def project(of, **items):
    """A projection; its types are worked out anew."""
    schema = Schema.of({name: type_of(item, of.schema, CATALOG.functions) for name, item in items.items()})
    return Project(of, tuple(items.items()), schema)


def join(on=(), /, **inputs):
    """A join of inputs by alias."""
    fields = tuple((f"{alias}.{name}", kind) for alias, of in inputs.items() for name, kind in of.schema.fields)
    return Join(tuple(inputs.items()), on, Schema(fields))


def more(column, number):
    return Call(">", (column, Literal(number)))


def both(one, other):
    return Call("and", (one, other))


def ranged(length, slide=0):
    return Windowed(P, Window("range", length, slide))


def grouped(of, keys, schema, **aggregations):
    parts = tuple(Aggregation(name, *parts) for name, parts in aggregations.items())
    return Aggregate(of, keys, parts, Schema(tuple(schema.items())))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("", P),
        ("[UNBOUNDED]", P),
        ("[RANGE UNBOUNDED]", P),
        ("[NOW]", ranged(0)),
        ("[RANGE 5 MICROSECONDS]", ranged(5)),
        ("[RANGE 200 MILLISECONDS]", ranged(200_000)),
        ("[range 1 second]", ranged(1_000_000)),
        ("[RANGE 1.5 SECONDS]", ranged(1_500_000)),
        ("[RANGE 2 MINUTES]", ranged(120_000_000)),
        ("[RANGE 1 HOUR]", ranged(3_600_000_000)),
        ("[RANGE 1 DAY]", ranged(86_400_000_000)),
        ("[RANGE 10 SECONDS SLIDE 1 SECOND]", ranged(10_000_000, 1_000_000)),
        ("[ROWS 100]", Windowed(P, Window("rows", 100))),
    ],
)
def test_a_window_stands_in_brackets_behind_its_stream(window, expected):
    assert tree(f"SELECT * FROM packets {window}") == expected
    assert tree(f"SELECT * FROM packets {window} AS p") == expected
    assert tree(f"SELECT p.* FROM packets {window} p") == expected


ONE_SOURCE = [
    ("SELECT * FROM packets", P),
    ("SELECT src, dst, size, tag FROM packets;", P),
    ("SELECT size, src FROM packets", project(P, size=SIZE, src=SRC)),
    ("SELECT p.size AS s FROM packets p", project(P, s=SIZE)),
    ("SELECT src, src FROM packets", project(P, src=SRC, src_2=SRC)),
    ("SELECT size * 2, tag FROM packets", project(P, expr1=Call("*", (SIZE, Literal(2))), tag=TAG)),
    ("SELECT * FROM packets WHERE size > 3", Select(P, more(SIZE, 3))),
    ("SELECT src FROM packets WHERE size > 3", project(Select(P, more(SIZE, 3)), src=SRC)),
    ("SELECT DISTINCT src FROM packets", Distinct(project(P, src=SRC))),
    ("SELECT size FROM heavy", project(Named("heavy", HEAVY), size=SIZE)),
    ("SELECT size FROM heavy [ROWS 2]", project(Windowed(Named("heavy", HEAVY), Window("rows", 2)), size=SIZE)),
    ("SELECT n FROM sums", Named("sums", SUMS)),
    ("SELECT s.a FROM (SELECT src AS a FROM packets) AS s", project(P, a=SRC)),
    (
        "SELECT a FROM (SELECT src AS a FROM packets) [ROWS 3] AS s WHERE a > 1",
        Select(Windowed(project(P, a=SRC), Window("rows", 3)), more(Column("a"), 1)),
    ),
    (
        "SELECT * FROM ISTREAM (SELECT src FROM packets [ROWS 9]) [NOW] AS s",
        Windowed(ToStream(project(Windowed(P, Window("rows", 9)), src=SRC), "istream"), Window("range")),
    ),
]


@pytest.mark.parametrize(("text", "expected"), ONE_SOURCE, ids=[text for text, _ in ONE_SOURCE])
def test_a_query_of_one_source_keeps_the_names_of_its_columns(text, expected):
    assert tree(text) == expected


@pytest.mark.parametrize("kind", ["ISTREAM", "DSTREAM", "RSTREAM"])
def test_changes_of_a_relation_are_asked_for_in_three_spellings(kind):
    relation = project(Windowed(P, Window("rows", 9)), src=SRC, s=SIZE)
    expected = ToStream(relation, kind.lower())
    assert tree(f"SELECT {kind}(src, size AS s) FROM packets [ROWS 9]") == expected
    assert tree(f"SELECT {kind.lower()} src, size AS s FROM packets [ROWS 9]") == expected
    assert tree(f"{kind} (SELECT src, size AS s FROM packets [ROWS 9])") == expected
    assert tree(f"SELECT {kind} DISTINCT src, size AS s FROM packets [ROWS 9]") == ToStream(
        Distinct(relation), kind.lower()
    )


def test_a_bracket_behind_istream_may_belong_to_an_expression():
    doubled = Call("*", (Call("+", (SIZE, Literal(1))), Literal(2)))
    assert tree("SELECT ISTREAM (size + 1) * 2 AS d FROM packets") == ToStream(project(P, d=doubled), "istream")


def test_istream_can_be_the_name_of_a_column():
    catalog = Catalog({"s": Schema.of({"istream": "int64", "b": "int64"})})
    assert query("SELECT istream FROM s", catalog).schema == Schema.of({"istream": "int64"})


PF = join((("p.src", "f.src"),), p=P, f=F)
PH = join((("packets.src", "hosts.src"),), packets=P, hosts=Stored("hosts", HOSTS))
JOINS = [
    ("SELECT rate FROM packets p JOIN flows f ON p.src = f.src", project(PF, rate=Column("f.rate"))),
    ("SELECT rate FROM packets p JOIN flows f ON f.src = p.src", project(PF, rate=Column("f.rate"))),
    ("SELECT rate FROM packets p INNER JOIN flows f USING (src)", project(PF, rate=Column("f.rate"))),
    ("SELECT rate FROM packets p, flows f WHERE p.src = f.src", project(PF, rate=Column("f.rate"))),
    ("SELECT p.src FROM packets p, flows f WHERE p.src = f.src", project(PF, src=Column("p.src"))),
    ("SELECT src FROM packets p JOIN flows f USING (src)", project(PF, src=Column("p.src"))),
    (
        "SELECT rate FROM packets p, flows f WHERE p.src = f.src AND size > 3 AND rate > 4",
        project(Select(PF, both(more(Column("p.size"), 3), more(Column("f.rate"), 4))), rate=Column("f.rate")),
    ),
    (
        "SELECT rate FROM packets p, flows f WHERE size = rate",
        project(
            Select(join((), p=P, f=F), Call("=", (Column("p.size"), Column("f.rate")))), rate=Column("f.rate")
        ),
    ),
    (
        "SELECT p.src, q.src FROM packets [ROWS 5] p JOIN packets q ON p.src = q.dst",
        project(
            join((("p.src", "q.dst"),), p=Windowed(P, Window("rows", 5)), q=P),
            src=Column("p.src"),
            src_2=Column("q.src"),
        ),
    ),
    ("SELECT name FROM packets JOIN hosts USING (src)", project(PH, name=Column("hosts.name"))),
    (
        "SELECT f.rate FROM packets p JOIN flows f USING (src) JOIN heavy h ON h.dst = p.dst AND h.src = f.src",
        project(
            join(
                (("p.src", "f.src"), ("p.dst", "h.dst"), ("f.src", "h.src")), p=P, f=F, h=Named("heavy", HEAVY)
            ),
            rate=Column("f.rate"),
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), JOINS, ids=[text for text, _ in JOINS])
def test_equal_columns_of_several_sources_make_a_join_and_the_rest_a_selection(text, expected):
    assert tree(text) == expected


def test_star_over_a_join_qualifies_only_what_two_inputs_share():
    assert list(tree("SELECT * FROM packets p, flows f").schema) == ["p.src", "dst", "size", "tag", "f.src", "rate"]
    assert list(tree("SELECT * FROM packets p JOIN flows f USING (src)").schema) == [
        "src", "dst", "size", "tag", "rate",
    ]  # fmt: skip
    assert list(tree("SELECT f.* FROM packets p, flows f").schema) == ["src", "rate"]


SRCS, FSRCS = project(P, src=SRC), project(F, src=SRC)
DIFFERENCES = [
    ("SELECT * FROM packets ANTI JOIN flows USING (src)", Difference(P, F, (("src", "src"),))),
    ("SELECT * FROM packets p ANTI JOIN flows f ON p.dst = f.src", Difference(P, F, (("dst", "src"),))),
    ("SELECT * FROM packets p ANTI JOIN flows f ON f.src = p.dst", Difference(P, F, (("dst", "src"),))),
    (
        "SELECT * FROM packets p ANTI JOIN heavy h ON (p.src = h.dst AND h.src = p.src)",
        Difference(P, Named("heavy", HEAVY), (("src", "dst"), ("src", "src"))),
    ),
    (
        "SELECT rate FROM packets p JOIN flows f USING (src) ANTI JOIN heavy h ON p.src = h.src WHERE size > 3",
        project(
            Select(
                Difference(PF, Named("heavy", HEAVY), (("p.src", "src"),)), more(Column("p.size"), 3)
            ),
            rate=Column("f.rate"),
        ),
    ),
    (
        "SELECT src FROM packets EXCEPT SELECT src FROM flows",
        Difference(Distinct(SRCS), FSRCS, (("src", "src"),)),
    ),
    (
        "SELECT src FROM packets EXCEPT SELECT dst FROM heavy",
        Difference(Distinct(SRCS), project(Named("heavy", HEAVY), dst=Column("dst")), (("src", "dst"),)),
    ),
]  # fmt: skip
UNIONS = [
    ("SELECT src FROM packets UNION ALL SELECT src FROM flows", Union((SRCS, FSRCS))),
    ("SELECT src FROM packets UNION SELECT src FROM flows", Distinct(Union((SRCS, FSRCS)))),
    (
        "SELECT src FROM packets UNION ALL SELECT src FROM flows UNION ALL SELECT src FROM packets",
        Union((SRCS, FSRCS, SRCS)),
    ),
    (
        "SELECT src FROM packets UNION ALL (SELECT src FROM flows EXCEPT SELECT src FROM packets)",
        Union((SRCS, Difference(Distinct(FSRCS), SRCS, (("src", "src"),)))),
    ),
    (
        "ISTREAM (SELECT src FROM packets UNION ALL SELECT src FROM flows)",
        ToStream(Union((SRCS, FSRCS)), "istream"),
    ),
    (
        "SELECT ISTREAM src FROM packets UNION ALL DSTREAM (SELECT src FROM flows)",
        Union((ToStream(SRCS, "istream"), ToStream(FSRCS, "dstream"))),
    ),
]


@pytest.mark.parametrize(("text", "expected"), DIFFERENCES + UNIONS, ids=[text for text, _ in DIFFERENCES + UNIONS])
def test_queries_are_taken_from_one_another_and_put_together(text, expected):
    assert tree(text) == expected


COUNTED = grouped(P, ("src",), {"src": "int64", "n": "int64"}, n=("count", None))
RATIO = Call("/", (Column("sum_size"), Column("count")))
SUMMED = {"src": "int64", "sum_size": "int64", "count": "int64"}
BUCKET = Call("//", (SIZE, Literal(100)))
GROUPS = [
    ("SELECT src, count(*) AS n FROM packets GROUP BY src", COUNTED),
    ("SELECT count(*) AS n, src FROM packets GROUP BY src", project(COUNTED, n=Column("n"), src=SRC)),
    ("SELECT count(*) FROM packets", grouped(P, (), {"count": "int64"}, count=("count", None))),
    (
        "SELECT count(tag), count(DISTINCT tag), sum(size), avg(size), min(tag), max(size) FROM packets",
        grouped(
            P, (),
            {"count_tag": "int64", "count_distinct_tag": "int64", "sum_size": "int64", "avg_size": "float64",
             "min_tag": "string", "max_size": "int64"},
            count_tag=("count", "tag"), count_distinct_tag=("count distinct", "tag"), sum_size=("sum", "size"),
            avg_size=("avg", "size"), min_tag=("min", "tag"), max_size=("max", "size"),
        ),
    ),
    (
        "SELECT sum(rate) FROM flows",
        grouped(F, (), {"sum_rate": "float64"}, sum_rate=("sum", "rate")),
    ),
    (
        "SELECT src, sum(size) / count(*) AS m FROM packets GROUP BY src",
        project(
            grouped(P, ("src",), SUMMED, sum_size=("sum", "size"), count=("count", None)), src=SRC, m=RATIO
        ),
    ),
    (
        "SELECT src FROM packets GROUP BY src HAVING count(*) > 3",
        project(
            Select(
                grouped(P, ("src",), {"src": "int64", "count": "int64"}, count=("count", None)),
                more(Column("count"), 3),
            ),
            src=SRC,
        ),
    ),
    ("SELECT src, count(*) AS n FROM packets GROUP BY src HAVING n > 3", Select(COUNTED, more(Column("n"), 3))),
    (
        "SELECT src, count(*) AS n FROM packets GROUP BY src HAVING count(*) > 3 AND src > 1",
        Select(COUNTED, both(more(Column("n"), 3), more(SRC, 1))),
    ),
    (
        "SELECT size // 100 AS bucket, sum(size * 2) AS s FROM packets GROUP BY size // 100",
        grouped(
            project(P, bucket=BUCKET, expr1=Call("*", (SIZE, Literal(2)))),
            ("bucket",), {"bucket": "int64", "s": "int64"}, s=("sum", "expr1"),
        ),
    ),
    (
        "SELECT size // 100 AS bucket, count(*) AS n FROM packets GROUP BY bucket",
        grouped(project(P, bucket=BUCKET), ("bucket",), {"bucket": "int64", "n": "int64"}, n=("count", None)),
    ),
    (
        "SELECT p.src, max(rate) AS top FROM packets p JOIN flows f USING (src) GROUP BY p.src",
        project(
            grouped(PF, ("p.src",), {"p.src": "int64", "top": "float64"}, top=("max", "f.rate")),
            src=Column("p.src"), top=Column("top"),
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), GROUPS, ids=[text for text, _ in GROUPS])
def test_groups_are_aggregated_with_expressions_below_and_above(text, expected):
    assert tree(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size + 1 - 2 * -3", Call("-", (Call("+", (SIZE, Literal(1))), Call("*", (Literal(2), Literal(-3)))))),
        ("-size", Call("neg", (SIZE,))),
        ("size / 2 % 3 // 4", Call("//", (Call("%", (Call("/", (SIZE, Literal(2))), Literal(3))), Literal(4)))),
        ("1.5e3", Literal(1500.0)),
        ("'it''s'", Literal("it's")),
        ("size <> 1 OR NOT (size >= 2)", Call("or", (Call("<>", (SIZE, Literal(1))), Call("not", (Call(">=", (SIZE, Literal(2))),))))),
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
    assert expression(text, PACKETS, CATALOG.functions) == expected


@pytest.mark.parametrize("function", ["round", "floor", "ceil", "sqrt", "ln", "exp", "power", "least", "greatest"])
def test_functions_of_numbers_keep_their_names(function):
    arguments = (SIZE, Literal(2)) if function in ("power", "least", "greatest") else (SIZE,)
    text = f"{function.upper()}({', '.join(['size', '2'][: len(arguments)])})"
    assert expression(text, PACKETS) == Call(function, arguments)


@pytest.mark.parametrize("function", ["lower", "upper", "length", "trim"])
def test_functions_of_strings_keep_their_names(function):
    assert expression(f"{function}(tag)", PACKETS) == Call(function, (TAG,))


def test_an_expression_over_a_join_may_qualify_its_columns():
    schema = Schema((("p.src", "int64"), ("f.src", "int64"), ("f.rate", "float64")))
    assert expression("p.src = f.src", schema) == Call("=", (Column("p.src"), Column("f.src")))
    assert expression("rate", schema) == Column("f.rate")
    with pytest.raises(CqlError, match=r"column 'src' is ambiguous; there are \['p.src', 'f.src'\]"):
        expression("src", schema)


def test_a_condition_is_true_false_or_unknown():
    assert condition("size > 3", PACKETS) == more(SIZE, 3)
    with pytest.raises(CqlError, match="line 1, column 1: a condition is wanted here, not a value of type int64"):
        condition("size + 3", PACKETS)


THERE = "there are ['dst', 'size', 'src', 'tag']"
SOURCES = "there are ['flows', 'heavy', 'hosts', 'packets', 'sums']"
UNITS = "there are ['microseconds', 'milliseconds', 'seconds', 'minutes', 'hours', 'days']"
NAMES = [
    (
        "SELECT src\nFROM packets WHERE szie > 3",
        f"line 2, column 20: no column 'szie' in 'packets' (did you mean 'size'?); {THERE}",
    ),
    ("SELECT p.szie FROM packets p", f"line 1, column 8: no column 'szie' in 'p' (did you mean 'size'?); {THERE}"),
    ("SELECT q.size FROM packets p", "line 1, column 8: no source 'q' in sight; there are ['p']"),
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
    ("SELECT size AS \"a.b\" FROM packets", "line 1, column 16: 'a.b' cannot be the name of a column: no ? and no . in it"),
    ("SELECT * FROM (SELECT src FROM packets)", "line 1, column 23: a sub-query in FROM wants a name: (SELECT ...) AS s"),
]  # fmt: skip
WINDOWS = [
    ("SELECT * FROM packets [RANGE 5]", f"line 1, column 31: a unit of time is wanted as in RANGE 5 SECONDS, not ']'; {UNITS}"),
    ("SELECT 1 FROM flows, packets [RANGE 5]", f"line 1, column 38: a unit of time is wanted as in RANGE 5 SECONDS, not ']'; {UNITS}"),
    ("SELECT * FROM packets [ROWS 0]", "line 1, column 29: ROWS wants a whole number above 0, not '0'"),
    ("SELECT * FROM packets [ROWS x]", "line 1, column 29: ROWS wants a whole number above 0, not 'x'"),
    ("SELECT * FROM packets [ROWS 5 SLIDE 2]", "line 1, column 31: ] is wanted at the end of a window, not 'SLIDE'"),
    ("SELECT * FROM packets [RANGE 0.5 us]", "line 1, column 30: RANGE: '0.5 us' is no whole number of microseconds"),
    ("SELECT * FROM packets [RANGE 1 DAY SLIDE 0 DAYS]", "line 1, column 44: SLIDE wants a length of time above 0"),
    (
        "SELECT * FROM packets [5]",
        "line 1, column 24: a window is one of [RANGE 10 SECONDS], [RANGE 10 SECONDS SLIDE 1 SECOND], [ROWS 100], [NOW] "
        "or [UNBOUNDED], not '5'",
    ),
    ("SELECT * FROM packets p [NOW]", "line 1, column 25: a window stands before the alias: [...] AS p"),
    (
        "SELECT n FROM sums [NOW]",
        "line 1, column 20: a window wants a stream, and this is a relation: an aggregate's results change; "
        "ISTREAM makes a stream of it",
    ),
    (
        "SELECT * FROM (SELECT src FROM packets [NOW]) [NOW] s",
        "line 1, column 47: a window wants a stream, and this is a relation: rows leave the window in it; "
        "ISTREAM makes a stream of it",
    ),
    (
        "SELECT * FROM (SELECT src FROM packets EXCEPT SELECT src FROM flows) [NOW] s",
        "line 1, column 70: a window wants a stream, and this is a relation: rows of a difference go when the right side "
        "gets their like; ISTREAM makes a stream of it",
    ),
    (
        "SELECT 1 FROM packets, hosts [NOW]",
        "line 1, column 30: a window wants a stream, and 'hosts' is stored: it has no time",
    ),
]  # fmt: skip
TYPES = [
    ("SELECT 1 FROM packets WHERE size > 1 AND tag > 3", "line 1, column 42: '>' of string and int64: they have no common type"),
    ("SELECT 1 FROM packets WHERE size", "line 1, column 29: a condition is wanted here, not a value of type int64"),
    ("SELECT src, sum(tag) FROM packets GROUP BY src", "line 1, column 17: sum of string: int64 or float64 is wanted"),
    ("SELECT NULL FROM packets", "line 1, column 8: a NULL without a type is no column: CAST(NULL AS int64) is one"),
    ("SELECT 99999999999999999999 FROM packets", "line 1, column 8: 99999999999999999999 is more than int64 can hold"),
    (
        "SELECT src FROM packets UNION SELECT tag FROM packets",
        "line 1, column 8: both sides want columns of the same types, not ['int64'] and ['string']",
    ),
    (
        "SELECT 1 FROM packets p ANTI JOIN flows f ON p.tag = f.src",
        "line 1, column 25: ANTI JOIN compares string with int64: the same type is wanted",
    ),
    ("SELECT CAST(size AS json) FROM packets", "line 1, column 13: CAST to json is not known; there are ['int64', 'float64', 'bool', 'timestamp', 'string']"),
]  # fmt: skip
AGGREGATES = [
    ("SELECT src, count(*) FROM packets GROUP BY dst", "line 1, column 8: column 'src' is neither in GROUP BY nor inside an aggregate; keys are ['dst']"),
    ("SELECT src FROM packets WHERE count(*) > 1", "line 1, column 31: the aggregate count has no place here"),
    ("SELECT sum(max(size)) FROM packets", "line 1, column 12: the aggregate max has no place here"),
    ("SELECT sum(size, src) FROM packets", "line 1, column 8: sum wants one argument, not 2"),
    ("SELECT sum(*) FROM packets", "line 1, column 12: * stands alone in SELECT or in count(*)"),
    ("SELECT sum(DISTINCT size) FROM packets", "line 1, column 8: DISTINCT stands behind SELECT or before the one argument of count"),
    ("SELECT src FROM packets GROUP BY 1", "line 1, column 34: GROUP BY wants columns or expressions over them"),
]  # fmt: skip
REFUSED = [
    ("SELECT src FROM packets ORDER BY src", "line 1, column 25: ORDER BY is not part of CQL: a continuous query has no last row"),
    ("SELECT src FROM packets\nLIMIT 3", "line 2, column 1: LIMIT is not part of CQL: a continuous query has no last row"),
    ("SELECT 1 FROM packets LEFT JOIN flows USING (src)", "line 1, column 23: LEFT JOIN is not part of CQL; there are JOIN, CROSS JOIN and ANTI JOIN"),
    ("SELECT 1 FROM packets FULL OUTER JOIN flows USING (src)", "line 1, column 23: FULL OUTER JOIN is not part of CQL; there are JOIN, CROSS JOIN and ANTI JOIN"),
    ("SELECT 1 FROM packets NATURAL JOIN flows", "line 1, column 23: NATURAL JOIN is not part of CQL; there are JOIN, CROSS JOIN and ANTI JOIN"),
    ("SELECT 1 FROM packets p ANTI JOIN flows f", "line 1, column 25: ANTI JOIN wants ON or USING with the columns to compare"),
    ("SELECT 1 FROM packets p ANTI JOIN flows f ON p.src > f.src", "line 1, column 46: ANTI JOIN compares a column of the left with one of the right by ="),
    ("SELECT 1 FROM packets ANTI JOIN hosts USING (src)", "line 1, column 33: 'hosts' is stored; ANTI JOIN wants a stream or a query"),
    ("SELECT name FROM hosts", "line 1, column 18: ['hosts'] are stored: a continuous query joins them with at least one stream"),
    ("SELECT sum(size) OVER () FROM packets", "line 1, column 8: a window function (OVER) is not part of CQL; a window stands in brackets behind a stream in FROM"),
    ("SELECT src FROM packets WHERE src IN (SELECT src FROM flows)", "line 1, column 46: a sub-query stands in FROM only; write a JOIN or an ANTI JOIN"),
    ("SELECT src FROM packets WHERE EXISTS (SELECT src FROM flows)", "line 1, column 46: a sub-query stands in FROM only; write a JOIN or an ANTI JOIN"),
    ("SELECT 1 FROM packets WHERE tag LIKE 'a' ESCAPE 'b'", "line 1, column 29: escape is not part of CQL"),
    ("SELECT 1 FROM packets WHERE size BETWEEN SYMMETRIC 2 AND 1", "line 1, column 29: SYMMETRIC is not part of CQL here"),
    ("SELECT a.b.c FROM packets", "line 1, column 8: a column is called name or alias.name, without a further dot"),
    ("SELECT 1e400 FROM packets", "line 1, column 8: 1e400 is more than float64 can hold"),
    ("SELECT src FROM packets INTERSECT SELECT src FROM flows", "line 1, column 8: intersect is not part of CQL"),
    ("SELECT src FROM packets EXCEPT ALL SELECT src FROM flows", "line 1, column 8: EXCEPT ALL is not part of CQL; there are EXCEPT and ANTI JOIN"),
    ("SELECT 1", "line 1, column 8: FROM is wanted: a continuous query reads at least one stream"),
    ("DROP TABLE packets", "line 1, column 1: a query starts with SELECT or one of ['ISTREAM', 'DSTREAM', 'RSTREAM'], not 'DROP'"),
    ("SELECT src FROM packets; SELECT 1", "one query is wanted, not 2"),
    ("SELECT src FROM packets WHERE size >", "line 1, column 36: something is missing at '>'"),
    ("SELECT src size tag FROM packets", "line 1, column 17: 'tag' is not expected here"),
    ("SELECT 'a FROM packets", "line 1, column 8: ' is wanted: what starts here is not closed"),
]  # fmt: skip
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
    "SELECT FROM WHERE HAVING DISTINCT ISTREAM DSTREAM ( ) [ ] , . * + - / // % = <> < >= AND OR NOT IS NULL IN LIKE || "
    "packets flows hosts p f src size tag rate AS JOIN ANTI ON USING EXCEPT UNION ALL ROWS RANGE SLIDE NOW UNBOUNDED "
    "SECONDS 10 0 1.5 'a' ' count sum avg min abs CASE WHEN THEN ELSE END CAST int64 BETWEEN LIMIT LEFT OVER WITH ; : :: "
    '? @ $1 "x" INTERVAL EXISTS LATERAL VALUES PIVOT INTERSECT NATURAL true TIMESTAMP ARRAY -> IF ANY'
)
SALAD = st.lists(st.sampled_from([*WORDS.split(), "GROUP BY", "ORDER BY", "PARTITION BY"]), max_size=12).map(" ".join)
FRAMES = st.sampled_from(
    ["{}", "SELECT {} FROM packets", "SELECT src FROM packets {}", "SELECT src FROM packets WHERE {}",
     "SELECT src, count(*) FROM packets GROUP BY {}", "ISTREAM (SELECT src FROM packets) {}"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(FRAMES, SALAD)
def test_no_text_whatever_raises_anything_but_a_cql_error(frame, salad):
    """And what is understood has each column once."""
    try:
        names = list(tree(frame.format(salad)).schema)
    except CqlError:
        return
    assert len(set(names)) == len(names)
