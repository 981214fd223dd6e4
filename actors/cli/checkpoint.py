"""Save a durable system now, besides every `checkpoint` seconds; what is given out then will never be made again."""

from __future__ import annotations

import argparse

from actors.cli.asking import SLOW, common, system
from actors.cli.grids import saved


def options(parser: argparse.ArgumentParser) -> None:
    common(parser)


def run(given: argparse.Namespace) -> int:
    with system(given) as running:
        print(f"{given.name}: {saved(running.ask('checkpoint', timeout=SLOW))}")
    return 0
