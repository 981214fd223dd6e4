"""Show the queries that run; add some from a file, remove one or release it from quarantine, while the others go on.

The file is TOML like a plan, with [queries.NAME] and, where they read what is not there yet, [streams.NAME] and
[relations.NAME]; its queries may read the streams and the queries that run.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from actors.cli import grids
from actors.cli.asking import SLOW, System, common, system
from dsms.cli.tables import show
from dsms.errors import DsmsError, PlanError
from dsms.planfile import read_table

WANTED = {"list": "", "add": "FILE", "remove": "NAME", "release": "NAME"}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=tuple(WANTED), nargs="?", default="list", help="what to do (default: list)")
    parser.add_argument("what", metavar="FILE|NAME", nargs="?", help="the file to add, or the query that is meant")
    common(parser)


def run(given: argparse.Namespace) -> int:
    wanted = WANTED[given.action]
    if bool(wanted) != (given.what is not None):
        got = "nothing" if given.what is None else repr(given.what)
        raise DsmsError(f"`dsms queries {given.action}` takes {wanted or 'nothing'} after it, and {got} is given")
    if given.action == "add":
        return _add(given)
    with system(given) as running:
        if given.action == "list":
            return _list(running)
        if given.action == "release":
            print(f"released: {', '.join(running.ask('readmit', given.what, timeout=SLOW))}")
            return 0
        running.ask("remove", given.what, timeout=SLOW)
    print(f"removed: {given.what}")
    return 0


def _list(running: System) -> int:
    show(grids.queries(running.ask("status")["domains"]).table())
    return 0


def _add(given: argparse.Namespace) -> int:
    path = Path(given.what)
    table = read_table(path)
    if not table.get("queries"):
        raise PlanError("there is no query: at least one [queries.NAME] is wanted", "queries", str(path))
    with system(given) as running:
        added = running.ask("add", table, str(path.resolve().parent), str(path), timeout=SLOW)
    print(f"added: {', '.join(added)}")
    return 0
