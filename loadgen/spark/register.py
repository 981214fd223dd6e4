"""Registers our formats with a Spark session: the sink `dsms` and the source `dsms_load`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register the formats `dsms` (pushes rows into a live system) and `dsms_load` (generates rows)."""
    from loadgen.spark.sink import SparkSink  # these import PySpark
    from loadgen.spark.source import LoadSource

    spark.dataSource.register(LoadSource)
    spark.dataSource.register(SparkSink)
