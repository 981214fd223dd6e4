"""Move a query to another domain while it runs: with its queues and its state, nothing lost.

Queries that share stations with it go along.
"""

from __future__ import annotations

import argparse

from actors.cli.asking import SLOW, common, system
from dsms.cli.tables import seconds


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="its name")
    parser.add_argument("to", metavar="DOMAIN", help="where it is to run from now on")
    common(parser)


def run(given: argparse.Namespace) -> int:
    with system(given) as running:
        done = running.ask("move", given.query, given.to, timeout=SLOW)
    along = [name for name in done.get("queries") or () if name != given.query]
    others = f" (with {', '.join(along)})" if along else ""
    took = "" if done.get("seconds") is None else f"; the move took {seconds(done['seconds'])}"
    print(f"{given.query}{others} runs in domain {given.to}{took}")
    return 0
