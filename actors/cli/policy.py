"""Show the policy in charge of each domain and the phases so far, or put another policy in charge.

A swap changes no queue, state or result. Columns: swap: the time it took; memory: rows in queues; latency, p99: of the
phase's results; stale: share of the time a query's output was behind its input, mean over queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from actors.control.client import add_common_options, add_verb_argument, open_client, select_domains
from actors.control.status_tables import build_phases_table, describe_policy
from actors.scheduler.verbs import POLICY, REASON
from dsms.cli.tables import show
from dsms.live.monitor.status import DomainStatus


def options(parser: argparse.ArgumentParser) -> None:
    add_verb_argument(parser, POLICY, nargs="?")
    add_common_options(parser, domain="the domain to show or change")
    parser.add_argument("--reason", metavar=REASON.metavar, help=REASON.help)


def run(given: argparse.Namespace) -> int:
    if given.policy is None:
        with open_client(given) as client:
            _show(select_domains(client.status(), given.domain))
        return 0
    POLICY.parse(given.policy)  # finds a misspelling before a cluster is needed
    with open_client(given) as client:
        swaps = client.ask("swap", given.policy, reason=given.reason or REASON.default, domain=given.domain)
    for swap in swaps:
        took = f"{swap['seconds'] * 1000:.3g} ms"
        print(f"domain {swap['domain']}: {swap['before']} → {swap['after']}, in {took}")
    return 0


def _show(domains: Sequence[DomainStatus]) -> None:
    for one in domains:
        line = f"domain {one.domain}: {describe_policy(one.policy, one.decides)}"
        if one.phases:
            last = one.phases[-1]
            line += f" since {last.since:.1f} s ({last.reason}); it is {one.now or 0.0:.1f} s"
        if one.turn is not None:
            line += f"; a turn takes {one.turn}"
        print(line if not one.error else f"{line}; it has failed: {one.error}")
    show(build_phases_table(domains).table())
