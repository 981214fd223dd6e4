"""A report from beginning to end: read, work out, write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from dsms.errors import FailedError
from loadgen.report.aggregates import aggregates, write
from loadgen.report.analysis import analyse, recorded
from loadgen.report.comparison import compared, differences
from loadgen.report.page import page
from loadgen.report.periods import Run
from loadgen.report.tally import Figures


def report(
    spark: SparkSession, folders: Sequence[Path], out: Path, say: Callable[[str], None], reason: str | None = None
) -> tuple[list[Run], list[Figures]]:
    """Write `report.html` and `aggregates/` of the runs in these folders; answers with them and the comparison.

    With a reason only phases that began for it are compared.
    """
    runs = recorded(folders)
    found = analyse(spark, runs, say)
    policies, pairs = compared(found, reason), differences(found)
    say("drawing")
    text = page(runs, found, policies, pairs)
    try:
        write(aggregates(runs, found, policies, pairs), out / "aggregates")
        (out / "report.html").write_text(text, encoding="utf-8")
    except OSError as error:
        raise FailedError(f"{out} cannot be written: {error.strerror}") from None
    return runs, policies
