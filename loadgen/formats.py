"""The formats that a Spark session can be given: `dsms` and `dsms_load`."""

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
