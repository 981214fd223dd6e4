"""A Spark for as long as a command needs one: said while it starts, and gone with the command."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dsms.cli.telling import Tell
from loadgen.session import LOCAL, during

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
def spark(master: str | None, tell: Tell) -> Iterator[Any]:
    """The session."""
    tell("starting Spark")
    with during(master) as session:
        yield session
