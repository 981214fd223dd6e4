"""Results: how many left and how late, and for how long their queries' outputs were behind."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from loadgen.report.tables import Tables

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
SCOPES = (("run",), ("run", "query"), ("run", "phase"), ("run", "window"))
KEYS = ("query", "phase", "window")
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


def percentiles(tables: Tables) -> DataFrame:
    """Of the latency, exact: for all of a run, by query, by phase and by window, as between the two nearest results.

    Latencies are sorted on disk where they do not fit into memory, each together with how many results have it.
    """
    gone = tables.located("outputs").withColumn("latency", sql.expr(LATENCY))
    names = {name: sql.col(name) for name in ("run", *KEYS, "latency")}
    sets = [[*(names[name] for name in scope), names["latency"]] for scope in SCOPES]
    counted = gone.groupingSets(sets, *names.values()).agg(
        sql.grouping_id(*names.values()).alias("scope"), sql.sum("rows").alias("rows")
    )
    group = ("scope", "run", *KEYS)
    upto = Window.partitionBy(*group).orderBy("latency").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = counted.select(
        *group,
        "latency",
        sql.sum("rows").over(upto).alias("upto"),
        sql.sum("rows").over(Window.partitionBy(*group)).alias("all"),
    )
    found = {}
    for name, share in QUANTILES.items():
        place = sql.lit(share) * (sql.col("all") - 1)
        for end, rank in (("low", sql.floor(place)), ("high", sql.ceil(place))):
            found[f"{name}_{end}"] = sql.min(sql.when(sql.col("upto") > rank, sql.col("latency")))
    ends = ranked.groupBy(*group, "all").agg(*(column.alias(name) for name, column in found.items()))
    return ends.select("run", *KEYS, *(_between(name, share) for name, share in QUANTILES.items()))


def _between(name: str, share: float) -> Column:
    place = sql.lit(share) * (sql.col("all") - 1)
    low, high = sql.col(f"{name}_low"), sql.col(f"{name}_high")
    return (low + (high - low) * (place - sql.floor(place))).alias(name)


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
