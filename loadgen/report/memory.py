"""Sums memory by cell: the integral and maximum of tuples and bytes held, and the integral of the lower bound."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from loadgen.report.tables import Tables


def sum_memory(tables: Tables) -> DataFrame:
    """By run and cell; a row holds since the row before it, and rows that last no time are dropped."""
    sizes = sql.when(~sql.isnan("held_bytes"), sql.col("held_bytes"))
    return (
        tables.pieces(_to_intervals(tables.table("memory").withColumn("held_bytes", sizes)))
        .groupBy("run", "cell")
        .agg(
            sql.sum(sql.col("held") * sql.col("span")).alias("held"),
            sql.max("held").alias("most"),
            sql.sum(sql.col("held_bytes") * sql.col("span")).alias("held_bytes"),
            sql.max("held_bytes").alias("most_bytes"),
        )
    )


def sum_bound(tables: Tables) -> DataFrame:
    """By run and cell, where it is recorded: the integral of the least memory that any scheduler needs."""
    pieces = tables.pieces(_to_intervals(tables.table("bound")))
    return pieces.groupBy("run", "cell").agg(sql.sum(sql.col("tuples") * sql.col("span")).alias("bound"))


def _to_intervals(rows: DataFrame) -> DataFrame:
    """Give each row an interval: `since` the row before it, `until` its own instant."""
    in_order = Window.partitionBy("run").orderBy("at", "part", "row")
    before = sql.coalesce(sql.lag("at").over(in_order), sql.col("began"))
    return rows.withColumns({"since": before, "until": sql.col("at")}).where("until > since")
