"""Look whether this machine can run a live system: what is installed, ports, room, limits, clock, tokens.

Nothing is started or changed. Every check says what was found and, where it is not fine, what to do. It works without
Ray and Spark. Exit code 1 if anything is an error.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from actors.cli import console
from actors.doctor.finding import ERROR, WARNING, Finding
from actors.doctor.machine import machine
from actors.doctor.network import network
from actors.doctor.secrets import secrets
from actors.doctor.software import software
from dsms.certificate import Certificate
from dsms.errors import PlanError
from dsms.live.setup import Setup
from dsms.planfile import read_table
from dsms.reading import table_of

WIDTH = 8


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", nargs="?", type=Path, help="look at what its [live] table asks for")
    parser.add_argument(
        "--token-file", metavar="FILE", type=Path, action="append", default=[], help="look at this one too"
    )
    parser.add_argument("--json", action="store_true", help="print a list of objects: state, what, found, remedy")


def run(given: argparse.Namespace) -> int:
    findings = examined(given.plan, given.token_file)
    if given.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.state:<{WIDTH}} {finding.what}: {finding.found}")
            if finding.remedy:
                print(f"{'':<{WIDTH}} → {finding.remedy}")
        states = [finding.state for finding in findings]
        print(f"{len(states)} looked at: {states.count(ERROR)} errors, {states.count(WARNING)} warnings")
    return int(any(finding.state == ERROR for finding in findings))


def examined(plan: Path | None, tokens: list[Path]) -> list[Finding]:
    """All that there is to find."""
    setup, folder = Setup(), Path()
    if plan is not None:
        try:
            setup = Setup.read(table_of(read_table(plan).get("live", {}), "live"))
        except PlanError as error:
            raise error.within("" if error.place == "live" else "live", str(plan)) from None
        folder = plan.parent
    return [
        *software(),
        *machine(folder),
        *network(setup, (console.HOST, console.PORT), bool(tokens)),
        *secrets(tokens, Certificate.of(setup.certificate, setup.key, folder)),
    ]
