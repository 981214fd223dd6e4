"""The tables of all recorded runs as Spark sees them, and where in a run's time their rows belong."""

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
from loadgen.report.periods import Run

SCHEMAS = {
    "arrivals": "at double, stream string, rows long, lag double",
    "outputs": "at double, query string, arrived double, rows long",
    "memory": "at double, held double, held_bytes double",
    "bound": "at double, tuples double",
}
PATTERN = "part-*.parquet"


class Tables:
    """The tables of these runs; every row has its run's `run`, which is its place among them."""

    def __init__(self, spark: SparkSession, runs: Sequence[Run]) -> None:
        self.spark, self.runs = spark, runs
        for run in runs:
            for name in SCHEMAS:
                for part in sorted((run.recording.folder / name).glob(PATTERN)):
                    check(part, list(columns_of(name)))

    def table(self, name: str) -> DataFrame:
        """All rows; `part` and `row` say where they stand, `began`, `lasted` and `width` are their run's."""
        parts = [self._read(run, name) for run in self.runs]
        return reduce(lambda some, more: some.unionAll(more), parts)

    def located(self, name: str) -> DataFrame:
        """All rows, each with the `window`, `cell` and `phase` that its instant `at` falls into."""
        rows = self.table(name).withColumn("window", window_of(sql.col("at")))
        inside = (sql.col("at") >= sql.col("low")) & (sql.col("at") < sql.col("high"))
        return rows.join(sql.broadcast(self._cells()), ["run", "window"]).where(inside)

    def pieces(self, intervals: DataFrame) -> DataFrame:
        """Rows of a table from `since` to `until`, cut at the edges of cells; each has its `cell` and its `span`."""
        windows = sql.sequence(*(window_of(sql.col(end)) for end in ("since", "until")))
        spread = intervals.withColumn("window", sql.explode(windows))
        cells = self._cells().select("run", "window", "cell", "cell_since", "cell_until")
        return (
            spread.join(sql.broadcast(cells), ["run", "window"])
            .withColumn("since", sql.greatest("since", "cell_since"))
            .withColumn("until", sql.least("until", "cell_until"))
            .withColumn("span", sql.col("until") - sql.col("since"))
            .where("span > 0")
        )

    def _read(self, run: Run, name: str) -> DataFrame:
        folder = run.recording.folder / name
        told = {"run": run.place, "began": run.since, "lasted": run.duration or 1.0, "width": run.width}
        told["last_window"] = run.windows - 1
        same = [sql.lit(value).alias(column) for column, value in told.items()]
        if not any(folder.glob(PATTERN)):
            none = [sql.lit(None).cast(kind).alias(column) for column, kind in columns_of(name).items()]
            nowhere = sql.lit("").alias("part"), sql.lit(0).cast("long").alias("row")
            return self.spark.range(0).select(*none, *nowhere, *same)
        read = self.spark.read.schema(SCHEMAS[name]).parquet(str(folder))
        where = sql.col("_metadata.file_name").alias("part"), sql.col("_metadata.row_index").alias("row")
        return read.select("*", *where, *same)

    def _cells(self) -> DataFrame:
        """Cells by window; `low` and `high` leave no instant of the window out, whatever was rounded."""
        rows = []
        for run in self.runs:
            for place, cell in enumerate(run.cells):
                first = place == 0 or run.cells[place - 1].window != cell.window
                last = place == len(run.cells) - 1 or run.cells[place + 1].window != cell.window
                low, high = -math.inf if first else cell.since, math.inf if last else cell.until
                rows.append((run.place, cell.window, place, cell.phase, cell.since, cell.until, low, high))
        names = ("run", "window", "cell", "phase", "cell_since", "cell_until", "low", "high")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        return self.spark.createDataFrame(pa.table(columns))  # rows would have Spark start processes to take them over


def window_of(instant: Column) -> Column:
    """In which window of its run an instant is; what is outside is in the nearest."""
    place = sql.floor((instant - sql.col("began")) / sql.col("width")).cast("long")
    return sql.least(sql.greatest(place, sql.lit(0)), sql.col("last_window").cast("long"))


def columns_of(table: str) -> dict[str, str]:
    """Its columns and their kinds."""
    return dict(column.split() for column in SCHEMAS[table].split(", "))


def check(part: Path, wanted: Sequence[str]) -> None:
    """Refuse a part that is damaged, by its name: Spark would find it in the middle of the work."""
    try:
        there = parquet.read_schema(part).names
    except (pa.ArrowException, OSError) as error:
        raise DsmsError(f"{part} is damaged: {error}; without it the rest may still be worth a report") from None
    for name in wanted:
        if name not in there:
            raise DsmsError(f"{part}: no column {name!r}{existing(name, there)}")
