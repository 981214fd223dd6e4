"""Generates load and pushes it into a live system with Spark, converts packet traces, and reports on recorded runs."""

from loadgen.spark.register import register

__all__ = ["register"]
