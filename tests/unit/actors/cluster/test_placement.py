"""Where stations and domains go: decided on plain values, without a cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cluster.placement import CPU_BUDGET_RESOURCE, assign_nodes, count_free_budgets, group_stations
from dsms.errors import DsmsError
from dsms.query.plan_file import plan_from


def plan_of(sizes):
    """A plan whose queries have these numbers of operators."""
    queries = {
        f"q{n}": {
            "from": "s",
            "operators": [{"name": f"q{n}o{i}", "cost": 1.0, "selectivity": 1.0} for i in range(size)],
        }
        for n, size in enumerate(sizes)
    }
    return plan_from({"streams": {"s": {}}, "queries": queries})


def test_each_station_has_an_actor_of_its_own_while_there_are_enough():
    assert group_stations(plan_of([2, 1]).stations, most=3) == [["q0o0"], ["q0o1"], ["q1o0"]]


def test_beyond_that_stations_of_a_query_stand_together_in_plan_order():
    assert group_stations(plan_of([3, 3]).stations, most=2) == [["q0o0", "q0o1", "q0o2"], ["q1o0", "q1o1", "q1o2"]]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(1, 12))
def test_every_station_has_one_place_and_actors_are_as_full_as_one_another(sizes, most):
    plan = plan_of(sizes)
    actors = group_stations(plan.stations, most)
    assert [name for names in actors for name in names] == [
        f"q{n}o{i}" for n, size in enumerate(sizes) for i in range(size)
    ]
    assert len(actors) == min(most, sum(sizes))
    assert max(map(len, actors)) - min(map(len, actors)) <= 1


def test_a_domain_without_queries_has_one_empty_actor():
    assert group_stations([], most=4) == [[]]


def test_no_actor_at_all_is_refused():
    with pytest.raises(DsmsError, match="0 actors for 1 stations: expected at least one"):
        group_stations(plan_of([1]).stations, most=0)


def node(name, budgets, alive=True):
    return {
        "NodeID": name,
        "Alive": alive,
        "NodeManagerAddress": "10.0.0.1",
        "Resources": {CPU_BUDGET_RESOURCE: budgets} if budgets else {},
    }


def group(node, state="CREATED", budgets=1):
    return {"state": state, "bundles": {0: {CPU_BUDGET_RESOURCE: budgets}}, "bundles_to_node_id": {0: node}}


def test_budgets_are_free_that_no_group_has_taken():
    nodes = [node("a", 2), node("b", 1), node("c", 0), node("d", 5, alive=False)]
    taken = [group("a"), group("b", state="REMOVED"), group("gone")]
    assert count_free_budgets(nodes, taken) == {"a": 1, "b": 1}


def test_domains_go_to_as_many_nodes_as_there_are():
    assert assign_nodes(3, {"a": 2, "b": 2}, {}) == ["a", "b", "a"]


def test_domains_that_do_not_fit_are_refused_with_what_there_is():
    with pytest.raises(DsmsError) as refused:
        assign_nodes(3, {"abcdefghij": 1, "b": 0}, {"abcdefghij": "10.0.0.1", "b": "10.0.0.2"})
    assert str(refused.value) == (
        "domains = 3 takes 3 CPU budgets (dsms_cpu); free: 1 on 10.0.0.1 (node abcdefgh), 0 on 10.0.0.2 (node b); "
        "`deploy/worker --budgets N` joins a node with N, `domains` in [live] asks for fewer"
    )


def test_a_cluster_that_was_not_started_for_us_has_no_budgets():
    with pytest.raises(DsmsError, match="free: none on any node"):
        assign_nodes(1, count_free_budgets([node("a", 0)], []), {})
