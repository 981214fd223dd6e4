"""Parses trace files with Spark, writes their packets as Parquet sorted by time, and counts malformed lines."""

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
from loadgen.traces.files import RawTraceFile

NUMBER_PATTERN = r"^[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$"
INTEGER_PATTERN = r"^-?[0-9]+$"
OUTPUT_FILE_PATTERN = re.compile(r"part-.*\.parquet|_SUCCESS|\..*\.crc")  # files that Spark writes to a folder
KEPT_COLUMNS = ("source", "destination", "source_port", "destination_port", "size")
SORT_COLUMNS = ("due", "file", "block", "place")  # by time; packets of one instant in the order of the files


@dataclass(frozen=True)
class RejectedLines:
    """The lines of a file that are malformed for one reason, with the first of them as an example."""

    file: Path
    reason: str
    lines: int
    example: str


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion: packets written, their time span, and malformed lines."""

    packets: int
    seconds: float
    rejected: list[RejectedLines] = field(default_factory=list)


def convert(
    spark: SparkSession,
    files: Sequence[RawTraceFile],
    out: str | Path,
    *,
    strict: bool = False,
    overwrite: bool = False,
) -> Conversion:
    """Write all packets of these files to a folder of Parquet parts, sorted by time."""
    out = Path(out)
    if out.exists() and not overwrite:
        raise DsmsError(f"{out} exists already; `--overwrite` replaces it")
    inputs = [Path(file.path).resolve() for file in files]
    if any(out.resolve() == path or out.resolve() in path.parents for path in inputs):
        raise DsmsError(f"{out} is or contains a trace to convert, and would be replaced: name another folder")
    if out.is_dir() and any(not OUTPUT_FILE_PATTERN.fullmatch(path.name) for path in out.iterdir()):
        raise DsmsError(f"{out} contains files other than Parquet parts, which would be removed: name another folder")
    if not out.resolve().parent.is_dir():
        raise DsmsError(f"{out} cannot be written: no folder {str(out.parent)!r}")
    bases = [file.base or 0 for file in files]
    parsed = [
        _parse_lines(spark, file, place, base - min(bases))
        for place, (file, base) in enumerate(zip(files, bases, strict=True))
    ]
    lines = reduce(lambda some, more: some.unionByName(more), parsed)
    conversion, first = _count_lines(lines, files)
    if strict and conversion.rejected:
        example = conversion.rejected[0]
        raise FailedError(
            f"{sum(one.lines for one in conversion.rejected):,} lines are malformed, and --strict allows none; the "
            f"first of {example.file}: {example.reason}: {example.example!r}"
        )
    if not conversion.packets:
        reasons = "; ".join(f"{one.file}: {one.reason}: {one.example!r}" for one in conversion.rejected)
        raise DsmsError(f"all lines are malformed: {reasons}")
    _write(lines, first, out)
    return conversion


def _parse_lines(spark: SparkSession, file: RawTraceFile, place: int, later: int) -> DataFrame:
    """Parse a file's lines; `due` counts from the first second of all files, `reason` is null for a valid line."""
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
    # A file without a stamp has a null here, which equals no time.
    since = sql.when(time == raw, time - sql.lit(float(file.base or 0))).otherwise(time)
    return split.select(
        sql.lit(place).alias("file"),
        "block",
        "place",
        "value",
        _reason(len(layout.columns), list(columns)).alias("reason"),
        (sql.lit(float(later)) + since).alias("due"),
        "time",
        *((sql.col(name) if name in columns else sql.lit(None)).cast("long").alias(name) for name in KEPT_COLUMNS),
        sql.lit(layout.protocol).alias("protocol"),
    )


def _number(text: Column, name: str) -> Column:
    pattern, kind = (NUMBER_PATTERN, "double") if name == "time" else (INTEGER_PATTERN, "long")
    return sql.when(text.rlike(pattern), text.try_cast(kind))


def _reason(fields: int, names: list[str]) -> Column:
    """Why a line is malformed, the most basic reason first; null for a valid line."""
    missing = reduce(lambda some, more: some | more, (sql.col(name).isNull() for name in names))
    negative = reduce(lambda some, more: some | more, (sql.col(name) < 0 for name in names))
    text = f"not {fields} field{'' if fields == 1 else 's'}"
    return (
        sql.when(sql.size("fields") != fields, text).when(missing, "not a number").when(negative, "a negative number")
    )


def _count_lines(lines: DataFrame, files: Sequence[RawTraceFile]) -> tuple[Conversion, float]:
    """The number of valid lines, their time span and first instant, and the malformed lines by file and reason."""
    counts = (
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
    valid = [row for row in counts if row.reason is None]
    first, last = min((row["first"] for row in valid), default=0.0), max((row["last"] for row in valid), default=0.0)
    rejected = [RejectedLines(files[row.file].path, row.reason, row.lines, row.example) for row in counts if row.reason]
    return Conversion(sum(row.lines for row in valid), last - first, rejected), first


def _write(lines: DataFrame, first: float, out: Path) -> None:
    """Write the valid lines sorted, to a temporary folder that is renamed when it is complete."""
    fresh = out.with_name(f".{out.name}.{os.getpid()}")
    in_order = lines.where(sql.col("reason").isNull()).sort(*SORT_COLUMNS)
    try:
        in_order.select((sql.col("due") - sql.lit(first)).alias("at"), "time", *KEPT_COLUMNS, "protocol").write.option(
            "mapreduce.fileoutputcommitter.marksuccessfuljobs", "false"
        ).parquet(str(fresh))
        if out.is_dir():
            shutil.rmtree(out)
        elif out.exists():
            out.unlink()
        fresh.rename(out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
