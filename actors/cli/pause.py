"""Let nothing run until `dsms resume`: rows are still taken in and wait in the queues."""

from __future__ import annotations

import argparse

from actors.cli.asking import common, system


def options(parser: argparse.ArgumentParser) -> None:
    common(parser, domain="the one to pause")


def run(given: argparse.Namespace) -> int:
    with system(given) as running:
        running.ask("pause", domain=given.domain)
    print(f"{given.name}{'' if given.domain is None else f', domain {given.domain},'} is paused")
    return 0
