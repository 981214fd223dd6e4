"""Tuples and bytes held: their integral over time, and the most at once, by cell."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from loadgen.report.tables import Tables


def memory(tables: Tables) -> DataFrame:
    """By run and cell; a row of the table holds from the one before it, and what lasts no time was never held."""
    in_order = Window.partitionBy("run").orderBy("at", "part", "row")
    before = sql.coalesce(sql.lag("at").over(in_order), sql.col("began"))
    sizes = sql.when(~sql.isnan("held_bytes"), sql.col("held_bytes"))
    held = tables.table("memory").withColumns({"since": before, "until": sql.col("at"), "held_bytes": sizes})
    return (
        tables.pieces(held.where("until > since"))
        .groupBy("run", "cell")
        .agg(
            sql.sum(sql.col("held") * sql.col("span")).alias("held"),
            sql.max("held").alias("most"),
            sql.sum(sql.col("held_bytes") * sql.col("span")).alias("held_bytes"),
            sql.max("held_bytes").alias("most_bytes"),
        )
    )
