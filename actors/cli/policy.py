"""Show who decides, since when, and the phases so far; or put another policy in charge from the next turn on.

Queues, state and results are untouched by a swap. Columns: swap: the time it took; memory: rows in queues; latency,
p99: of the phase's results; stale: share of the time a query's output was behind its input, mean over queries.
"""

from __future__ import annotations

import argparse
from typing import Any

from actors.cli import grids
from actors.cli.asking import chosen, common, system
from dsms.cli.tables import show
from dsms.policies.registry import policy_named, policy_names

REASON = "asked for"


def options(parser: argparse.ArgumentParser) -> None:
    there_are = ", ".join(policy_names())
    parser.add_argument(
        "policy", metavar="NAME[:key=value,…]", nargs="?", help=f"who is to decide. There are: {there_are}"
    )
    common(parser, domain="the one meant")
    parser.add_argument("--reason", metavar="TEXT", help=f"why, for the record (default: {REASON!r})")


def run(given: argparse.Namespace) -> int:
    if given.policy is None:
        with system(given) as running:
            _show(chosen(running.ask("status"), given.domain))
        return 0
    policy_named(given.policy)  # a typing error needs no cluster to be found
    with system(given) as running:
        swaps = running.ask("swap", given.policy, reason=given.reason or REASON, domain=given.domain)
    for swap in swaps:
        took = f"{swap['seconds'] * 1000:.3g} ms"
        print(f"domain {swap['domain']}: {swap['before']} → {swap['after']}, in {took}")
    return 0


def _show(domains: list[dict[str, Any]]) -> None:
    for one in domains:
        said = f"domain {one['domain']}: {grids.decider(one)}"
        if one["phases"]:
            last = one["phases"][-1]
            said += f" since {last['since']:.1f} s ({last['reason']}); it is {one['now']:.1f} s"
        print(said if not one.get("error") else f"{said}; it has failed: {one['error']}")
    show(grids.phases(domains).table())
