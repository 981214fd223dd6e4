"""Tuples and bytes held: their integral over time, and the most at once, by cell; and the least that had to be."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from loadgen.report.tables import Tables


def memory(tables: Tables) -> DataFrame:
    """By run and cell; a row of the table holds from the one before it, and what lasts no time was never held."""
    sizes = sql.when(~sql.isnan("held_bytes"), sql.col("held_bytes"))
    return (
        tables.pieces(_lasting(tables.table("memory").withColumn("held_bytes", sizes)))
        .groupBy("run", "cell")
        .agg(
            sql.sum(sql.col("held") * sql.col("span")).alias("held"),
            sql.max("held").alias("most"),
            sql.sum(sql.col("held_bytes") * sql.col("span")).alias("held_bytes"),
            sql.max("held_bytes").alias("most_bytes"),
        )
    )


def bound(tables: Tables) -> DataFrame:
    """By run and cell, where it is recorded: the least that any scheduler would have had to hold."""
    pieces = tables.pieces(_lasting(tables.table("bound")))
    return pieces.groupBy("run", "cell").agg(sql.sum(sql.col("tuples") * sql.col("span")).alias("bound"))


def _lasting(rows: DataFrame) -> DataFrame:
    """Each row `since` the one before it `until` its own instant."""
    in_order = Window.partitionBy("run").orderBy("at", "part", "row")
    before = sql.coalesce(sql.lag("at").over(in_order), sql.col("began"))
    return rows.withColumns({"since": before, "until": sql.col("at")}).where("until > since")
