"""Show the status of a deployment: domains, queries, operators and gateways.

used: share of recent time in which operators ran; idle with work: share in which none ran though rows waited; held:
rows in queues; p50, p99: latency of recent results; stale: share of recent time in which a query's output was behind
its input; passes: rows that an operator puts out per row it takes; busy: its share of the time.
"""

from __future__ import annotations

import argparse
import json
from itertools import chain

from actors.control.client import add_common_options, open_client
from actors.control.status_tables import (
    build_domains_table,
    build_gateways_table,
    build_operators_table,
    build_queries_table,
    describe_uptime,
    list_durability,
    list_failures,
    list_problems,
    list_recordings,
)
from dsms.cli.tables import show


def options(parser: argparse.ArgumentParser) -> None:
    add_common_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(given: argparse.Namespace) -> int:
    with open_client(given) as client:
        status = client.status()
    if given.json:
        print(json.dumps(status.to_json(), allow_nan=False))
        return 0
    print(f"{status.name}: up {describe_uptime(status)}, dsms {status.version}")
    if status.metrics:
        print(f"metrics at {status.metrics}")
    for line in chain(list_failures(status), list_problems(status), list_recordings(status), list_durability(status)):
        print(line)
    domains = status.domains
    for table in (build_domains_table(domains), build_queries_table(domains), build_operators_table(domains)):
        show(table.table())
    show(build_gateways_table(status.gateways).table())
    return 0
