"""Show what runs: domains, queries, stations, and the gateways where rows are taken in.

used: share of recent time that work was done; idle with work: share that nothing was done though something waited;
held: rows in queues; p50, p99: latency of recent results; stale: share of recent time a query's output was behind its
input; passes: results per row of a station; busy: its share of the time.
"""

from __future__ import annotations

import argparse
import json
from itertools import chain

from actors.cli import grids
from actors.cli.asking import common, system
from dsms.cli.tables import show


def options(parser: argparse.ArgumentParser) -> None:
    common(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(given: argparse.Namespace) -> int:
    with system(given) as running:
        status = running.ask("status")
    if given.json:
        print(json.dumps(status, allow_nan=False))
        return 0
    found = status["domains"]
    print(f"{status['name']}: up {grids.uptime(status)}, dsms {status['version']}")
    if status.get("metrics"):
        print(f"metrics at {status['metrics']}")
    told = (grids.failures(status), grids.troubles(status), grids.recorded(status), grids.durable(status))
    for said in chain.from_iterable(told):
        print(said)
    parts = (grids.domains(found), grids.queries(found), grids.stations(found), grids.gateways(status["gateways"]))
    for grid in parts:
        show(grid.table())
    return 0
