"""Sums results by cell and by query: their number, their latencies, and the time in which outputs were stale."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from loadgen.report.tables import Tables

LATENCY_SQL = "greatest(at - arrived, 0D)"


def sum_results(tables: Tables) -> DataFrame:
    """By run and cell, and by run and query: the number of results, the sum of their latencies, and the longest."""
    outputs = tables.located("outputs").withColumn("latency", sql.expr(LATENCY_SQL))
    run, cell, query = (sql.col(name) for name in ("run", "cell", "query"))
    return outputs.groupingSets([[run, cell], [run, query]], run, cell, query).agg(
        sql.sum("rows").alias("rows"),
        sql.sum(sql.col("latency") * sql.col("rows")).alias("latency"),
        sql.max("latency").alias("longest"),
    )


def sum_staleness(tables: Tables) -> DataFrame:
    """By run and cell, and by run and query: the time in which outputs were stale, summed over queries.

    A query's output is stale from a result's arrival until it leaves (dsms/measure/staleness.py). The length of the
    union of these intervals is summed interval by interval, in the order of their beginnings.
    """
    intervals = tables.table("outputs").withColumns({"since": sql.col("arrived"), "until": sql.col("at")})
    pieces = tables.pieces(intervals.where("until > since"))
    longest = pieces.groupBy("run", "query", "cell", "since").agg(sql.max("until").alias("until"))
    before = Window.partitionBy("run", "query", "cell").orderBy("since").rowsBetween(Window.unboundedPreceding, -1)
    covered = sql.coalesce(sql.max("until").over(before), sql.col("since"))
    added = sql.greatest(sql.col("until") - sql.greatest("since", covered), sql.lit(0.0))
    run, cell, query = (sql.col(name) for name in ("run", "cell", "query"))
    return (
        longest.withColumn("stale", added)
        .groupingSets([[run, cell], [run, query]], run, cell, query)
        .agg(sql.sum("stale").alias("stale"))
    )
