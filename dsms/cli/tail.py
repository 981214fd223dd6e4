"""Print a query's results as they come, as JSON lines, until Ctrl-C.

Each has its `ts`, and a `sign` (1 or -1) with --sign or from when rows are first taken back.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dsms.batch import Batch
from dsms.cli.arguments import whole

if TYPE_CHECKING:
    from dsms.client import Client


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument("--address", metavar="HOST:PORT", help="default: $DSMS_ADDRESS, or 127.0.0.1:7411")
    parser.add_argument("--after", type=whole, metavar="N", help="also the batches after this number still kept")
    parser.add_argument("--limit", type=whole, metavar="N", help="end after so many rows")
    parser.add_argument("--sign", action="store_true", help="say of every row whether it comes (1) or goes (-1)")


def run(given: argparse.Namespace) -> int:
    from dsms.client import connect  # these take their time: only for those who need them
    from dsms.files import SinkClosedError

    try:
        with connect(given.address) as client:
            _print(client, given)
    except KeyboardInterrupt:
        pass  # how people end it
    except SinkClosedError as error:
        raise BrokenPipeError from error
    return 0


def _print(client: Client, given: argparse.Namespace) -> None:
    """Rows to standard output, until there are as many as wanted."""
    from dsms.files import sink_from

    signed, left, sink = given.sign, given.limit, None
    for batch in client.subscribe(given.query, given.after):
        rows: Batch = batch if left is None else batch.pick(slice(0, left))
        back = not np.all(rows.sign == 1)
        if sink is None or (back and not signed):
            signed = signed or back
            sink = sink_from("stdout", client.queries[given.query], not signed, Path())
        sink.write(rows)
        left = None if left is None else left - len(rows)
        if left == 0:
            return
