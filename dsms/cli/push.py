"""Push the rows of a file into a stream of a live system: CSV with a header, JSON lines or Parquet, also gzipped.

FILE may be `-`: JSON lines from standard input. The command ends when all rows are acknowledged.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dsms.cli.arguments import parse_positive_int
from dsms.errors import DsmsError, existing

ROWS_PER_FRAME = 10_000
FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", metavar="STREAM", help="the stream to push into")
    parser.add_argument("file", metavar="FILE", help="a .csv, .jsonl, .ndjson or .parquet file, also with .gz; or -")
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="address of a gateway (default: $DSMS_ADDRESS, or 127.0.0.1:7411)"
    )
    parser.add_argument(
        "--batch",
        type=parse_positive_int,
        metavar="N",
        default=ROWS_PER_FRAME,
        help=f"rows in a frame (default: {ROWS_PER_FRAME})",
    )


def run(given: argparse.Namespace) -> int:
    from dsms.io import open_source
    from dsms.net.client import connect  # these load slowly: only for commands that need them

    form = _guess_format(given.file)
    rows = 0
    with connect(given.address) as client:
        if given.stream not in client.streams:
            raise DsmsError(f"no stream {given.stream!r}{existing(given.stream, client.streams)}")
        for batch in open_source({form: given.file}, client.streams[given.stream], Path(), rows=given.batch):
            client.push(given.stream, batch)
            rows += len(batch)
        client.flush()
    print(f"dsms: {rows:,} rows pushed into {given.stream}", file=sys.stderr)
    return 0


def _guess_format(name: str) -> str:
    """Guess the format of a file from its name."""
    suffix = Path(name.removesuffix(".gz")).suffix if name != "-" else ".jsonl"
    if suffix not in FORMATS:
        raise DsmsError(f"{name!r}: unknown format {suffix!r}{existing(suffix, FORMATS)}")
    return FORMATS[suffix]
