"""Which stations share an actor, and where actors sit: beside the CPU budget that they work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from dsms.errors import DsmsError
from dsms.plan import Station

BUDGET = "dsms_cpu"  # the resource of which every domain takes one
SLIVER = 0.0001  # of a budget: the least that Ray can count, so that an actor sits where the budget is


def packed(stations: Sequence[Station], most: int) -> list[list[str]]:
    """The names of the stations of each actor: one each while there are no more than `most`.

    Beyond that actors are as full as one another, and stations of a query stand together, in the plan's order.

    The default for `most` is 24, by what was measured on two cores: an idle actor takes some 70 MB (PSS) and 1.5 s to
    start, so that 24 are there in less than a minute; one for each of 750 stations would take 50 GB and 20 minutes.
    """
    if most < 1:
        raise DsmsError(f"{most} actors for {len(stations)} stations: at least one is wanted")
    ordered = sorted(stations, key=lambda station: (station.query.index, station.index))
    actors = max(1, min(most, len(ordered)))
    bounds = [place * len(ordered) // actors for place in range(actors + 1)]
    return [[station.name for station in ordered[start:end]] for start, end in pairwise(bounds)]


def free(nodes: Sequence[Mapping[str, Any]], groups: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By node that is alive and has any: its CPU budgets that no placement group has taken.

    `nodes` and `groups` as Ray tells them. Its own count of what is available lags by seconds behind what was removed.
    """
    budgets = {node["NodeID"]: int(node["Resources"].get(BUDGET, 0)) for node in nodes if node["Alive"]}
    budgets = {node: count for node, count in budgets.items() if count}
    for group in groups:
        for place, node in group["bundles_to_node_id"].items():
            if group["state"] != "REMOVED" and node in budgets:
                budgets[node] -= int(group["bundles"][place].get(BUDGET, 0))
    return budgets


def seats(wanted: int, budgets: Mapping[str, int], addresses: Mapping[str, str]) -> list[str]:
    """A node for each domain, over as many nodes as there are; more than fit are refused, where Ray would only wait."""
    left = dict(budgets)
    there = sum(left.values())
    if wanted > there:
        each = [f"{count} on {addresses.get(node, node)} (node {node[:8]})" for node, count in left.items()]
        raise DsmsError(
            f"domains = {wanted} takes {wanted} CPU budgets ({BUDGET}); free: {', '.join(each) or 'none on any node'}; "
            f"`deploy/worker --budgets N` joins a node with N, `domains` in [live] asks for fewer"
        )
    taken = []
    for _ in range(wanted):
        node = max(left, key=lambda each: left[each])  # the first of equals
        left[node] -= 1
        taken.append(node)
    return taken
