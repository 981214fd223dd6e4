"""Starts Spark for a command, reports that it starts, and stops it when the command ends."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dsms.cli.progress import ShowStep
from loadgen.spark.session import LOCAL_MASTER, open_session

log = logging.getLogger("dsms")


def add_master_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--master`."""
    parser.add_argument(
        "--master",
        metavar="M",
        help="the Spark master, as in spark://host:7077; its workers must see the same files (default: "
        f"{LOCAL_MASTER}, in this process)",
    )


@contextmanager
def start_spark(master: str | None, progress: ShowStep) -> Iterator[Any]:
    """Start a Spark session, and stop it at the end."""
    progress("starting Spark")
    with open_session(master) as session:
        yield session
