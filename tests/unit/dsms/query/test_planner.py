"""From queries to stations: conditions are pushed down, filters fused, equal parts shared."""

from __future__ import annotations

import pytest

from dsms import plan_from
from dsms.errors import PlanError
from dsms.expressions.tree import text_of
from dsms.operators.fused import FilterStep, FusedOperator
from dsms.operators.joins import MultiJoin
from dsms.operators.relation_to_stream import RelationToStreamOperator
from dsms.operators.reorder import ReorderOperator
from dsms.operators.window import WindowOperator

STREAMS = {
    "packets": {"schema": {"src": "int64", "size": "int64"}},
    "flows": {"schema": {"src": "int64", "bytes": "int64"}},
    "hosts": {"schema": {"src": "int64", "host": "string", "at": "timestamp"}, "timestamp": "at"},
}


def planned(*texts, **more):
    """The plan of these queries, called q1, q2 …; queries by keyword have their own names."""
    queries = {f"q{number}": text for number, text in enumerate(texts, 1)} | more
    return plan_from({"streams": STREAMS, "queries": {name: {"cql": text} for name, text in queries.items()}})


def drawn(plan):
    """Every station as `name(what it does) <- inputs`."""
    return [f"{s.name}({describe(s.operator)}) <- {', '.join(i.name for i in s.inputs)}" for s in plan.stations]


def describe(operator):
    match operator:
        case FusedOperator(steps=steps):
            return "; ".join(
                text_of(step.condition) if isinstance(step, FilterStep) else ",".join(name for name, _ in step.items)
                for step in steps
            )
        case WindowOperator(window=window):
            return f"{window.kind} {window.length}"
        case MultiJoin(columns=columns, emit=emit):
            return f"{emit}: {','.join(columns)}"
        case RelationToStreamOperator(kind=kind):
            return kind
        case ReorderOperator(column=column):
            return f"by {column}"
        case _:
            return operator.kind_name()


@pytest.mark.parametrize(("text", "expected"), [
    (
        "SELECT src FROM packets WHERE size > 1 AND src < 9",
        ["q1.select(size > 1; src < 9; src) <- packets"],
    ),
    (
        "SELECT src FROM packets [RANGE 1 SECOND] WHERE size > 1",
        ["q1.where(size > 1) <- packets", "q1.window(range 1000000) <- q1.where", "q1.select(src) <- q1.window"],
    ),
    (
        "SELECT src FROM packets [ROWS 5] WHERE size > 1",
        ["q1.window(rows 5) <- packets", "q1.select(size > 1; src) <- q1.window"],
    ),
    (
        "SELECT p.size FROM packets [RANGE 1 SECOND] AS p, flows [RANGE 1 SECOND] AS f "
        "WHERE p.src = f.src AND p.size > 1 AND f.bytes < 2 AND p.size < f.bytes",
        [
            "q1.where(size > 1) <- packets",
            "q1.where2(bytes < 2) <- flows",
            "q1.join(both: p.size,f.bytes) <- q1.where, q1.where2",
            "q1.select(p.size < f.bytes; size) <- q1.join",
        ],
    ),
    (
        "SELECT p.size FROM packets [ROWS 5] AS p, flows [RANGE 1 SECOND] AS f WHERE p.src = f.src AND p.size > 1",
        ["q1.join(both: p.size) <- packets, flows", "q1.select(p.size > 1; size) <- q1.join"],
    ),
    (
        "SELECT ISTREAM(p.size) FROM packets [RANGE 1 SECOND] AS p, flows [ROWS 2] AS f WHERE p.src = f.src",
        ["q1.join(insertions: p.size) <- packets, flows", "q1.select(size) <- q1.join"],
    ),
    (
        "SELECT src, count(*) AS n FROM packets [RANGE 1 SECOND] GROUP BY src HAVING src > 3 AND count(*) > 1",
        [
            "q1.where(src > 3) <- packets",
            "q1.window(range 1000000) <- q1.where",
            "q1.group(aggregate) <- q1.window",
            "q1.where2(n > 1) <- q1.group",
        ],
    ),
    (
        "SELECT src FROM (SELECT src FROM packets UNION ALL SELECT bytes FROM flows) AS u WHERE src = 1",
        [
            "q1.select(src = 1; src) <- packets",
            "q1.select2(bytes = 1; bytes) <- flows",
            "q1.union(union) <- q1.select, q1.select2",
        ],
    ),
    ("SELECT * FROM packets", ["q1.pass() <- packets"]),
    ("SELECT host FROM hosts", ["q1.arrange(by at) <- hosts", "q1.select(host) <- q1.arrange"]),
])  # fmt: skip
def test_a_query_becomes_these_stations(text, expected):
    assert drawn(planned(text)) == expected


def test_equal_parts_of_two_queries_are_one_station():
    window = "packets [RANGE 1 SECOND] WHERE size > 1"
    plan = planned(f"SELECT src, count(*) AS n FROM {window} GROUP BY src", f"SELECT src FROM {window}")
    assert drawn(plan) == [
        "q1.where(size > 1) <- packets",
        "q1.window(range 1000000) <- q1.where",
        "q1.group(aggregate) <- q1.window",
        "q2.select(src) <- q1.window",
    ]


def test_a_join_that_two_queries_share_puts_out_what_both_want():
    text = "FROM packets [RANGE 1 SECOND] AS p, flows [RANGE 1 SECOND] AS f WHERE p.src = f.src"
    plan = planned(f"SELECT ISTREAM(p.size) {text}", f"SELECT f.bytes {text}")
    assert drawn(plan) == [
        "q1.join(both: p.size,f.bytes) <- packets, flows",
        "q1.select(size) <- q1.join",
        "q1.istream(istream) <- q1.select",
        "q2.select(bytes) <- q1.join",
    ]


def test_the_same_query_twice_is_worked_out_once_and_put_out_twice():
    plan = planned("SELECT src FROM packets", "SELECT src FROM packets")
    assert drawn(plan) == ["q1.select(src) <- packets", "q2.pass() <- q1.select"]
    assert [station.name for station in plan.stations if station.sink] == ["q1.select", "q2.pass"]


def test_a_query_reads_another_whatever_their_order_in_the_plan():
    plan = planned(above="SELECT src FROM below WHERE src > 1", below="SELECT size, src FROM packets")
    assert drawn(plan) == ["below.select(size,src) <- packets", "above.select(src > 1; src) <- below.select"]


def test_queries_that_read_each_other_are_refused():
    with pytest.raises(
        PlanError, match=r"queries\.one\.cql: queries read from each other in a cycle: one <- two <- one"
    ):
        planned(one="SELECT src FROM two", two="SELECT src FROM one")


def test_filters_that_another_query_reads_too_stay_a_station_of_their_own():
    plan = planned("SELECT src FROM packets WHERE size > 1", "SELECT size FROM packets WHERE size > 1")
    assert drawn(plan) == [
        "q1.where(size > 1) <- packets",
        "q1.select(src) <- q1.where",
        "q2.select(size) <- q1.where",
    ]


def test_columns_equal_by_way_of_another_input_are_compared_too():
    plan = planned(
        "SELECT p.src FROM packets [ROWS 2] AS p, flows [ROWS 2] AS f WHERE p.src = f.src AND p.size = f.src"
    )
    assert drawn(plan)[-1] == "q1.select(p.size = p.src; p.src; src) <- q1.join"
