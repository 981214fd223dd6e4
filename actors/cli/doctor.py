"""Check whether this machine can run a deployment: software, ports, disk, memory, limits, clock and tokens.

The command starts and changes nothing. Every check prints what it found and, for a problem, what to do. It works
without Ray and Spark. Exit code 1 if any check fails.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from actors.cli import console
from actors.doctor.finding import ERROR, WARNING, Finding
from actors.doctor.machine import check_machine
from actors.doctor.network import check_network
from actors.doctor.secrets import check_secrets
from actors.doctor.software import check_software
from dsms.config.fields import check_table
from dsms.config.live import LiveConfig
from dsms.errors import PlanError
from dsms.net.certificate import Certificate
from dsms.query.plan_file import read_table

LABEL_WIDTH = 8


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", nargs="?", type=Path, help="check for the [live] table of this plan")
    parser.add_argument(
        "--token-file", metavar="FILE", type=Path, action="append", default=[], help="check this token file too"
    )
    parser.add_argument("--json", action="store_true", help="print a list of objects: state, what, found, remedy")


def run(given: argparse.Namespace) -> int:
    findings = examine(given.plan, given.token_file)
    if given.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.state:<{LABEL_WIDTH}} {finding.what}: {finding.found}")
            if finding.remedy:
                print(f"{'':<{LABEL_WIDTH}} → {finding.remedy}")
        states = [finding.state for finding in findings]
        print(f"{len(states)} checks: {states.count(ERROR)} errors, {states.count(WARNING)} warnings")
    return int(any(finding.state == ERROR for finding in findings))


def examine(plan: Path | None, tokens: list[Path]) -> list[Finding]:
    """Run all checks."""
    setup, folder = LiveConfig(), Path()
    if plan is not None:
        try:
            setup = LiveConfig.read(check_table(read_table(plan).get("live", {}), "live"))
        except PlanError as error:
            raise error.within("" if error.place == "live" else "live", str(plan)) from None
        folder = plan.parent
    return [
        *check_software(),
        *check_machine(folder),
        *check_network(setup, (console.HOST, console.PORT), bool(tokens)),
        *check_secrets(tokens, Certificate.of(setup.certificate, setup.key, folder)),
    ]
