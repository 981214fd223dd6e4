"""Makes a report: reads the recorded runs, analyses and compares them, and writes the page and the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from dsms.errors import FailedError
from dsms.recording.what_if import predict
from loadgen.report.aggregates import make_aggregates, write_tables
from loadgen.report.analysis import analyse, read_runs
from loadgen.report.comparison import compare_differences, compare_policies
from loadgen.report.page import render_page
from loadgen.report.periods import RecordedRun
from loadgen.report.tally import Figures


def write_report(
    spark: SparkSession, folders: Sequence[Path], out: Path, progress: Callable[[str], None], reason: str | None = None
) -> tuple[list[RecordedRun], list[Figures]]:
    """Write `report.html` and `aggregates/` for the runs in these folders; returns the runs and the comparison.

    With a `reason`, only phases that began for it are compared.
    """
    runs = read_runs(folders)
    analysis = analyse(spark, runs, progress)
    policies, pairs = compare_policies(analysis, reason), compare_differences(analysis)
    progress("replaying the runs")
    predictions = [predict(run.recording) for run in runs]
    progress("drawing")
    text = render_page(runs, analysis, policies, pairs, predictions)
    try:
        write_tables(make_aggregates(runs, analysis, policies, pairs), out / "aggregates")
        (out / "report.html").write_text(text, encoding="utf-8")
    except OSError as error:
        raise FailedError(f"{out} cannot be written: {error.strerror}") from None
    return runs, policies
