"""Run the papers' experiments, and show the paper's number and ours for every claim.

The command stores finished runs in DIR/runs.jsonl: after an interruption the same command resumes, and it repeats the
runs whose code has changed. It writes report.html, report.md and, for each paper, figures and data (CSV, JSON) to DIR.
Verdicts: reproduced; direction only; not reproduced, with the reason.
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

from dsms.advice.figures import check_image_file
from dsms.cli.arguments import parse_positive_int
from dsms.cli.progress import show_runs_bar
from dsms.errors import DsmsError
from dsms.papers import Scale, Verdict, report
from dsms.papers.export import describe_claim
from dsms.papers.registry import PAPERS, select_experiments
from dsms.papers.reproduce import ExperimentResult, reproduce
from dsms.papers.trace_file import read_packets
from dsms.papers.worker_pools import create_pool

STYLES = {Verdict.REPRODUCED: "green", Verdict.DIRECTION: "yellow", Verdict.NOT: "red"}
DEFAULT_FOLDER = Path("reproduction")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="PAPER[/FIGURE]",
        nargs="?",
        help=f"one paper, or one figure or experiment of it (default: all papers); papers: {', '.join(PAPERS)}",
    )
    parser.add_argument(
        "--seeds", type=parse_positive_int, metavar="N", default=1, help="random seeds for every point (default: 1)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=DEFAULT_FOLDER, help=f"output folder (default: {DEFAULT_FOLDER})"
    )
    parser.add_argument("--quick", action="store_true", help="short runs: minutes instead of an hour")
    parser.add_argument("--list", action="store_true", help="list the experiments and their figures, and run nothing")
    parser.add_argument("--fresh", action="store_true", help="repeat runs that have a stored result")
    parser.add_argument(
        "--jobs", type=parse_positive_int, metavar="N", help="runs at the same time (default: one per core)"
    )
    parser.add_argument(
        "--on",
        metavar="POOL",
        default="processes",
        help="where to execute runs: `processes` on this machine, or `ray[:ADDRESS]` as tasks on a Ray cluster "
        "(ray:local starts one)",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        action="append",
        default=[],
        help="a text packet trace of the Internet Traffic Archive, used instead of synthetic arrivals; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print the claims as one JSON object instead of tables")


def run(given: argparse.Namespace) -> int:
    selection = select_experiments(given.what)
    if given.list:
        for paper, experiments in selection:
            print(f"{paper.name}: {paper.citation}")
            for experiment in experiments:
                print(f"  {paper.name}/{', '.join(dict.fromkeys(experiment.names))}: {experiment.title}")
        return 0
    for file in given.trace:
        if not Path(file).is_file():
            raise DsmsError(f"--trace {file!r}: no such file")
        read_packets(file)  # a bad file, folder or picture format is refused before an hour of runs
    try:
        given.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DsmsError(f"--out {str(given.out)!r} is not a writable folder: {error.strerror}") from None
    check_image_file(given.out / "report.svg")
    scale = Scale(given.quick, given.seeds, tuple(str(Path(file).absolute()) for file in given.trace))
    with show_runs_bar() as progress:
        outcomes = reproduce(selection, scale, given.out, create_pool(given.on, given.jobs), given.fresh, progress)
    report.write_report(outcomes, scale, _command(given), date.today().isoformat(), given.out)
    if given.json:
        claims = [
            {"experiment": f"{outcome.paper.name}/{outcome.experiment.name}", **describe_claim(judgement)}
            for outcome in outcomes
            for judgement in outcome.judgements
        ]
        print(json.dumps({"claims": claims}, allow_nan=False))
        return 0
    _show(outcomes)
    print(f"{report.format_summary(outcomes)}; figures and data: {given.out / 'report.html'}")
    return 0


def _command(given: argparse.Namespace) -> str:
    """The command line that makes the same report."""
    words = ["dsms", "reproduce", *filter(None, [given.what])]
    words += ["--quick"] if given.quick else []
    words += ["--seeds", str(given.seeds)] if given.seeds > 1 else []
    words += [word for file in given.trace for word in ("--trace", Path(file).name)]
    return " ".join(words)


def _show(outcomes: Sequence[ExperimentResult]) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = 150  # no window limits the width: show whole sentences
    for outcome in outcomes:
        if not outcome.judgements:
            continue
        table = Table(box=SIMPLE_HEAD, title=escape(f"{outcome.paper.name}/{outcome.experiment.name}"), expand=True)
        for column, share in zip(report.COLUMNS, (5, 2, 2, 2, 4), strict=True):
            table.add_column(column, ratio=share)
        for judgement in outcome.judgements:
            cells = [escape(cell) for cell in report.claim_row(judgement)]
            cells[3] = f"[{STYLES[judgement.verdict]}]{cells[3]}[/]"
            table.add_row(*cells)
        console.print(table)
