"""Go on after `dsms pause`."""

from __future__ import annotations

import argparse

from actors.cli.asking import common, system


def options(parser: argparse.ArgumentParser) -> None:
    common(parser, domain="the one to resume")


def run(given: argparse.Namespace) -> int:
    with system(given) as running:
        running.ask("resume", domain=given.domain)
    print(f"{given.name}{'' if given.domain is None else f', domain {given.domain},'} runs")
    return 0
