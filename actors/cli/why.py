"""Show the last decisions: the chosen operators, all candidates with work, their priorities, and why they rank so."""

from __future__ import annotations

import argparse
import json

from actors.control.client import add_common_options, open_client
from dsms.cli.arguments import parse_positive_int
from dsms.cli.decision_table import parse_decision, show_decision


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--last", type=parse_positive_int, metavar="N", default=1, help="decisions of each domain (default: 1)"
    )
    add_common_options(parser, domain="the domain to show")
    parser.add_argument("--json", action="store_true", help="print one JSON list instead of tables")


def run(given: argparse.Namespace) -> int:
    with open_client(given) as client:
        decisions = client.ask("why", given.last, domain=given.domain)
    if given.json:
        print(json.dumps(decisions, allow_nan=False))
        return 0
    for decision in decisions:
        domain = decision.get("domain")
        show_decision(parse_decision(decision), "" if domain is None else f"Domain {domain}, {decision['policy']}:")
    if not decisions:
        print("No decision has been made yet: nothing has arrived.")
    return 0
