"""Where stations and domains go: decided on plain values, without a cluster."""

from __future__ import annotations

import pytest

from actors.cluster.placement import CPU_BUDGET_RESOURCE, assign_nodes, count_free_budgets
from dsms.errors import DsmsError


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
