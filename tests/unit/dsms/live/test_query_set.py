"""Queries that come and go: what stays keeps its stations, their names and their operators."""

from __future__ import annotations

import pickle
import random

import pytest

from dsms import PlanError, plan_from
from dsms.live.query_set import QuerySet

TYPES = {"ts": "timestamp", "k": "int64", "v": "int64"}
STREAMS = {"a": {"schema": TYPES, "timestamp": "ts"}, "b": {"schema": TYPES}}
OPERATORS = {
    "p": {"from": "s", "operators": [{"name": "x", "cost": 1.0}, {"name": "y", "cost": 1.0}]},
    "q": {"from": "x", "operators": [{"name": "z", "cost": 1.0}]},
}


def queries(**texts):
    return {"queries": {name: {"cql": text} for name, text in texts.items()}}


def query_set(**texts):
    return QuerySet({"streams": STREAMS, **queries(**texts)})


def stations(query_set):
    """By station: its query and what it reads."""
    return {s.name: (s.query.name, [p.name for p in s.inputs]) for s in query_set.plan.stations}


def sinks(query_set):
    return {s.name for s in query_set.plan.stations if s.sink}


def kept(before, after):
    """The stations of both are the same: name, operator, inputs; and no object is in both plans."""
    mine, theirs = ({s.name: s for s in r.plan.stations} for r in (before, after))
    for name in mine.keys() & theirs.keys():
        assert mine[name] is not theirs[name]
        assert mine[name].query is not theirs[name].query
        assert mine[name].operator is theirs[name].operator
        assert [p.name for p in mine[name].inputs] == [p.name for p in theirs[name].inputs]
    return mine.keys() & theirs.keys()


def test_at_first_it_is_the_plan_of_the_table():
    table = {"streams": STREAMS, **queries(p="SELECT k FROM a WHERE v > 1", q="SELECT v FROM a WHERE v > 1")}
    assert stations(QuerySet(table)) == {
        s.name: (s.query.name, [p.name for p in s.inputs]) for s in plan_from(table).stations
    }
    assert QuerySet(table).table == table


def test_a_query_that_comes_shares_the_way_in_and_filters_that_are_the_same():
    before = query_set(p="SELECT k FROM a WHERE v > 1", q="SELECT v FROM a WHERE v > 1")
    after = before.add(queries(r="SELECT k, v FROM a WHERE v > 1"))
    assert kept(before, after) == set(stations(before))
    assert stations(after)["r.select"] == ("r", ["p.where"])
    assert set(stations(after)) - set(stations(before)) == {"r.select"}
    assert [query.name for query in after.plan.queries] == ["p", "q", "r"]


def test_a_pipe_of_several_steps_stays_one_though_another_shares_a_part_of_it():
    before = query_set(p="SELECT k FROM a WHERE v > 1")
    after = before.add(queries(q="SELECT v FROM a WHERE v > 1"))
    assert kept(before, after) == {"p.arrange", "p.select"}
    assert stations(after)["q.select"] == ("q", ["p.arrange"])


def test_a_query_equal_to_one_there_is_passes_its_results_on():
    after = query_set(p="SELECT k FROM a WHERE v > 1").add(queries(q="SELECT k FROM a WHERE v > 1"))
    assert stations(after)["q.pass"] == ("q", ["p.select"])
    assert sinks(after) == {"p.select", "q.pass"}


@pytest.mark.parametrize("text", [
    "SELECT count(*) AS n FROM a [ROWS 3]",
    "SELECT ISTREAM(count(*) AS n) FROM a",
    "SELECT DISTINCT k FROM a",
    "SELECT x.k AS k FROM a [ROWS 3] AS x, b [ROWS 3] AS y WHERE x.k = y.k",
])  # fmt: skip
def test_what_remembers_rows_is_not_shared_with_one_that_comes_later(text):
    after = query_set(p=text).add(queries(q=text))
    shared = [name for name, (query, inputs) in stations(after).items() if query == "q" for name in inputs]
    assert {name for name in shared if name.startswith("p.")} <= {"p.arrange", "p.select"}
    assert "q.pass" not in stations(after)


def test_a_station_that_others_still_read_stays_and_belongs_to_one_of_them():
    before = query_set(
        p="SELECT k FROM a WHERE v > 1", q="SELECT v FROM a WHERE v > 1", r="SELECT k, v FROM a WHERE v > 1"
    )
    after = before.remove("p")
    assert kept(before, after) == {"p.arrange", "p.where", "q.select", "r.select"}
    assert stations(after)["p.where"] == ("q", ["p.arrange"])
    assert stations(after.remove("q"))["p.where"] == ("r", ["p.arrange"])
    assert sinks(after) == {"q.select", "r.select"}
    assert set(stations(after.remove("q").remove("r"))) == set()


def test_a_station_left_over_never_looks_like_the_end_of_the_query_it_now_belongs_to():
    """q's filter is read by r alone: what is above it goes to q, which reads it, not to r, which reads q's."""
    before = query_set(
        p="SELECT k FROM a WHERE v > 1", q="SELECT v FROM a WHERE v > 1", r="SELECT v FROM a WHERE v > 1"
    )
    after = before.remove("p")
    assert sinks(after) == {"q.select", "r.pass"}
    assert {name for name, (query, _) in stations(after).items() if query == "q"} == {
        "p.arrange",
        "p.where",
        "q.select",
    }


def test_a_name_may_come_back_while_something_of_its_first_bearer_is_left():
    left = query_set(p="SELECT k FROM a WHERE v > 1", q="SELECT v FROM a WHERE v > 1").remove("p")
    after = left.add(queries(p="SELECT * FROM b WHERE v > 2", r="SELECT k FROM b WHERE v > 2"))
    assert stations(after)["p.where"] == ("q", ["p.arrange"])
    assert stations(after)["p.where2"] == ("p", ["b"])
    assert stations(after)["r.select"] == ("r", ["p.where2"])
    with pytest.raises(PlanError, match=r"operator 'p\.where' exists already: other queries still read it"):
        left.add({"queries": {"p": {"from": "b", "operators": [{"name": "where", "cost": 1.0}]}}})


def test_coming_and_going_leaves_the_rosters_before_as_they_were():
    before = query_set(p="SELECT k FROM a WHERE v > 1", q="SELECT v FROM a WHERE v > 1")
    seen = stations(before), [[c.name for c in p.consumers] for p in before.plan.producers()]
    before.add(queries(r="SELECT k, v FROM a WHERE v > 1")).remove("p")
    with pytest.raises(PlanError):
        before.add(queries(r="SELECT nothing FROM a"))
    assert seen == (stations(before), [[c.name for c in p.consumers] for p in before.plan.producers()])


def test_a_query_that_reads_another_comes_behind_it_and_holds_it():
    before = query_set(p="SELECT k FROM a WHERE v > 1")
    after = before.add(queries(q="SELECT k FROM p WHERE k > 2"))
    assert stations(after)["q.where"] == ("q", ["p.select"])
    with pytest.raises(PlanError, match=r"query 'p' cannot be removed: \['q'\] read it"):
        after.remove("p")
    assert set(stations(after.remove("q").remove("p"))) == set()


def test_a_relation_that_runs_cannot_be_read_by_one_that_comes_later():
    before = query_set(p="SELECT k, count(*) AS n FROM a GROUP BY k")
    with pytest.raises(PlanError, match=r"queries\.q\.cql: it reads 'p', which already runs"):
        before.add(queries(q="SELECT n FROM p"))
    both = before.add(queries(r="SELECT k, count(*) AS n FROM a GROUP BY k", q="SELECT n FROM r"))
    assert "q.select" in stations(both)


def test_queries_made_of_operators_come_under_their_full_names():
    before = QuerySet({"streams": {"s": {}}, "queries": OPERATORS})
    assert list(stations(before)) == ["x", "y", "z"]
    more = {"from": "y", "operators": [{"name": "x", "cost": 2.0}, {"name": "w", "inputs": ["x", "q.z"], "cost": 1.0}]}
    after = before.add({"queries": {"r": more}})
    assert stations(after)["r.x"] == ("r", ["y"])
    assert stations(after)["r.w"] == ("r", ["r.x", "z"])
    assert stations(after)["x"] == ("p", ["s"])
    for query, reader in (("p", "'q', 'r'"), ("q", "'r'")):
        with pytest.raises(PlanError, match=f"query '{query}' cannot be removed: \\[{reader}\\] read it"):
            after.remove(query)
    assert list(stations(after.remove("r").remove("q"))) == ["x", "y"]


def test_user_code_that_comes_shares_the_way_in_of_a_stream_with_timestamps():
    before = query_set(p="SELECT k FROM a")
    code = {"from": "a", "operators": [{"name": "f", "function": "builtins:len"}]}
    after = before.add({"queries": {"q": code}})
    assert stations(after)["q.f"] == ("q", ["p.arrange"])
    assert stations(after.remove("p")) == {"p.arrange": ("q", ["a"]), "q.f": ("q", ["p.arrange"])}


def test_streams_relations_and_functions_come_with_queries(tmp_path):
    (tmp_path / "dim.csv").write_text("k,label\n1,one\n")
    (tmp_path / "doubling.py").write_text("def twice(k):\n    return 2 * k\n")
    table = {
        "streams": {"a": STREAMS["a"], "c": {"schema": TYPES}},
        "relations": {"dim": {"schema": {"k": "int64", "label": "string"}, "source": {"csv": "dim.csv"}}},
        "functions": {"twice": {"function": "doubling:twice", "returns": "int64"}},
        **queries(q="SELECT twice(x.k) AS k, d.label FROM c [ROWS 3] AS x, dim AS d WHERE x.k = d.k"),
    }
    after = query_set(p="SELECT k FROM a").add(table, folder=tmp_path)
    assert [stream.name for stream in after.plan.streams] == ["a", "b", "c"]
    more = after.add(queries(r="SELECT twice(x.k) AS k, d.label FROM b AS x, dim AS d WHERE x.k = d.k"))
    assert "r.join" in stations(more)
    assert set(more.table["queries"]) == {"p", "q", "r"}
    assert more.remove("q").table["relations"] == table["relations"]


@pytest.mark.parametrize(("table", "message"), [
    ({}, "queries: there is no query"),
    ({"queries": {}}, "queries: there is no query"),
    ({"run": {"slice": 1.0}, **queries(q="SELECT k FROM a")}, r"run: \[run\] cannot be added to a running plan"),
    (queries(p="SELECT k FROM a"), "queries.p: there is a query 'p' already"),
    ({"streams": {"a": {"schema": TYPES}}, **queries(q="SELECT k FROM a")}, "streams.a: there is another 'a' already"),
    ({"streams": {"p": {"schema": TYPES}}, **queries(q="SELECT k FROM a")}, "streams.p: there is a query 'p' too"),
    (queries(a="SELECT k FROM b"), "queries.a: 'a' is also the name of a stream"),
    (queries(q="SELECT k FROM nowhere"), "queries.q.cql: "),
    ({"queries": {"q": {"from": "r.x", "operators": [{"name": "x", "cost": 1.0}]}}}, "no such stream or operator"),
])  # fmt: skip
def test_what_cannot_come_is_refused(table, message):
    with pytest.raises(PlanError, match=message):
        query_set(p="SELECT k FROM a").add(table)


def test_a_query_that_is_not_there_cannot_go():
    with pytest.raises(PlanError, match=r"no query 'x'; there are \['p'\]"):
        query_set(p="SELECT k FROM a").remove("x")


def test_some_queries_of_a_table_come_with_those_they_read():
    table = {
        "streams": STREAMS,
        **queries(p="SELECT k FROM a", q="SELECT k FROM p", r="SELECT v FROM b", s="SELECT k FROM b"),
    }
    some = QuerySet(table, queries=["q"])
    assert list(some.table["queries"]) == ["p", "q"]
    assert [stream.name for stream in some.plan.streams] == ["a", "b"]
    with pytest.raises(PlanError, match="no query 'x'"):
        QuerySet(table, queries=["x"])
    assert QuerySet(table, queries=[]).plan.stations == []


ALIKE = {
    "p": "SELECT k, v FROM a WHERE v > 1",
    "q": "SELECT k FROM a WHERE v > 1",
    "r": "SELECT k, v FROM a WHERE v > 1",
    "s": "SELECT k FROM p WHERE k > 2",
    "t": "SELECT v FROM p WHERE k > 2",
    "u": "SELECT k, count(*) AS n FROM a [ROWS 3] WHERE v > 1 GROUP BY k",
    "v": "SELECT x.k AS k FROM a [ROWS 2] AS x, b [ROWS 2] AS y WHERE x.k = y.k AND x.v > 1",
    "w": "SELECT k FROM b WHERE v > 1",
}


@pytest.mark.parametrize("seed", range(12))
def test_whoever_comes_and_goes_every_query_has_one_end_and_what_stays_is_as_it_was(seed):
    chance = random.Random(seed)
    now = query_set(p=ALIKE["p"], q=ALIKE["q"], r=ALIKE["r"])
    for _ in range(25):
        before, here = now, set(now.table["queries"])
        able = [name for name in ALIKE if "p" in here or name not in ("s", "t")]
        name = chance.choice([name for name in able if name != "p" or not here & {"s", "t"}])
        now = now.remove(name) if name in here else now.add(queries(**{name: ALIKE[name]}))
        kept(before, now)
        assert sorted(s.query.name for s in now.plan.stations if s.sink) == sorted(now.table["queries"])
        assert len(set(stations(now))) == len(now.plan.stations)
        assert all(s.sink or s.consumers for s in now.plan.stations)


def test_queries_move_with_their_stations_to_another_roster():
    one = query_set(p="SELECT k FROM a WHERE v > 1", q="SELECT v FROM a WHERE v > 1", r="SELECT k FROM b").remove("p")
    other = query_set(s="SELECT k FROM a WHERE v > 1")
    stay, moved = one.split(["q"])
    after = other.merge(pickle.loads(pickle.dumps(moved)))
    assert list(stations(stay)) == ["r.select"]
    assert stations(after) == stations(moved) | stations(other)
    assert kept(other, after) == {"s.arrange", "s.select"}
    assert [query.name for query in after.plan.queries] == ["s", "q"]
    assert [[c.name for c in stream.consumers] for stream in after.plan.streams] == [["s.arrange", "p.arrange"], []]
    assert "t.pass" in stations(after.add(queries(t="SELECT v FROM a WHERE v > 1")))
    with pytest.raises(PlanError, match="there is another query 'q' already"):
        after.merge(moved)


def test_what_is_left_of_a_query_does_not_move_to_where_its_name_has_come_back():
    one = query_set(p="SELECT k FROM a WHERE v > 1", q="SELECT v FROM a WHERE v > 1").remove("p")
    with pytest.raises(PlanError, match=r"there is another operator 'p\.arrange' already"):
        query_set(p="SELECT k FROM a").merge(one.split(["q"])[1])


def test_a_long_chain_moves_too():
    operators = [{"name": f"o{number}", "cost": 1.0} for number in range(600)]
    table = {"streams": {"s": {}}, "queries": {"p": {"from": "s", "operators": operators}}}
    assert stations(pickle.loads(pickle.dumps(QuerySet(table)))) == stations(QuerySet(table))
