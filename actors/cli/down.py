"""Take a running system down: all its actors, its gateways' ports, what waits in its queues; the cluster stays."""

from __future__ import annotations

import argparse

from actors.cli.asking import SLOW, command, common, system


def options(parser: argparse.ArgumentParser) -> None:
    common(parser)


@command
def run(given: argparse.Namespace) -> int:
    with system(given) as running:
        running.ask("down", timeout=SLOW)
    print(f"{given.name} is down")
    return 0
