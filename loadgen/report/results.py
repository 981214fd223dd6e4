"""Results: how many left and how late, and for how long their queries' outputs were behind."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from loadgen.report.tables import Tables

LATENCY = "greatest(at - arrived, 0D)"


def results(tables: Tables) -> DataFrame:
    """By run and cell, and by run and query: results, the sum of their latencies, and the longest."""
    gone = tables.located("outputs").withColumn("latency", sql.expr(LATENCY))
    run, cell, query = (sql.col(name) for name in ("run", "cell", "query"))
    return gone.groupingSets([[run, cell], [run, query]], run, cell, query).agg(
        sql.sum("rows").alias("rows"),
        sql.sum(sql.col("latency") * sql.col("rows")).alias("latency"),
        sql.max("latency").alias("longest"),
    )


def staleness(tables: Tables) -> DataFrame:
    """By run and cell, and by run and query: how long outputs were behind, added up over queries.

    A query's output is behind from a result's arrival until it leaves (dsms/staleness.py): the union of these times
    is added up piece by piece, in the order of their beginnings.
    """
    on_the_way = tables.table("outputs").withColumns({"since": sql.col("arrived"), "until": sql.col("at")})
    pieces = tables.pieces(on_the_way.where("until > since"))
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
