"""Show or set the quality-of-service goal: how much memory, delay, rate and freshness each count.

Policies that use the goal (adaptive, qos-chain) follow it from their next decision on.
"""

from __future__ import annotations

import argparse

from actors.control.client import add_common_options, add_verb_argument, open_client, select_domains
from actors.scheduler.verbs import GOAL


def options(parser: argparse.ArgumentParser) -> None:
    add_verb_argument(parser, GOAL, nargs="?")
    add_common_options(parser, domain="the domain to show or change")


def run(given: argparse.Namespace) -> int:
    goal = None if given.qos is None else GOAL.parse(given.qos)
    with open_client(given) as client:
        if goal is not None:
            client.ask("require", goal, domain=given.domain)
        domains = select_domains(client.status(), given.domain)
    for one in domains:
        print(f"domain {one.domain}: {one.qos or goal or 'unknown'}")
    return 0
