"""Queries as dataflow expressions: the operations on rows, rewrites, and measurements."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dsms
from dsms import Batch
from dsms.cli import main
from dsms.errors import PlanError

R, S, T = ({"schema": {a: "int64", b: "int64"}} for a, b in ("ab", "bc", "ac"))
WINDOW = "[RANGE 1 SECOND]"


def streams(**schemas):
    return {
        name: {"schema": {**given["schema"], "at": "timestamp"}, "timestamp": "at"} for name, given in schemas.items()
    }


def rows(count, every, seed, *columns):
    draw = np.random.default_rng(seed).integers
    values = {name: draw(0, 30, count) for name in columns}
    return [
        Batch.of({**{n: v[i : i + 100] for n, v in values.items()}, "at": np.arange(i, min(i + 100, count)) * every})
        for i in range(0, count, 100)
    ]


def flows(cql, given, **more):
    plan = {"streams": given, "queries": {"q": {"cql": cql}}}
    (found,) = dsms.dataflows(plan, **more).queries
    return found


def test_a_join_of_three_is_shown_as_the_paper_has_it():
    text = f"SELECT r.a FROM r {WINDOW}, s {WINDOW}, t {WINDOW} WHERE r.b = s.b AND r.a = t.a AND s.c = t.c"
    found = flows(text, {"r": R, "s": S, "t": T})
    assert [line.expression for line in found.lines] == [
        "r: ->(w_r), join[b](w_s), join[a,c](w_t), transform[a], ->(w_out)",
        "s: ->(w_s), join[b](w_r), join[a,c](w_t), transform[a], ->(w_out)",
        "t: ->(w_t), join[c](w_s), join[a,b](w_r), transform[a], ->(w_out)",
    ]
    (join,) = found.joins
    assert (join.order, join.dashed_edges, join.without_timestamps) == ("preserving", 6, 9)


def test_a_difference_is_taken_before_the_join_where_that_is_quicker():
    """H5: the difference puts out at most one row for one."""
    given = streams(r=R, s=S, t=T)
    text = f"SELECT r.a FROM r {WINDOW}, s {WINDOW} ANTI JOIN t {WINDOW} ON s.c = t.c WHERE r.b = s.b"
    sources = {"r": rows(4000, 500, 1, "a", "b"), "s": rows(4000, 500, 2, "b", "c"), "t": rows(400, 5000, 3, "a", "c")}
    found = flows(text, given, sources=sources)
    assert "s: order, ->(w_s), -left[c](w_t), join[b](w_r), transform[a], ->(w_out)" in [
        line.expression for line in found.lines
    ]
    assert any(
        change.startswith("s: ->(w_s), -left[c](w_t), join[b](w_r), ->(w_out) instead of join[b](w_r), -left[c](w_t):")
        for change in found.changes
    )


def test_times_are_those_measured_and_add_up():
    found = flows("SELECT a FROM r WHERE b < 15", streams(r=R), sources={"r": rows(5000, 10, 1, "a", "b")})
    (line,) = found.lines
    assert line.expression == "r: order, select[b < 15], transform[a], ->(w_out)"
    assert [round(cost.outputs, 1) for _, cost in line.operations] == [1, 1, 0.5, 1]
    order, select, *_ = (cost.time for _, cost in line.operations)
    assert order > 0
    assert select > 0
    assert line.block == pytest.approx(order + select)


def test_what_was_pushed_down_and_what_is_shared_is_said():
    plan = {
        "streams": streams(r=R),
        "queries": {
            "one": {"cql": f"SELECT a FROM r {WINDOW} WHERE b < 15"},
            "two": {"cql": f"SELECT b FROM r {WINDOW} WHERE b < 15"},
        },
    }
    one, two = dsms.dataflows(plan, sources={"r": rows(1000, 10, 1, "a", "b")}).queries
    assert len(one.changes) == 1
    assert one.changes[0].startswith("b < 15 checked before one.window: 5")
    assert two.changes == ["one.window is shared with query 'one'"]


def test_what_the_query_itself_puts_first_is_no_change_and_nothing_is_measured_without_rows():
    text = f"SELECT x.a FROM (SELECT a, b FROM r WHERE b < 15) AS x, s {WINDOW} WHERE x.b = s.b AND x.a > 3"
    found = flows(text, {"r": R, "s": S})
    assert found.changes == ["a > 3 checked before q.join"]


@pytest.mark.parametrize(("order", "expected"), [("weak", 0), (3, 0), ("preserving", 2)])
def test_dashed_edges_are_those_of_the_order_that_is_set(order, expected):
    text = f"SELECT r.a FROM r {WINDOW}, s {WINDOW} WHERE r.b = s.b"
    plan = {"streams": {"r": R, "s": S}, "queries": {"q": {"cql": text}}, "run": {"order": order}}
    (join,) = dsms.dataflows(plan).queries[0].joins
    assert (join.order, join.because, join.dashed_edges) == (order, None, expected)


def test_a_join_that_cannot_work_ahead_keeps_the_order_and_says_why():
    text = f"SELECT r.a FROM r [ROWS 2], s {WINDOW} WHERE r.b = s.b"
    plan = {"streams": {"r": R, "s": S}, "queries": {"q": {"cql": text}}, "run": {"order": "weak"}}
    (join,) = dsms.dataflows(plan).queries[0].joins
    assert join.order == "preserving"
    assert join.because == "'r' is a window of rows, whose contents depend on the order of rows"


def test_whether_a_window_inside_a_join_pays_is_said():
    text = f"SELECT r.a FROM r {WINDOW}, s {WINDOW}, t {WINDOW} WHERE r.b = s.b AND r.a = t.a AND s.c = t.c"
    sources = {"r": rows(400, 5000, 1, "a", "b"), "s": rows(400, 5000, 2, "b", "c"), "t": rows(4000, 500, 3, "a", "c")}
    (window,) = flows(text, streams(r=R, s=S, t=T), sources=sources).windows
    assert window.startswith("w_rs is ")
    assert "a row of t takes" in window


def test_a_plan_without_written_queries_has_no_dataflow(plans):
    with pytest.raises(PlanError, match="the plan has no CQL query"):
        dsms.dataflows(plans / "path.toml")


def test_the_command_prints_json(plans, capsys):
    assert main(["explain", str(plans / "auction.toml"), "--dataflow", "--json", "--sample", "50"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [query["query"] for query in found["queries"]] == ["high", "best", "busy", "met", "unasked"]
    (join,) = found["queries"][3]["joins"]
    assert join == {
        "station": "met.join",
        "order": "preserving",
        "because": None,
        "dashed_edges": 2,
        "without_timestamps": 3,
    }


@pytest.mark.parametrize(("words", "message"), [
    (["--dataflow", "--policy", "fifo"], "remove --policy"),
    ([], "give one as --policy NAME, or --dataflow"),
])  # fmt: skip
def test_a_policy_or_the_dataflow_is_explained_not_both_nor_neither(words, message, plans, capsys):
    assert main(["explain", str(plans / "auction.toml"), *words]) == 2
    assert message in capsys.readouterr().err
