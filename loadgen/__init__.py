"""The data pipeline on Spark: bursty load, rows into a live system, traces, and the analysis of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Let a session know the formats `dsms` (rows into a live system) and `dsms_load` (generated rows)."""
    from loadgen.sink import Sink
    from loadgen.source import LoadSource

    spark.dataSource.register(LoadSource)
    spark.dataSource.register(Sink)
