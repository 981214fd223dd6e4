"""Work out with Spark what recorded runs show, write it as a page and as Parquet, and compare their policies.

DIR is what `--record DIR` of `dsms sim`, `run` or `up` has written: a run, or a folder of runs. Runs and phases under
one policy are samples of it: means ± half of a 95 % confidence interval; of a policy with one sample, by batch means
over stretches of its time.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.cli.tables import cell, figure, percent, show, table
from dsms.cli.telling import progress
from dsms.errors import DsmsError, FailedError
from loadgen.cli.starting import log, master, spark

if TYPE_CHECKING:
    from loadgen.report.periods import Run

OUT = "report"
COLUMNS = ("policy", "samples", "memory mean", "max", "latency mean", "p50", "p90", "p99", "stale", "results per time")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", metavar="DIR", nargs="+", type=Path, help="a recorded run, or a folder of them")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help=f"where to write (default: {OUT!r} in the first DIR)"
    )
    parser.add_argument(
        "--reason", metavar="TEXT", help="compare only phases that began with this reason (`dsms policy --reason`)"
    )
    master(parser)


def run(given: argparse.Namespace) -> int:
    from dsms.recording import read

    for folder in given.folders:  # what is not there needs no Spark to be found
        read(folder)
    if importlib.util.find_spec("matplotlib") is None:
        raise FailedError("a report has pictures: matplotlib, which draws them, is not there; install dsms[plot]")
    out = given.out or given.folders[0] / OUT
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DsmsError(f"{out} cannot be written: {error.strerror}") from None
    with progress() as tell, spark(given.master, tell) as session:
        from loadgen.report.report import report

        runs, compared = report(session, given.folders, out, tell, given.reason)
    _show(runs, compared)
    print(f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}: {out / 'report.html'}, figures in {out / 'aggregates'}")
    return 0


def _show(runs: list[Run], compared: list[dict[str, Any]]) -> None:
    for one in runs:
        if not one.recording.complete:
            log.warning("%s was not closed in good order: shown up to %s", one.label, figure(one.until))
    virtual = any(one.recording.about["clock"] == "virtual" for one in runs)
    caption = f"memory in tuples, times in {'the plan’s unit' if virtual else 'seconds'}; ± half of a 95 % interval"
    shown = table("", COLUMNS, left=("policy",), caption=caption)
    for row in compared:
        half = {name: row[f"{name}_half"] for name in ("memory_mean", "latency_mean", "staleness", "output_rate")}
        shown.add_row(
            cell(row["policy"]),
            figure(row["samples"]) if row["by"] == "samples" else f"1, {row['batches']} stretches",
            _with(figure(row["memory_mean"]), half["memory_mean"]),
            figure(row["memory_max"]),
            _with(figure(row["latency_mean"]), half["latency_mean"]),
            *(figure(row[f"latency_{name}"]) for name in ("p50", "p90", "p99")),
            _with(percent(row["staleness"]), half["staleness"], 100),
            _with(figure(row["output_rate"]), half["output_rate"]),
        )
    show(shown)


def _with(text: str, half: float | None, times: float = 1) -> str:
    return text if half is None else f"{text} ± {half * times:.{'2g' if half * times < 100 else '0f'}}"
