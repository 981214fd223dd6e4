"""Computes exact latency percentiles in two passes, without sorting all latencies.

The first pass counts results by buckets of latency, which shows the bucket of each percentile. The second sorts only
the latencies of these buckets.
"""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from loadgen.report.results import LATENCY_SQL
from loadgen.report.tables import Tables

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
BUCKETS_PER_E = 64  # buckets per factor of e: each is 1.6 % wide
ZERO_LATENCY_BUCKET = -100_000  # of latencies of 0
GROUP_COLUMNS = ("run", "key")
Percentiles = dict[tuple[int, str], dict[str, float]]


def compute_percentiles(tables: Tables) -> Percentiles:
    """By run and key: `run` for the whole run, or `query:NAME`, `phase:N`, `window:N`; interpolated linearly."""
    results = _explode_groups(tables)
    targets = _rank_targets(results).toArrow()
    if not targets.num_rows:
        return {}
    values = _look_up(results, tables.spark.createDataFrame(targets)).toArrow().to_pydict()
    ends: dict[tuple[int, str], dict[str, Any]] = {}
    for run, key, end, latency, count in zip(
        *(values[name] for name in (*GROUP_COLUMNS, "end", "latency", "all")), strict=True
    ):
        ends.setdefault((run, key), {"all": count})[end] = latency
    return {place: {name: _interpolate(each, name) for name in QUANTILES} for place, each in ends.items()}


def _explode_groups(tables: Tables) -> DataFrame:
    """Repeat each result for every group it belongs to."""
    parts = [sql.concat(sql.lit(f"{name}:"), sql.col(name)) for name in ("query", "phase", "window")]
    latency = sql.expr(LATENCY_SQL).alias("latency")
    size = sql.floor(sql.log("latency") * BUCKETS_PER_E).cast("long")
    return (
        tables.located("outputs")
        .select("run", sql.explode(sql.array(sql.lit("run"), *parts)).alias("key"), latency, "rows")
        .withColumn("size", sql.when(sql.col("latency") > 0, size).otherwise(sql.lit(ZERO_LATENCY_BUCKET)))
    )


def _rank_targets(results: DataFrame) -> DataFrame:
    """The bucket of each percentile, and the rank inside it: two for each percentile, `low` and `high`."""
    counted = results.groupBy(*GROUP_COLUMNS, "size").agg(sql.sum("rows").alias("rows"))
    so_far = (
        Window.partitionBy(*GROUP_COLUMNS).orderBy("size").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    upto, many = sql.sum("rows").over(so_far), sql.sum("rows").over(Window.partitionBy(*GROUP_COLUMNS))
    ranks = []
    for name, share in QUANTILES.items():
        place = sql.lit(share) * (sql.col("all") - 1)
        for end, rank in (("low", sql.floor(place)), ("high", sql.ceil(place))):
            ranks.append(sql.struct(sql.lit(f"{name}_{end}").alias("end"), rank.alias("rank")))
    return (
        counted.withColumns({"upto": upto, "all": many})
        .select(*GROUP_COLUMNS, "size", "rows", "upto", "all", sql.inline(sql.array(*ranks)))
        .where("rank < upto and rank >= upto - rows")
        .select(
            *GROUP_COLUMNS, "size", "all", "end", (sql.col("rank") - sql.col("upto") + sql.col("rows")).alias("inside")
        )
    )


def _look_up(results: DataFrame, targets: DataFrame) -> DataFrame:
    """The latencies at these ranks."""
    place = (*GROUP_COLUMNS, "size")
    near = results.join(sql.broadcast(targets.select(*place).distinct()), list(place))
    counted = near.groupBy(*place, "latency").agg(sql.sum("rows").alias("rows"))
    so_far = Window.partitionBy(*place).orderBy("latency").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        counted.withColumn("upto", sql.sum("rows").over(so_far))
        .join(sql.broadcast(targets), list(place))
        .where("upto > inside")
        .groupBy(*GROUP_COLUMNS, "end", "all")
        .agg(sql.min("latency").alias("latency"))
    )


def _interpolate(ends: dict[str, Any], name: str) -> float:
    place = QUANTILES[name] * (int(ends["all"]) - 1)
    low, high = float(ends[f"{name}_low"]), float(ends[f"{name}_high"])
    return low + (high - low) * (place - math.floor(place))
