"""Reads the tables of all recorded runs as Spark data frames, and assigns rows and intervals to windows and cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from dsms.errors import DsmsError, existing
from loadgen.report.periods import RecordedRun

SCHEMAS = {
    "arrivals": "at double, stream string, rows long, lag double",
    "outputs": "at double, query string, arrived double, rows long",
    "memory": "at double, held double, held_bytes double",
    "bound": "at double, tuples double",
}
PART_GLOB = "part-*.parquet"


class Tables:
    """The tables of several runs; the column `run` is the run's place among them."""

    def __init__(self, spark: SparkSession, runs: Sequence[RecordedRun]) -> None:
        self.spark, self.runs = spark, runs
        for run in runs:
            for name in SCHEMAS:
                for part in sorted((run.recording.folder / name).glob(PART_GLOB)):
                    check_part(part, list(list_columns(name)))

    def table(self, name: str) -> DataFrame:
        """All rows of a table, with their `part` and `row` in the files, and their run's `began`, `lasted`, `width`."""
        parts = [self._read(run, name) for run in self.runs]
        return reduce(lambda some, more: some.unionAll(more), parts)

    def located(self, name: str) -> DataFrame:
        """All rows of a table, each with the `window`, `cell` and `phase` of its instant `at`."""
        rows = self.table(name).withColumn("window", window_expression(sql.col("at")))
        inside = (sql.col("at") >= sql.col("low")) & (sql.col("at") < sql.col("high"))
        return rows.join(sql.broadcast(self._cells()), ["run", "window"]).where(inside)

    def pieces(self, intervals: DataFrame) -> DataFrame:
        """Cut intervals, rows with `since` and `until`, at the edges of cells; pieces have a `cell` and a `span`."""
        windows = sql.sequence(*(window_expression(sql.col(end)) for end in ("since", "until")))
        spread = intervals.withColumn("window", sql.explode(windows))
        cells = self._cells().select("run", "window", "cell", "cell_since", "cell_until")
        return (
            spread.join(sql.broadcast(cells), ["run", "window"])
            .withColumn("since", sql.greatest("since", "cell_since"))
            .withColumn("until", sql.least("until", "cell_until"))
            .withColumn("span", sql.col("until") - sql.col("since"))
            .where("span > 0")
        )

    def _read(self, run: RecordedRun, name: str) -> DataFrame:
        folder = run.recording.folder / name
        constants = {"run": run.place, "began": run.since, "lasted": run.duration or 1.0, "width": run.width}
        constants["last_window"] = run.windows - 1
        of_run = [sql.lit(value).alias(column) for column, value in constants.items()]
        if not any(folder.glob(PART_GLOB)):
            columns = [sql.lit(None).cast(kind).alias(column) for column, kind in list_columns(name).items()]
            position = sql.lit("").alias("part"), sql.lit(0).cast("long").alias("row")
            return self.spark.range(0).select(*columns, *position, *of_run)
        rows = self.spark.read.schema(SCHEMAS[name]).parquet(str(folder))
        position = sql.col("_metadata.file_name").alias("part"), sql.col("_metadata.row_index").alias("row")
        return rows.select("*", *position, *of_run)

    def _cells(self) -> DataFrame:
        """The cells of all runs; `low` and `high` cover every instant of a window in spite of rounding."""
        rows = []
        for run in self.runs:
            for place, cell in enumerate(run.cells):
                first = place == 0 or run.cells[place - 1].window != cell.window
                last = place == len(run.cells) - 1 or run.cells[place + 1].window != cell.window
                low, high = -math.inf if first else cell.since, math.inf if last else cell.until
                rows.append((run.place, cell.window, place, cell.phase, cell.since, cell.until, low, high))
        names = ("run", "window", "cell", "phase", "cell_since", "cell_until", "low", "high")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        return self.spark.createDataFrame(pa.table(columns))  # for Python rows Spark would start worker processes


def window_expression(instant: Column) -> Column:
    """The window of an instant in its run; instants outside the run belong to the nearest window."""
    place = sql.floor((instant - sql.col("began")) / sql.col("width")).cast("long")
    return sql.least(sql.greatest(place, sql.lit(0)), sql.col("last_window").cast("long"))


def list_columns(table: str) -> dict[str, str]:
    """The columns of a table and their types."""
    return dict(column.split() for column in SCHEMAS[table].split(", "))


def check_part(part: Path, columns: Sequence[str]) -> None:
    """Refuse a damaged part by name, which Spark would only notice in the middle of the analysis."""
    try:
        names = parquet.read_schema(part).names
    except (pa.ArrowException, OSError) as error:
        raise DsmsError(f"{part} is damaged: {error}; remove it to report on the rest of the run") from None
    for name in columns:
        if name not in names:
            raise DsmsError(f"{part}: no column {name!r}{existing(name, names)}")
