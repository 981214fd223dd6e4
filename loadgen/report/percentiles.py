"""Exact percentiles of the latency in two passes, neither of which sorts more than a small part of it.

The first counts results by the size of their latency, roughly; that says in which of these sizes a percentile lies.
The second sorts the latencies of these sizes only.
"""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from loadgen.report.results import LATENCY
from loadgen.report.tables import Tables

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
SIZES = 64  # by a factor of e: one and a half per cent each
NONE = -100_000  # the size of no latency at all
GROUP = ("run", "key")
Percentiles = dict[tuple[int, str], dict[str, float]]


def percentiles(tables: Tables) -> Percentiles:
    """By run and key: `run` for all of it, or `query:NAME`, `phase:N`, `window:N`; between the two nearest results."""
    results = _keyed(tables)
    found = _wanted(results).toArrow()
    if not found.num_rows:
        return {}
    values = _looked_up(results, tables.spark.createDataFrame(found)).toArrow().to_pydict()
    ends: dict[tuple[int, str], dict[str, Any]] = {}
    for run, key, end, latency, many in zip(*(values[name] for name in (*GROUP, "end", "latency", "all")), strict=True):
        ends.setdefault((run, key), {"all": many})[end] = latency
    return {place: {name: _between(each, name) for name in QUANTILES} for place, each in ends.items()}


def _keyed(tables: Tables) -> DataFrame:
    """Each result once for every group it is in."""
    parts = [sql.concat(sql.lit(f"{name}:"), sql.col(name)) for name in ("query", "phase", "window")]
    latency = sql.expr(LATENCY).alias("latency")
    size = sql.floor(sql.log("latency") * SIZES).cast("long")
    return (
        tables.located("outputs")
        .select("run", sql.explode(sql.array(sql.lit("run"), *parts)).alias("key"), latency, "rows")
        .withColumn("size", sql.when(sql.col("latency") > 0, size).otherwise(sql.lit(NONE)))
    )


def _wanted(results: DataFrame) -> DataFrame:
    """Which result of which size, in their order: two for each percentile, `low` and `high`."""
    counted = results.groupBy(*GROUP, "size").agg(sql.sum("rows").alias("rows"))
    so_far = Window.partitionBy(*GROUP).orderBy("size").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    upto, many = sql.sum("rows").over(so_far), sql.sum("rows").over(Window.partitionBy(*GROUP))
    ranks = []
    for name, share in QUANTILES.items():
        place = sql.lit(share) * (sql.col("all") - 1)
        for end, rank in (("low", sql.floor(place)), ("high", sql.ceil(place))):
            ranks.append(sql.struct(sql.lit(f"{name}_{end}").alias("end"), rank.alias("rank")))
    return (
        counted.withColumns({"upto": upto, "all": many})
        .select(*GROUP, "size", "rows", "upto", "all", sql.inline(sql.array(*ranks)))
        .where("rank < upto and rank >= upto - rows")
        .select(*GROUP, "size", "all", "end", (sql.col("rank") - sql.col("upto") + sql.col("rows")).alias("inside"))
    )


def _looked_up(results: DataFrame, wanted: DataFrame) -> DataFrame:
    """The latencies that stand at these places."""
    place = (*GROUP, "size")
    near = results.join(sql.broadcast(wanted.select(*place).distinct()), list(place))
    counted = near.groupBy(*place, "latency").agg(sql.sum("rows").alias("rows"))
    so_far = Window.partitionBy(*place).orderBy("latency").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        counted.withColumn("upto", sql.sum("rows").over(so_far))
        .join(sql.broadcast(wanted), list(place))
        .where("upto > inside")
        .groupBy(*GROUP, "end", "all")
        .agg(sql.min("latency").alias("latency"))
    )


def _between(ends: dict[str, Any], name: str) -> float:
    place = QUANTILES[name] * (int(ends["all"]) - 1)
    low, high = float(ends[f"{name}_low"]), float(ends[f"{name}_high"])
    return low + (high - low) * (place - math.floor(place))
