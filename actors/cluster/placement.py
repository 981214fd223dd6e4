"""Assigns domains to nodes with a free CPU budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsms.errors import DsmsError

CPU_BUDGET_RESOURCE = "dsms_cpu"  # the Ray resource of which every domain takes one
RayTable = Mapping[str, Any]
BUDGET_FRACTION = 0.0001  # of a budget, the smallest that Ray 2.60 can count: it places an actor beside the budget


def count_free_budgets(nodes: Sequence[RayTable], groups: Iterable[RayTable]) -> dict[str, int]:
    """By live node that has any: its CPU budgets that no placement group has taken.

    Takes Ray's tables of nodes and placement groups. Ray 2.60's own count lags seconds behind removals.
    """
    budgets = {node["NodeID"]: int(node["Resources"].get(CPU_BUDGET_RESOURCE, 0)) for node in nodes if node["Alive"]}
    budgets = {node: count for node, count in budgets.items() if count}
    for group in groups:
        for place, node in group["bundles_to_node_id"].items():
            if group["state"] != "REMOVED" and node in budgets:
                budgets[node] -= int(group["bundles"][place].get(CPU_BUDGET_RESOURCE, 0))
    return budgets


def assign_nodes(domains: int, budgets: Mapping[str, int], addresses: Mapping[str, str]) -> list[str]:
    """Assign a node to each domain, over as many nodes as possible; where budgets lack, Ray would only wait."""
    left = dict(budgets)
    if domains > sum(left.values()):
        listed = [f"{count} on {addresses.get(node, node)} (node {node[:8]})" for node, count in left.items()]
        raise DsmsError(
            f"domains = {domains} takes {domains} CPU budgets ({CPU_BUDGET_RESOURCE}); "
            f"free: {', '.join(listed) or 'none on any node'}; "
            f"`deploy/worker --budgets N` joins a node with N, `domains` in [live] asks for fewer"
        )
    taken = []
    for _ in range(domains):
        node = max(left, key=lambda each: left[each])  # the first of equals
        left[node] -= 1
        taken.append(node)
    return taken
