"""CQL: each rule of the language as a text and the tree that it compiles to."""

from __future__ import annotations

import pytest

from dsms.algebra import (
    Aggregate,
    Aggregation,
    AliasedNode,
    Difference,
    Distinct,
    Join,
    Project,
    Select,
    StoredRelation,
    StreamScan,
    ToStream,
    Union,
    Window,
    Windowed,
)
from dsms.data.schema import Schema
from dsms.expressions.scalar_functions import UserFunction
from dsms.expressions.tree import Call, Column, Literal
from dsms.expressions.types import type_of
from dsms.query.cql import Catalog, compile_query

PACKETS = Schema.of({"src": "int64", "dst": "int64", "size": "int64", "tag": "string"})
FLOWS = Schema.of({"src": "int64", "rate": "float64"})
HOSTS = Schema.of({"src": "int64", "name": "string"})
HEAVY = Select(StreamScan("packets", PACKETS), Call(">", (Column("size"), Literal(1000))))
SUMS = Aggregate(
    StreamScan("packets", PACKETS), (), (Aggregation("n", "count", None),), Schema.of({"n": "int64"})
)  # fmt: skip
CATALOG = Catalog(
    {"packets": PACKETS, "flows": FLOWS},
    {"hosts": HOSTS},
    {"heavy": HEAVY, "sums": SUMS},
    {"grade": UserFunction(abs, "int64")},
)
P, F = StreamScan("packets", PACKETS), StreamScan("flows", FLOWS)
SRC, SIZE, TAG = Column("src"), Column("size"), Column("tag")


def tree(text):
    return compile_query(text, CATALOG)


def project(of, **items):
    """A projection; its types are computed from its items."""
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
        ("[ROWS 100 SLIDE 10]", Windowed(P, Window("rows", 100, 10))),
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
    ("SELECT size FROM heavy", project(AliasedNode("heavy", HEAVY), size=SIZE)),
    ("SELECT size FROM heavy [ROWS 2]", project(Windowed(AliasedNode("heavy", HEAVY), Window("rows", 2)), size=SIZE)),
    ("SELECT n FROM sums", AliasedNode("sums", SUMS)),
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
    assert compile_query("SELECT istream FROM s", catalog).schema == Schema.of({"istream": "int64"})


PF = join((("p.src", "f.src"),), p=P, f=F)
PH = join((("packets.src", "hosts.src"),), packets=P, hosts=StoredRelation("hosts", HOSTS))
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
                (("p.src", "f.src"), ("p.dst", "h.dst"), ("f.src", "h.src")), p=P, f=F, h=AliasedNode("heavy", HEAVY)
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
        Difference(P, AliasedNode("heavy", HEAVY), (("src", "dst"), ("src", "src"))),
    ),
    (
        "SELECT rate FROM packets p JOIN flows f USING (src) ANTI JOIN heavy h ON p.src = h.src WHERE size > 3",
        project(
            Select(
                Difference(PF, AliasedNode("heavy", HEAVY), (("p.src", "src"),)), more(Column("p.size"), 3)
            ),
            rate=Column("f.rate"),
        ),
    ),
    (
        "SELECT src FROM packets EXCEPT SELECT src FROM flows",
        Difference(Distinct(SRCS), FSRCS, (("src", "src"),), nulls_equal=True),
    ),
    (
        "SELECT src FROM packets EXCEPT SELECT dst FROM heavy",
        Difference(
            Distinct(SRCS), project(AliasedNode("heavy", HEAVY), dst=Column("dst")), (("src", "dst"),), nulls_equal=True
        ),
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
        Union((SRCS, Difference(Distinct(FSRCS), SRCS, (("src", "src"),), nulls_equal=True))),
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
