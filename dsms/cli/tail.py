"""Print a query's results as they arrive, as JSON lines, until Ctrl-C.

Each row has a `ts`. With --sign, or once a row is retracted, it also has a `sign`: 1 for a new row, -1 for a retracted
one.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dsms.cli.arguments import parse_nonnegative_int
from dsms.data.batch import Batch

if TYPE_CHECKING:
    from dsms.net.client import Client


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="the query to subscribe to")
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="address of a gateway (default: $DSMS_ADDRESS, or 127.0.0.1:7411)"
    )
    parser.add_argument(
        "--after",
        type=parse_nonnegative_int,
        metavar="N",
        help="first print the batches after number N that the system still holds",
    )
    parser.add_argument("--limit", type=parse_nonnegative_int, metavar="N", help="end after N rows")
    parser.add_argument("--sign", action="store_true", help="print the sign of every row: 1 new, -1 retracted")


def run(given: argparse.Namespace) -> int:
    from dsms.io import SinkClosedError
    from dsms.net.client import connect  # these load slowly: only for commands that need them

    try:
        with connect(given.address) as client:
            _print(client, given)
    except KeyboardInterrupt:
        pass  # the usual way to end this command
    except SinkClosedError as error:
        raise BrokenPipeError from error
    return 0


def _print(client: Client, given: argparse.Namespace) -> None:
    """Print rows to standard output, up to the limit."""
    from dsms.io import open_sink

    signed, left, sink = given.sign, given.limit, None
    for batch in client.subscribe(given.query, given.after):
        rows: Batch = batch if left is None else batch.pick(slice(0, left))
        back = not np.all(rows.sign == 1)
        if sink is None or (back and not signed):
            signed = signed or back
            sink = open_sink("stdout", client.queries[given.query], not signed, Path())
        sink.write(rows)
        left = None if left is None else left - len(rows)
        if left == 0:
            return
