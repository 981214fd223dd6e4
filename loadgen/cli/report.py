"""Analyse recorded runs with Spark, compare their policies, and write an HTML page and Parquet tables.

DIR is a folder that `--record DIR` of `dsms sim`, `run` or `up` has written: a run, or a folder of runs. Each run
or phase under a policy is one sample of it. The tables show means ± half of a 95 % confidence interval; where a policy
has one sample, the report cuts its time into equal stretches and takes their means as samples. The page also compares
each run with its simulation, and says how much each cause of the difference contributed (see `dsms whatif --help`).
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.cli.progress import show_progress
from dsms.cli.tables import format_cell, format_number, format_percent, make_table, show
from dsms.errors import DsmsError, FailedError
from loadgen.cli.spark_session import add_master_option, log, start_spark

if TYPE_CHECKING:
    from loadgen.report.periods import RecordedRun

DEFAULT_FOLDER = "report"
COLUMNS = ("policy", "samples", "memory mean", "max", "latency mean", "p50", "p90", "p99", "stale", "results per time")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", metavar="DIR", nargs="+", type=Path, help="a recorded run, or a folder of them")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help=f"output folder (default: {DEFAULT_FOLDER!r} in the first DIR)"
    )
    parser.add_argument(
        "--reason", metavar="TEXT", help="compare only phases that began with this reason (`dsms policy --reason`)"
    )
    add_master_option(parser)


def run(given: argparse.Namespace) -> int:
    from dsms.recording import read_recordings  # it imports pyarrow

    for folder in given.folders:  # refuse a missing recording before Spark starts
        read_recordings(folder)
    if importlib.util.find_spec("matplotlib") is None:
        raise FailedError("a report needs matplotlib for its pictures, which is not installed; install dsms[plot]")
    out = given.out or given.folders[0] / DEFAULT_FOLDER
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DsmsError(f"{out} cannot be written: {error.strerror}") from None
    with show_progress() as progress, start_spark(given.master, progress) as session:
        from loadgen.report.report import write_report  # it imports PySpark

        runs, comparison = write_report(session, given.folders, out, progress, given.reason)
    _show(runs, comparison)
    print(f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}: {out / 'report.html'}, figures in {out / 'aggregates'}")
    return 0


def _show(runs: list[RecordedRun], comparison: list[dict[str, Any]]) -> None:
    for run in runs:
        if not run.recording.complete:
            log.warning("recording %s is incomplete: shown up to %s", run.label, format_number(run.until))
    virtual = any(run.recording.about["clock"] == "virtual" for run in runs)
    caption = f"memory in tuples, times in {'the plan’s unit' if virtual else 'seconds'}; ± half of a 95 % interval"
    table = make_table("", COLUMNS, left=("policy",), caption=caption)
    for row in comparison:
        half = {name: row[f"{name}_half"] for name in ("memory_mean", "latency_mean", "staleness", "output_rate")}
        table.add_row(
            format_cell(row["policy"]),
            format_number(row["samples"]) if row["by"] == "samples" else f"1, {row['batches']} stretches",
            _format_interval(format_number(row["memory_mean"]), half["memory_mean"]),
            format_number(row["memory_max"]),
            _format_interval(format_number(row["latency_mean"]), half["latency_mean"]),
            *(format_number(row[f"latency_{name}"]) for name in ("p50", "p90", "p99")),
            _format_interval(format_percent(row["staleness"]), half["staleness"], 100),
            _format_interval(format_number(row["output_rate"]), half["output_rate"]),
        )
    show(table)


def _format_interval(text: str, half: float | None, times: float = 1) -> str:
    return text if half is None else f"{text} ± {half * times:.{'2g' if half * times < 100 else '0f'}}"
