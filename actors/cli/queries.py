"""Show the running queries; add some from a file, remove one or release it from quarantine while the others run.

The file is TOML like a plan, with [queries.NAME] and, for streams and relations that do not exist yet, [streams.NAME]
and [relations.NAME]; its queries may read all running streams and queries.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from actors.control.client import add_common_options, open_client
from actors.control.status_tables import build_queries_table
from dsms.cli.tables import show
from dsms.errors import DsmsError, PlanError
from dsms.query.plan_file import read_table

ACTION_ARGUMENTS = {"list": "", "add": "FILE", "remove": "NAME", "release": "NAME"}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", choices=tuple(ACTION_ARGUMENTS), nargs="?", default="list", help="what to do (default: list)"
    )
    parser.add_argument("what", metavar="FILE|NAME", nargs="?", help="the file to add, or the query's name")
    add_common_options(parser)


def run(given: argparse.Namespace) -> int:
    expected = ACTION_ARGUMENTS[given.action]
    if bool(expected) != (given.what is not None):
        got = "nothing" if given.what is None else repr(given.what)
        raise DsmsError(f"`dsms queries {given.action}` takes {expected or 'nothing'} after it, not {got}")
    if given.action == "add":
        return _add(given)
    with open_client(given) as client:
        if given.action == "list":
            show(build_queries_table(client.status().domains).table())
        elif given.action == "release":
            print(f"released: {', '.join(client.ask('lift', given.what))}")
        else:
            client.ask("remove", given.what)
            print(f"removed: {given.what}")
    return 0


def _add(given: argparse.Namespace) -> int:
    path = Path(given.what)
    table = read_table(path)
    if not table.get("queries"):
        raise PlanError("there is no query: add at least one [queries.NAME]", "queries", str(path))
    with open_client(given) as client:
        added = client.ask("add", table, str(path.resolve().parent), str(path))
    print(f"added: {', '.join(added)}")
    return 0
