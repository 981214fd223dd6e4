"""Show or set how much each query counts; the largest weight counts as 1."""

from __future__ import annotations

import argparse

from actors.cli.asking import common, system
from dsms.cli.arguments import positive
from dsms.cli.tables import cell, show, table
from dsms.errors import DsmsError, existing


def weight(text: str) -> tuple[str, float]:
    """`QUERY=WEIGHT`."""
    query, equals, value = text.rpartition("=")
    if not equals or not query:
        raise argparse.ArgumentTypeError(f"{text!r} is not QUERY=WEIGHT, as in alarms=2")
    return query, positive(value)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "weights", metavar="QUERY=WEIGHT", nargs="*", type=weight, help="as in alarms=2 (default: show)"
    )
    common(parser)


def run(given: argparse.Namespace) -> int:
    with system(given) as running:
        before = _weights(running.ask("status"))
        for query, _ in given.weights:  # all or none: names are looked at before any is set
            if query not in before:
                raise DsmsError(f"no query {query!r}{existing(query, before)}")
        for query, value in given.weights:
            running.ask("weigh", query, value)
        after = _weights(running.ask("status")) if given.weights else before
    if given.weights:
        for query, _ in given.weights:
            print(f"{query}: {before[query]:g} → {after[query]:g}")
        return 0
    shown = table("", ("query", "weight"), left=("query",))
    for query, value in before.items():
        shown.add_row(cell(query), cell(value))
    show(shown)
    return 0


def _weights(status: dict[str, list[dict[str, list[dict[str, float]]]]]) -> dict[str, float]:
    return {str(query["name"]): query["weight"] for one in status["domains"] for query in one["queries"]}
