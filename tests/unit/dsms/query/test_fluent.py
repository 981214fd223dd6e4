"""Queries built in Python compile to the same trees as the equivalent CQL."""

from __future__ import annotations

import pytest

from dsms.algebra import Apply, Join, Select, StreamScan
from dsms.data.schema import Schema
from dsms.durations import parse_duration_us
from dsms.errors import PlanError
from dsms.expressions.tree import Call, Column, Literal
from dsms.query.cql import Catalog, CqlError, compile_query
from dsms.query.fluent import stream

PACKETS = Schema.of({"src": "int64", "dst": "int64", "size": "int64", "tag": "string"})
FLOWS = Schema.of({"src": "int64", "rate": "float64"})
CATALOG = Catalog(
    {"packets": PACKETS, "flows": FLOWS},
    {"hosts": Schema.of({"src": "int64", "name": "string"})},
    {"heavy": Select(StreamScan("packets", PACKETS), Call(">", (Column("size"), Literal(1000))))},
)
packets, flows, heavy, hosts = stream("packets"), stream("flows"), stream("heavy"), stream("hosts")
p, f = packets.alias("p"), flows.alias("f")

PAIRS = [
    (packets, "SELECT * FROM packets"),
    (packets.where("size > 1000"), "SELECT * FROM packets WHERE size > 1000"),
    (
        packets.where("size > 1000").select("src", "size", total="size * 2"),
        "SELECT src, size, size * 2 AS total FROM packets WHERE size > 1000",
    ),
    (packets.select("*", "size + 1"), "SELECT *, size + 1 FROM packets"),
    (packets.window(rows=100).select("src"), "SELECT src FROM packets [ROWS 100]"),
    (packets.window(range="200ms"), "SELECT * FROM packets [RANGE 200 MILLISECONDS]"),
    (packets.window(range="10s", slide="1s"), "SELECT * FROM packets [RANGE 10 SECONDS SLIDE 1 SECOND]"),
    (p.join(f, on="src").select("rate"), "SELECT rate FROM packets p JOIN flows f USING (src)"),
    (
        p.join(f, on=[("dst", "src")]).where("size > 3").select("p.src", "f.src", r="rate"),
        "SELECT p.src, f.src, rate AS r FROM packets p, flows f WHERE p.dst = f.src AND size > 3",
    ),
    (
        p.join(f, on="src").join(hosts, on=[("p.dst", "src")]).select("name"),
        "SELECT name FROM packets p JOIN flows f ON p.src = f.src JOIN hosts ON p.dst = hosts.src",
    ),
    (p.join(f).select("*"), "SELECT * FROM packets p CROSS JOIN flows f"),
    (
        packets.window(rows=9).alias("a").join(packets.alias("b"), on="src").select("a.tag"),
        "SELECT a.tag FROM packets [ROWS 9] AS a JOIN packets b ON a.src = b.src",
    ),
    (packets.except_(flows, on="src"), "SELECT * FROM packets ANTI JOIN flows USING (src)"),
    (packets.except_(flows, on=[("dst", "src")]), "SELECT * FROM packets p ANTI JOIN flows f ON p.dst = f.src"),
    (packets.select("src").except_(flows.select("src")), "SELECT src FROM packets EXCEPT SELECT src FROM flows"),
    (
        packets.select("src").union(flows.select("src")).union(heavy.select("src")),
        "SELECT src FROM packets UNION ALL SELECT src FROM flows UNION ALL SELECT src FROM heavy",
    ),
    (
        packets.select("src").union(flows.select("src")).distinct(),
        "SELECT src FROM packets UNION SELECT src FROM flows",
    ),
    (
        packets.group_by("src").aggregate(n="count(*)", total="sum(size)"),
        "SELECT src, count(*) AS n, sum(size) AS total FROM packets GROUP BY src",
    ),
    (
        packets.group_by("src", "size // 100").aggregate(mean="sum(size * 2) / count(*)"),
        "SELECT src, size // 100, sum(size * 2) / count(*) AS mean FROM packets GROUP BY src, size // 100",
    ),
    (
        packets.group_by("src").aggregate(n="count(*)").where("n > 3"),
        "SELECT src, count(*) AS n FROM packets GROUP BY src HAVING n > 3",
    ),
    (packets.aggregate(n="count(DISTINCT src)"), "SELECT count(DISTINCT src) AS n FROM packets"),
    (packets.select("max(size)"), "SELECT max(size) FROM packets"),
    (
        p.join(f, on="src").group_by("p.src").aggregate(top="max(rate)"),
        "SELECT p.src, max(rate) AS top FROM packets p JOIN flows f USING (src) GROUP BY p.src",
    ),
    (packets.select("src").distinct(), "SELECT DISTINCT src FROM packets"),
    (packets.window(rows=3).istream(), "SELECT ISTREAM(*) FROM packets [ROWS 3]"),
    (packets.window(rows=3).dstream(), "DSTREAM (SELECT * FROM packets [ROWS 3])"),
    (packets.window(rows=3).rstream(), "SELECT RSTREAM * FROM packets [ROWS 3]"),
    (
        packets.window(rows=3).istream().window(range="0s").where("src = 1"),
        "SELECT * FROM ISTREAM (SELECT * FROM packets [ROWS 3]) [NOW] AS s WHERE src = 1",
    ),
]


@pytest.mark.parametrize(("fluent", "text"), PAIRS, ids=[text for _, text in PAIRS])
def test_a_query_in_python_is_the_same_tree_as_in_cql(fluent, text):
    assert fluent.node(CATALOG) == compile_query(text, CATALOG)


def test_each_step_leaves_the_query_before_it_as_it_was():
    packets.where("size > 1").select("src")
    assert packets.node(CATALOG) == StreamScan("packets", PACKETS)


def test_split_gives_a_query_for_each_condition():
    large, own = packets.split("size > 10", "src = dst")
    assert large.node(CATALOG) == packets.where("size > 10").node(CATALOG)
    assert own.node(CATALOG) == packets.where("src = dst").node(CATALOG)


def test_user_code_over_batches_says_what_it_puts_out():
    node = packets.apply("mine:scale", schema={"size": "float64"}).where("size > 1.5").node(CATALOG)
    applied = Apply(StreamScan("packets", PACKETS), "mine:scale", Schema.of({"size": "float64"}))
    assert node == Select(applied, Call(">", (Column("size"), Literal(1.5))))


def test_a_join_under_an_alias_is_one_input_of_the_next():
    node = p.join(f, on="src").select("rate", s="p.src").alias("j").join(heavy, on=[("s", "src")]).node(CATALOG)
    assert isinstance(node, Join)
    assert [alias for alias, _ in node.inputs] == ["j", "heavy"]
    assert node.on == (("j.s", "heavy.src"),)


@pytest.mark.parametrize(
    ("fluent", "message"),
    [
        (stream("pakets"), "no stream, stored relation or query 'pakets' (did you mean 'packets'?)"),
        (packets.where("szie > 3"), "line 1, column 1: no column 'szie' (did you mean 'size'?)"),
        (packets.where("size"), "line 1, column 1: expected a condition, not a value of type int64"),
        (packets.select("szie"), "no column 'szie' (did you mean 'size'?)"),
        (packets.join(packets), "the inputs of a join need different names"),
        (packets.join(flows, on=[("tag", "src")]), "'packets.tag' is string and 'flows.src' int64"),
        (packets.union(flows), "both sides need columns of the same types"),
        (packets.window(), "a window has rows or a range"),
        (packets.window(rows=1, slide="1s"), "a window needs a whole number of rows above 0, not '1s'"),
        (packets.window(rows=0), "a window needs a whole number of rows above 0, not 0"),
        (packets.window(range="1s", slide="0s"), "a window needs a slide above 0"),
        (packets.window(rows=1).window(rows=1), "a window needs a stream, and this is a relation: rows leave"),
        (hosts.window(rows=1), "a window needs a stream, and 'hosts' is stored"),
    ],
)
def test_mistakes_in_python_are_told_in_the_words_of_cql(fluent, message):
    with pytest.raises(PlanError) as caught:
        fluent.node(CATALOG)
    assert str(caught.value).startswith(message)


def test_user_code_is_named_by_module_and_name():
    with pytest.raises(PlanError, match="'scale' names no function: expected 'module:name'"):
        packets.apply("scale", schema={})


def test_an_error_in_an_expression_is_a_cql_error():
    with pytest.raises(CqlError, match="line 1, column 7: something is missing at '>'"):
        packets.where("size  >").node(CATALOG)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5us", 5), ("200ms", 200_000), ("1.5 s", 1_500_000), ("2m", 120_000_000), ("1h", 3_600_000_000),
     ("1d", 86_400_000_000), ("0s", 0)],
)  # fmt: skip
def test_lengths_of_time_are_read_in_microseconds(text, expected):
    assert parse_duration_us(text) == expected


@pytest.mark.parametrize("text", ["", "200", "ms", "5 weeks", "-1s", "1e3s", "0.5us", "999999999999d"])
def test_what_is_no_length_of_time_is_refused(text):
    with pytest.raises(PlanError, match=r"is not a duration|microseconds"):
        parse_duration_us(text)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: stream("s").where(5), "5 is not a string"),
    (lambda: stream(7), "7 is not a string"),
    (lambda: stream("s").union("t"), r"'t' is not a query: stream\('t'\) makes one"),
    (lambda: stream("packets").window(rows=2.5).node(CATALOG), "a whole number of rows above 0, not 2.5"),
    (lambda: stream("packets").window(range=5).node(CATALOG), "5 is not a duration"),
])  # fmt: skip
def test_what_is_of_another_kind_is_refused_at_once(build, message):
    with pytest.raises(PlanError, match=message):
        build()
