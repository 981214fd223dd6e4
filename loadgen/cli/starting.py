"""A Spark for as long as a command needs one: said while it starts, and gone with the command."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dsms.cli.telling import Tell
from dsms.errors import FailedError
from loadgen.session import LOCAL, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("dsms")


def master(parser: argparse.ArgumentParser) -> None:
    """Where the work is done."""
    parser.add_argument(
        "--master",
        metavar="M",
        help=f"the Spark to do it on, as in spark://host:7077; it must see the same files (default: {LOCAL}, one of "
        "its own in this process)",
    )


@contextmanager
def spark(master: str | None, tell: Tell) -> Iterator[SparkSession]:
    """The session; stopped afterwards if it was started for this."""
    tell("starting Spark")
    before = _running()
    running = session(master)
    try:
        yield running
    except Exception as error:
        if type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise FailedError(f"Spark could not do it: {_said(error)}") from error
        raise
    finally:
        if before is None:
            running.stop()


def _running() -> SparkSession | None:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None  # `session` says what to do
    return SparkSession.getActiveSession()


def _said(error: Exception) -> str:
    """The first line that says something: the rest is Java's own call stack."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
