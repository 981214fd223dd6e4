"""Show or set what is wanted of the results: memory, delay, rate, freshness and how much each counts.

Policies that go by it (adaptive, qos-chain) do so from their next decision on.
"""

from __future__ import annotations

import argparse

from actors.cli.asking import chosen, common, system
from dsms.qos import SHORT, TEMPLATES, Qos


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "qos",
        metavar="NAME=WEIGHT,…",
        nargs="?",
        help=f"weights that add up to 1, as in memory=0.7,delay=0.3 (there are {', '.join(SHORT)}); or one of "
        f"{', '.join(TEMPLATES)}",
    )
    common(parser, domain="the one meant")


def run(given: argparse.Namespace) -> int:
    wanted = None if given.qos is None else str(Qos.parse(given.qos))
    with system(given) as running:
        if wanted is not None:
            running.ask("require", wanted, domain=given.domain)
        domains = chosen(running.ask("status"), given.domain)
    for one in domains:
        print(f"domain {one['domain']}: {one.get('qos') or wanted or 'not told'}")
    return 0
