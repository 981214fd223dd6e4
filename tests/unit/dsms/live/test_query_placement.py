"""Queries over domains: queries that share operators stay together, the rest is balanced."""

from __future__ import annotations

import pytest

from dsms import PlanError, plan_from
from dsms.live.query_placement import find_colocated, place_queries

SCHEMA = {"schema": {"ts": "timestamp", "k": "int64"}}


def written(**queries):
    return plan_from({"streams": {"a": SCHEMA, "b": SCHEMA}, "queries": {n: {"cql": t} for n, t in queries.items()}})


def made(rates=None, **costs):
    """A query of one operator each, with this cost."""
    streams = {
        name: {"arrivals": {"kind": "constant", "rate": rate, "count": 5}} for name, rate in (rates or {}).items()
    }
    queries = {
        name: {"from": name if rates else "s", "operators": [{"name": f"{name}-op", "cost": cost}]}
        for name, cost in costs.items()
    }
    return plan_from({"streams": streams or {"s": {}}, "queries": queries})


def test_the_dearest_queries_are_spread_first_and_the_cheap_ones_fill_up():
    assert place_queries(made(p=5.0, q=3.0, r=2.0, s_=1.0, t=1.0), 2) == [["p", "s_"], ["q", "r", "t"]]


def test_a_cost_counts_as_often_as_tuples_come():
    assert place_queries(made({"p": 1.0, "q": 10.0, "r": 1.0}, p=2.0, q=1.0, r=3.0), 2) == [["q"], ["p", "r"]]


def test_where_nothing_is_declared_the_number_of_stations_counts():
    plan = written(p="SELECT count(*) AS n FROM a [ROWS 5] GROUP BY k", q="SELECT k FROM a", r="SELECT k FROM b")
    assert place_queries(plan, 2) == [["p"], ["q", "r"]]


def test_queries_that_share_a_station_or_read_each_other_stay_together():
    plan = written(
        p="SELECT k FROM a WHERE k > 1",
        q="SELECT ts FROM b",
        r="SELECT k FROM p",
        s="SELECT ts FROM a WHERE k > 1",
    )
    assert find_colocated(plan, "s") == find_colocated(plan, "r") == ["p", "r", "s"]
    assert find_colocated(plan, "q") == ["q"]
    assert place_queries(plan, 2) == [["p", "r", "s"], ["q"]]


def test_more_domains_than_groups_leave_some_empty():
    assert place_queries(made(p=1.0, q=1.0), 4) == [["p"], ["q"], [], []]


def test_a_query_of_two_parts_holds_both_of_them_together():
    queries = {
        "p": {"operators": [{"name": "x", "inputs": ["s"], "cost": 1.0}, {"name": "y", "inputs": ["s"], "cost": 1.0}]},
        "q": {"operators": [{"name": "z", "inputs": ["y"], "cost": 1.0}]},
        "r": {"operators": [{"name": "w", "inputs": ["x"], "cost": 1.0}]},
    }
    assert place_queries(plan_from({"streams": {"s": {}}, "queries": queries}), 2) == [["p", "q", "r"], []]


def test_a_query_that_is_not_there_is_refused():
    with pytest.raises(PlanError, match=r"no query 'x'; there are \['p'\]"):
        find_colocated(made(p=1.0), "x")
