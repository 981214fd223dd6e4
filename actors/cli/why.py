"""Show the last decisions: who was chosen, who else had work, their priorities and what these are made of."""

from __future__ import annotations

import argparse
import json

from actors.cli.asking import common, system
from dsms.cli.arguments import several
from dsms.cli.why import decision_from, show_decision


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--last", type=several, metavar="N", default=1, help="so many of each domain (default: 1)")
    common(parser, domain="the one meant")
    parser.add_argument("--json", action="store_true", help="print one JSON list instead of tables")


def run(given: argparse.Namespace) -> int:
    with system(given) as running:
        decisions = running.ask("why", given.last, domain=given.domain)
    if given.json:
        print(json.dumps(decisions, allow_nan=False))
        return 0
    for found in decisions:
        domain = found.get("domain")
        show_decision(decision_from(found), "" if domain is None else f"Domain {domain}, {found['policy']}:")
    if not decisions:
        print("No decision has been made yet: nothing has arrived.")
    return 0
