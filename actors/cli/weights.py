"""Show or set the weights of queries; weights are relative to the largest."""

from __future__ import annotations

import argparse

from actors.control.client import add_common_options, open_client
from dsms.cli.arguments import parse_positive
from dsms.cli.tables import format_cell, make_table, show
from dsms.errors import DsmsError, existing
from dsms.live.monitor.status import DeploymentStatus


def parse_weight(text: str) -> tuple[str, float]:
    """Parse `QUERY=WEIGHT`."""
    query, equals, value = text.rpartition("=")
    if not equals or not query:
        raise argparse.ArgumentTypeError(f"{text!r} is not QUERY=WEIGHT, as in alarms=2")
    return query, parse_positive(value)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "weights", metavar="QUERY=WEIGHT", nargs="*", type=parse_weight, help="as in alarms=2 (default: show)"
    )
    add_common_options(parser)


def run(given: argparse.Namespace) -> int:
    with open_client(given) as client:
        before = _read_weights(client.status())
        for query, _ in given.weights:  # all or none: check all names before setting any
            if query not in before:
                raise DsmsError(f"no query {query!r}{existing(query, before)}")
        for query, value in given.weights:
            client.ask("weigh", query, value)
        after = _read_weights(client.status()) if given.weights else before
    if given.weights:
        for query, _ in given.weights:
            print(f"{query}: {before[query]:g} → {after[query]:g}")
        return 0
    shown = make_table("", ("query", "weight"), left=("query",))
    for query, value in before.items():
        shown.add_row(format_cell(query), format_cell(value))
    show(shown)
    return 0


def _read_weights(status: DeploymentStatus) -> dict[str, float]:
    return {query.name: query.weight for one in status.domains for query in one.queries}
