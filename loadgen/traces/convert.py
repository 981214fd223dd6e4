"""Lines of text to packets in Parquet, in columns from beginning to end; what does not fit is counted and shown."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from dsms.errors import DsmsError, FailedError
from loadgen.traces.files import TraceFile

NUMBER = r"^[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$"
WHOLE = r"^-?[0-9]+$"
OURS = re.compile(r"part-.*\.parquet|_SUCCESS|\..*\.crc")  # files in a folder that we, or Spark, have written
KEPT = ("source", "destination", "source_port", "destination_port", "size")
PLACE = ("due", "file", "block", "place")  # by time; of one instant, as they stand in the files


@dataclass(frozen=True)
class Rejected:
    """Lines of a file that do not fit, for one reason."""

    file: Path
    reason: str
    lines: int
    example: str


@dataclass(frozen=True)
class Conversion:
    """What became of a trace."""

    packets: int
    seconds: float
    rejected: list[Rejected] = field(default_factory=list)


def convert(
    spark: SparkSession, files: Sequence[TraceFile], out: str | Path, *, strict: bool = False, overwrite: bool = False
) -> Conversion:
    """Write all packets of these files to a folder of Parquet parts, sorted by time."""
    out = Path(out)
    if out.exists() and not overwrite:
        raise DsmsError(f"{out} is there already; `--overwrite` replaces it")
    inputs = [Path(file.path).resolve() for file in files]
    if any(out.resolve() == path or out.resolve() in path.parents for path in inputs):
        raise DsmsError(f"{out} has what is to be converted in it, or is it: it would be replaced")
    if out.is_dir() and any(not OURS.fullmatch(path.name) for path in out.iterdir()):
        raise DsmsError(f"{out} has other files than parts of Parquet in it: they would be removed")
    if not out.resolve().parent.is_dir():
        raise DsmsError(f"{out} cannot be written: there is no folder {str(out.parent)!r}")
    bases = [file.base or 0 for file in files]
    read = [
        _lines(spark, file, place, base - min(bases))
        for place, (file, base) in enumerate(zip(files, bases, strict=True))
    ]
    lines = reduce(lambda some, more: some.unionByName(more), read)
    done, first = _counted(lines, files)
    if strict and done.rejected:
        worst = done.rejected[0]
        raise FailedError(
            f"{sum(one.lines for one in done.rejected):,} lines do not fit, and --strict wants all to; the first of "
            f"{worst.file}: {worst.reason}: {worst.example!r}"
        )
    if not done.packets:
        raise DsmsError(
            f"no line fits its format: {'; '.join(f'{r.file}: {r.reason}: {r.example!r}' for r in done.rejected)}"
        )
    _write(lines, first, out)
    return done


def _lines(spark: SparkSession, file: TraceFile, place: int, later: int) -> DataFrame:
    """A file's lines taken apart: `due` counts from the first second of all files, `reason` is null if a line fits."""
    layout = file.layout
    text = spark.read.text(str(file.path)).select(
        "value",
        sql.col("_metadata.file_block_start").alias("block"),
        sql.monotonically_increasing_id().alias("place"),
    )
    fields = sql.split(sql.regexp_replace("value", r"^\s+|\s+$", ""), r"\s+")
    columns = {
        name: _number(sql.get(fields, sql.lit(i)), name) for i, name in enumerate(layout.columns) if name != "flags"
    }
    split = text.withColumn("fields", fields).select("*", *(column.alias(name) for name, column in columns.items()))
    time, raw = sql.col("time"), sql.lit(file.stamp).cast("double")
    since = sql.when(time == raw, time - sql.lit(float(file.base or 0))).otherwise(
        time
    )  # never equal where there is none
    return split.select(
        sql.lit(place).alias("file"),
        "block",
        "place",
        "value",
        _reason(len(layout.columns), list(columns)).alias("reason"),
        (sql.lit(float(later)) + since).alias("due"),
        "time",
        *((sql.col(name) if name in columns else sql.lit(None)).cast("long").alias(name) for name in KEPT),
        sql.lit(layout.protocol).alias("protocol"),
    )


def _number(text: Column, name: str) -> Column:
    pattern, kind = (NUMBER, "double") if name == "time" else (WHOLE, "long")
    return sql.when(text.rlike(pattern), text.try_cast(kind))


def _reason(wanted: int, names: list[str]) -> Column:
    """Why a line does not fit, the plainest reason first."""
    missing = reduce(lambda some, more: some | more, (sql.col(name).isNull() for name in names))
    below = reduce(lambda some, more: some | more, (sql.col(name) < 0 for name in names))
    some = f"not {wanted} field{'' if wanted == 1 else 's'}"
    return sql.when(sql.size("fields") != wanted, some).when(missing, "not a number").when(below, "a negative number")


def _counted(lines: DataFrame, files: Sequence[TraceFile]) -> tuple[Conversion, float]:
    """How many lines fit, from when to when, and the first of each kind that does not."""
    found = (
        lines.groupBy("file", "reason")
        .agg(
            sql.count("*").alias("lines"),
            sql.min_by("value", sql.struct("block", "place")).alias("example"),
            sql.min("due").alias("first"),
            sql.max("due").alias("last"),
        )
        .orderBy("file", "reason")
        .collect()
    )
    kept = [row for row in found if row.reason is None]
    first, last = min((row["first"] for row in kept), default=0.0), max((row["last"] for row in kept), default=0.0)
    rejected = [Rejected(files[row.file].path, row.reason, row.lines, row.example) for row in found if row.reason]
    return Conversion(sum(row.lines for row in kept), last - first, rejected), first


def _write(lines: DataFrame, first: float, out: Path) -> None:
    """Sorted, under another name until it is whole."""
    fresh = out.with_name(f".{out.name}.{os.getpid()}")
    in_order = lines.where(sql.col("reason").isNull()).sort(*PLACE)
    try:
        in_order.select((sql.col("due") - sql.lit(first)).alias("at"), "time", *KEPT, "protocol").write.option(
            "mapreduce.fileoutputcommitter.marksuccessfuljobs", "false"
        ).parquet(str(fresh))
        if out.is_dir():
            shutil.rmtree(out)
        elif out.exists():
            out.unlink()
        fresh.rename(out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
