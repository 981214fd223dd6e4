"""Push a file's rows into a stream of a live system: CSV with a header, JSON lines or Parquet, also compressed by gzip.

`-` is standard input, as JSON lines. It ends when all rows are acknowledged.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dsms.cli.arguments import several
from dsms.errors import DsmsError, existing

ROWS = 10_000
FORMS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", metavar="STREAM")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--address", metavar="HOST:PORT", help="default: $DSMS_ADDRESS, or 127.0.0.1:7411")
    parser.add_argument("--batch", type=several, metavar="N", default=ROWS, help=f"rows in a frame (default: {ROWS})")


def run(given: argparse.Namespace) -> int:
    from dsms.client import connect  # these take their time: only for those who need them
    from dsms.files import source_from

    form = _form(given.file)
    rows = 0
    with connect(given.address) as client:
        if given.stream not in client.streams:
            raise DsmsError(f"no stream {given.stream!r}{existing(given.stream, client.streams)}")
        for batch in source_from({form: given.file}, client.streams[given.stream], Path(), rows=given.batch):
            client.push(given.stream, batch)
            rows += len(batch)
        client.flush()
    print(f"dsms: {rows:,} rows pushed into {given.stream}", file=sys.stderr)
    return 0


def _form(name: str) -> str:
    """The format that a file's name says."""
    suffix = Path(name.removesuffix(".gz")).suffix if name != "-" else ".jsonl"
    if suffix not in FORMS:
        raise DsmsError(f"{name!r}: the format of {suffix!r} is not known{existing(suffix, FORMS)}")
    return FORMS[suffix]
