"""Run the papers' experiments, and show every claim with its number beside ours.

Runs that are done are kept in DIR/runs.jsonl, so whoever stops it goes on by the same call; runs of other code are done
anew. In DIR are then report.html, report.md and, for each paper, the figures and the data (CSV, JSON).
Verdicts: reproduced; direction only; not reproduced, and why.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dsms.advice.figures import check
from dsms.cli.arguments import several
from dsms.cli.bar import runs_bar
from dsms.cli.stopping import stoppable
from dsms.errors import DsmsError
from dsms.papers import Scale, Verdict, report
from dsms.papers.data import claim_data
from dsms.papers.pools import pool_named
from dsms.papers.registry import PAPERS, chosen
from dsms.papers.reproduce import Outcome, reproduce
from dsms.papers.trace_file import packets

STYLES = {Verdict.REPRODUCED: "green", Verdict.DIRECTION: "yellow", Verdict.NOT: "red"}
OUT = Path("reproduction")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="PAPER[/FIGURE]",
        nargs="?",
        help=f"one paper, or one figure or experiment of it (default: all); papers: {', '.join(PAPERS)}",
    )
    parser.add_argument("--seeds", type=several, metavar="N", default=1, help="runs of every point (default: 1)")
    parser.add_argument("--out", type=Path, metavar="DIR", default=OUT, help=f"where to write (default: {OUT})")
    parser.add_argument("--quick", action="store_true", help="short runs, in minutes rather than an hour")
    parser.add_argument("--list", action="store_true", help="say what can be asked for, and run nothing")
    parser.add_argument("--fresh", action="store_true", help="do runs again that are done")
    parser.add_argument("--jobs", type=several, metavar="N", help="runs at a time (default: as many as cores)")
    parser.add_argument(
        "--on",
        metavar="WHO",
        default="processes",
        help="who works runs out: `processes`, or `ray[:ADDRESS]`, tasks on a cluster (ray:local starts a small one)",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        action="append",
        default=[],
        help="a packet trace of the Internet Traffic Archive (text) instead of a synthetic stand-in; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print the claims as one JSON object instead of a table")


def run(given: argparse.Namespace) -> int:
    wanted = chosen(given.what)
    if given.list:
        for paper, experiments in wanted:
            print(f"{paper.name}: {paper.citation}")
            for experiment in experiments:
                print(f"  {paper.name}/{', '.join(dict.fromkeys(experiment.names))}: {experiment.title}")
        return 0
    for file in given.trace:
        if not Path(file).is_file():
            raise DsmsError(f"--trace {file!r}: no such file")
        packets(file)  # before an hour has gone into it, as below
    try:
        given.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DsmsError(f"--out {str(given.out)!r} is no folder that can be written to: {error.strerror}") from None
    check(given.out / "report.svg")
    scale = Scale(given.quick, given.seeds, tuple(str(Path(file).absolute()) for file in given.trace))
    with stoppable(), runs_bar() as tell:
        outcomes = reproduce(wanted, scale, given.out, pool_named(given.on, given.jobs), given.fresh, tell)
    report.write(outcomes, scale, _command(given), date.today().isoformat(), given.out)
    if given.json:
        claims = [
            {"experiment": f"{outcome.paper.name}/{outcome.experiment.name}", **claim_data(judgement)}
            for outcome in outcomes
            for judgement in outcome.judgements
        ]
        print(json.dumps({"claims": claims}, allow_nan=False))
        return 0
    _show(outcomes)
    print(f"{report.summary(outcomes)}; figures and data: {given.out / 'report.html'}")
    return 0


def _command(given: argparse.Namespace) -> str:
    """The call that makes the same report."""
    words = ["dsms", "reproduce", *filter(None, [given.what])]
    words += ["--quick"] if given.quick else []
    words += ["--seeds", str(given.seeds)] if given.seeds > 1 else []
    words += [word for file in given.trace for word in ("--trace", Path(file).name)]
    return " ".join(words)


def _show(outcomes: Sequence[Outcome]) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = 150  # nobody's window: whole sentences
    for outcome in outcomes:
        if not outcome.judgements:
            continue
        table = Table(box=SIMPLE_HEAD, title=escape(f"{outcome.paper.name}/{outcome.experiment.name}"), expand=True)
        for column, share in zip(report.COLUMNS, (5, 2, 2, 2, 4), strict=True):
            table.add_column(column, ratio=share)
        for judgement in outcome.judgements:
            cells = [escape(cell) for cell in report.row(judgement)]
            cells[3] = f"[{STYLES[judgement.verdict]}]{cells[3]}[/]"
            table.add_row(*cells)
        console.print(table)
