"""The data pipeline on Spark: bursty load, rows into a live system, traces, and the analysis of runs."""

from loadgen.formats import register

__all__ = ["register"]
