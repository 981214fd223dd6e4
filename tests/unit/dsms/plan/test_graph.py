"""The graph of a plan: what reads what, names, order, depth, sizes, sinks, ways, components, and how it is cut."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest

from dsms import Batch, Plan, PlanError, plan_from, simulate
from dsms.operators import AbstractOperator, FunctionOperator


def plan(*queries: dict[str, Any], streams: tuple[str, ...] = ("s",), **run: Any) -> Plan:
    """A plan of queries q1, q2, … over these streams."""
    tables = {f"q{number}": query for number, query in enumerate(queries, 1)}
    return plan_from({"streams": {name: {} for name in streams}, "queries": tables, "run": run})


def op(name: str, *inputs: str, **figures: Any) -> dict[str, Any]:
    """An operator's table; without inputs it reads the one before."""
    return {"name": name, "cost": 1.0, **figures} | ({"inputs": list(inputs)} if inputs else {})


def path(*names: str) -> dict[str, Any]:
    """A query that is a path from stream s."""
    return {"from": "s", "operators": [op(name) for name in names]}


def reads(plan: Plan) -> dict[str, list[str]]:
    return {station.name: [producer.name for producer in station.inputs] for station in plan.stations}


def ways(plan: Plan) -> list[str]:
    return [" ".join(station.name for station in way) for way in plan.paths()]


def sinks(plan: Plan) -> list[str]:
    return [station.name for station in plan.stations if station.sink]


def groups(plan: Plan) -> list[list[str]]:
    return [[station.name for station in group] for group in plan.components()]


def test_a_path_reads_the_one_before() -> None:
    assert reads(plan(path("a", "b", "c"))) == {"a": ["s"], "b": ["a"], "c": ["b"]}


def test_one_input_may_be_given_without_a_list() -> None:
    query = {"operators": [op("a", "s"), {"name": "b", "cost": 1, "inputs": "s"}]}
    assert reads(plan(query)) == {"a": ["s"], "b": ["s"]}


def test_from_may_name_several_streams() -> None:
    query = {"from": ["s", "t"], "operators": [op("a"), op("b")]}
    assert reads(plan(query, streams=("s", "t"))) == {"a": ["s", "t"], "b": ["a"]}


def test_a_fork_has_a_way_and_a_sink_for_each_branch() -> None:
    forked = plan({"from": "s", "operators": [op("a"), op("b"), op("c", "a"), op("d")]})
    assert reads(forked) == {"a": ["s"], "b": ["a"], "c": ["a"], "d": ["c"]}
    assert ways(forked) == ["a b", "a c d"]
    assert sinks(forked) == ["b", "d"]
    assert [station.name for station in forked.station("a").consumers] == ["b", "c"]


def test_a_join_of_two_streams_has_a_port_for_each_and_a_way_from_each() -> None:
    joined = plan({"operators": [op("a", "s"), op("b", "t"), op("j", "a", "b"), op("k")]}, streams=("s", "t"))
    assert reads(joined)["j"] == ["a", "b"]
    assert ways(joined) == ["a j k", "b j k"]
    assert sinks(joined) == ["k"]
    assert groups(joined) == [["a", "b", "j", "k"]]


def test_a_stream_may_be_read_straight_into_a_join() -> None:
    joined = plan({"operators": [op("j", "s", "t")]}, streams=("s", "t"))
    assert ways(joined) == ["j", "j"]


def test_queries_on_one_stream_hang_together_and_others_do_not() -> None:
    several = plan(
        path("a", "b"), {"from": "t", "operators": [op("c")]}, path("d"), {"from": "u", "operators": [op("e")]},
        streams=("s", "t", "u"),
    )  # fmt: skip
    assert groups(several) == [["a", "b", "d"], ["c"], ["e"]]
    assert ways(several) == ["a b", "d", "c", "e"]


def test_streams_joined_far_down_make_one_component() -> None:
    joined = plan(
        path("a"), {"from": "t", "operators": [op("b")]}, {"operators": [op("j", "a", "b")]}, streams=("s", "t")
    )
    assert groups(joined) == [["a", "b", "j"]]


def test_a_query_may_read_another_ones_operator_by_short_or_full_name() -> None:
    for name in ("b", "q1.b"):
        shared = plan(path("a", "b", "c"), {"from": name, "operators": [op("d")]})
        assert reads(shared)["d"] == ["b"]
        assert ways(shared) == ["a b c", "a b d"]


def test_results_leave_where_no_operator_of_the_same_query_reads_on() -> None:
    shared = plan(path("a", "b"), {"from": "b", "operators": [op("c"), op("d")]})
    assert sinks(shared) == ["b", "d"]  # b ends its own query, although another query reads it
    assert ways(shared) == ["a b", "a b c d"]


def test_a_name_means_the_querys_own_operator_first() -> None:
    both = plan(path("a", "b"), {"from": "s", "operators": [op("a"), op("c", "a")]})
    assert reads(both)["c"] == ["q2.a"]


def test_names_are_qualified_only_where_the_short_one_is_not_unique() -> None:
    both = plan(path("a", "b"), path("a", "c"))
    assert reads(both) == {"q1.a": ["s"], "b": ["q1.a"], "q2.a": ["s"], "c": ["q2.a"]}


def test_a_station_is_found_by_short_and_by_full_name() -> None:
    both = plan(path("a", "b"), path("a", "c"))
    assert both.station("b") is both.station("q1.b")
    assert both.station("q2.a").query.name == "q2"


def test_a_station_that_does_not_exist_is_told_from_those_that_do() -> None:
    with pytest.raises(PlanError) as caught:
        plan(path("parse", "count")).station("prase")
    assert str(caught.value) == "no operator 'prase' (did you mean 'parse'?); there are ['count', 'parse']"


def test_order_in_the_file_does_not_matter_to_the_order_of_the_plan() -> None:
    backwards = plan({"operators": [op("d", "c", "a"), op("c", "b"), op("b", "a"), op("a", "s")]})
    assert [station.name for station in backwards.stations] == ["a", "b", "c", "d"]
    assert [station.index for station in backwards.stations] == [0, 1, 2, 3]
    assert [station.depth for station in backwards.stations] == [1, 2, 3, 4]
    assert ways(backwards) == ["a b c d", "a d"]


def test_stations_stay_in_the_order_of_the_file_where_that_order_is_possible() -> None:
    assert [s.name for s in plan(path("z", "y"), path("b", "a")).stations] == ["z", "y", "b", "a"]


def test_depth_is_the_longest_way_from_a_stream() -> None:
    joined = plan({"operators": [op("a", "s"), op("b"), op("j", "t", "b")]}, streams=("s", "t"))
    assert {station.name: station.depth for station in joined.stations} == {"a": 1, "b": 2, "j": 3}


def test_a_query_is_cut_in_an_order_in_which_tuples_go_through_it() -> None:
    backwards = plan({"operators": [op("c", "b"), op("b", "a"), op("a", "s")]})
    assert [segment.names for segment in backwards.by_query()] == [["a", "b", "c"]]


def test_a_plan_may_be_cut_by_operator_or_by_query_with_the_querys_weight() -> None:
    both = plan(path("a", "b") | {"weight": 2}, path("c"))
    assert [(segment.names, segment.weight) for segment in both.by_operator()] == [(["a"], 2), (["b"], 2), (["c"], 1)]
    assert [(segment.names, segment.weight) for segment in both.by_query()] == [(["a", "b"], 2), (["c"], 1)]


def test_sizes_are_inherited_until_declared() -> None:
    table = {
        "streams": {"s": {"size": 100}, "t": {"size": 7}, "u": {}},
        "queries": {
            "q": {"from": "s", "operators": [op("a"), op("b", size=60), op("c"), op("j", "t", "c"), op("d", "u")]}
        },
    }
    sizes = {station.name: station.size for station in plan_from(table).stations}
    assert sizes == {"a": 100, "b": 60, "c": 60, "j": 7, "d": 1}  # a join's tuples are as its first input's


def test_sizes_are_inherited_whatever_the_order_in_the_file() -> None:
    table = {
        "streams": {"s": {"size": 9}},
        "queries": {"q": {"operators": [op("c", "b"), op("b", "a"), op("a", "s")]}},
    }
    assert [station.size for station in plan_from(table).stations] == [9, 9, 9]


def test_startup_alone_is_cost_enough() -> None:
    query = {"from": "s", "operators": [{"name": "a", "startup": 2.0}, {"name": "b", "cost": 0, "startup": 1}]}
    assert [(s.operator.cost, s.operator.startup) for s in plan(query).stations] == [(0.0, 2.0), (0.0, 1.0)]


def test_an_operators_figures_are_those_of_the_file() -> None:
    query = {"from": "s", "operators": [{"name": "a", "cost": 2, "selectivity": 1.5, "take": 4, "size": 8}]}
    operator = plan(query).station("a").operator
    assert isinstance(operator, AbstractOperator)
    assert (operator.cost, operator.selectivity, operator.take, operator.size) == (2.0, 1.5, 4.0, 8.0)


def test_what_nobody_reads_does_not_arrive() -> None:
    table = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0]}}, "t": {"arrivals": {"kind": "list", "at": [0, 1]}}},
        "queries": {"q": path("a")},
    }
    run = simulate(plan_from(table), "fifo")
    assert (run.admitted, run.outputs, run.memory.tuples.max) == (1, 1, 1)


def test_many_operators_are_read_in_time_that_grows_with_their_number_only() -> None:
    """Names are looked up, not searched for: a tenth of a second for these, where a search among all takes two."""
    queries = [path(*(f"o{query}_{number}" for number in range(10))) for query in range(400)]
    before = process_time()
    assert len(plan(*queries).stations) == 4000
    assert process_time() - before < 1.0


def keep_all(batch: Batch) -> Batch:
    return batch


def test_a_function_may_be_given_as_an_object() -> None:
    query = {"from": "s", "operators": [op("a"), {"name": "f", "function": keep_all}]}
    operator = plan(query).station("f").operator
    assert isinstance(operator, FunctionOperator)
    assert operator.function is keep_all
    assert not plan(query).abstract
    assert plan(path("a")).abstract


def test_a_functions_cost_and_selectivity_may_be_declared() -> None:
    query = {"from": "s", "operators": [{"name": "f", "function": keep_all, "cost": 0.5, "selectivity": 0.1}]}
    operator = plan(query).station("f").operator
    assert (operator.cost, operator.selectivity) == (0.5, 0.1)


def test_a_function_without_a_cost_has_one_until_it_is_measured() -> None:
    assert plan({"from": "s", "operators": [{"name": "f", "function": keep_all}]}).station("f").operator.cost > 0


def test_a_function_may_be_given_as_module_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planfile_functions.py").write_text("def keep(batch):\n    return batch\n")
    monkeypatch.syspath_prepend(tmp_path)
    named = plan({"from": "s", "operators": [{"name": "f", "function": "planfile_functions:keep"}]})
    operator = named.station("f").operator
    assert isinstance(operator, FunctionOperator)
    assert operator.function.__name__ == "keep"


def test_a_plan_with_a_function_runs() -> None:
    table = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 1, 2]}}},
        "queries": {"q": {"from": "s", "operators": [op("a"), op("f", function=keep_all)]}},
    }
    assert simulate(plan_from(table), "fifo").outputs == 3


def test_a_table_is_not_changed_by_reading_it() -> None:
    table = {"streams": {"s": {}}, "queries": {"q": path("a", "b")}, "run": {"slice": 1}}
    plan_from(table)
    assert table == {"streams": {"s": {}}, "queries": {"q": path("a", "b")}, "run": {"slice": 1}}


def test_half_a_tuple_can_be_taken_only_of_fractional_ones() -> None:
    table = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 1]}}},
        "queries": {"q": {"from": "s", "operators": [op("a", take=0.5)]}},
    }
    with pytest.raises(PlanError, match=r"operators\[0\]\.take: 0\.5 is not a whole number: only fractional tuples"):
        plan_from(table)
    assert simulate(plan_from(table | {"run": {"tuples": "fractional"}}), "fifo").turns == 4
