"""Counts arrivals and results over time, fingerprints arrivals to compare runs, and measures burstiness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from loadgen.report.tables import Tables

BIN_COUNT = 1 << 12  # equal bins of a run, in which rows are counted
VARIANCE_SAMPLES_MIN = 16  # fewest sums of bins for a variance
SHOWN_SCALES_LOG2 = (0, 3, 6)  # scales in the report: log2 of the number of bins summed
FINGERPRINT_MODULUS = 1_000_003  # keeps sums of many rows in 64 bits
Counts = NDArray[np.float64]


def compute_fingerprints(tables: Tables) -> DataFrame:
    """By run: the number of arrived rows, the mean lag, and a number that is equal for equal arrivals."""
    fingerprint = sql.pmod(sql.xxhash64("stream", "at"), sql.lit(FINGERPRINT_MODULUS))
    return (
        tables.table("arrivals")
        .groupBy("run")
        .agg(
            sql.sum("rows").alias("rows"),
            (sql.sum(sql.col("lag") * sql.col("rows")) / sql.sum("rows")).alias("lag"),
            sql.sum(fingerprint * sql.col("rows")).alias("print"),
        )
    )


def count_arrivals(tables: Tables) -> DataFrame:
    """By run and cell: the number of arrived rows."""
    return tables.located("arrivals").groupBy("run", "cell").agg(sql.sum("rows").alias("arrived"))


def count_by_bin(tables: Tables) -> DataFrame:
    """By run, `flow` (arrivals or outputs) and bin: the number of rows."""
    place = sql.floor((sql.col("at") - sql.col("began")) / sql.col("lasted") * BIN_COUNT)
    inside = sql.least(sql.greatest(place, sql.lit(0)), sql.lit(BIN_COUNT - 1)).alias("bin")
    arrivals, outputs = (
        tables.table(name).select("run", sql.lit(name).alias("flow"), inside, "rows")
        for name in ("arrivals", "outputs")
    )
    rows = arrivals.unionAll(outputs)
    return rows.groupBy("run", "flow", "bin").agg(sql.sum("rows").alias("rows"))


@dataclass(frozen=True)
class Burstiness:
    """How bursty a flow is; Poisson arrivals have a dispersion of 1 at all scales and a Hurst exponent of 0.5."""

    width: float  # of a bin
    variances: Mapping[int, float]  # by scale, in bins: the variance of the count over the square of its mean
    dispersion: Mapping[int, float]  # by scale: the variance of the count over its mean
    peak: float | None  # the greatest count in 1/128 of the time, over the mean
    hurst: float | None  # None if there are too few rows


def measure_burstiness(counted: Counts, duration: float) -> Burstiness:
    """Measure the variance of counts at doubling scales, and estimate the Hurst exponent (variance-time method)."""
    width, mean = duration / len(counted), float(counted.mean())
    variances, dispersion = {}, {}
    if mean > 0:
        scale = 1
        while len(counted) // scale >= VARIANCE_SAMPLES_MIN:
            sums = counted[: len(counted) // scale * scale].reshape(-1, scale).sum(axis=1)
            variance = float(sums.var(ddof=1))
            variances[scale] = variance / (scale * mean) ** 2
            dispersion[scale] = variance / (scale * mean)
            scale *= 2
    peak = float(counted.reshape(128, -1).sum(axis=1).max() / (mean * len(counted) / 128)) if mean > 0 else None
    return Burstiness(width, variances, dispersion, peak, _estimate_hurst(variances, mean))


def _estimate_hurst(variances: Mapping[int, float], mean: float) -> float | None:
    """1 + slope / 2 of the log variance over the log scale, at scales whose counts have at least one row on average."""
    scales = [scale for scale, variance in variances.items() if variance > 0 and mean * scale >= 1]
    if len(scales) < 4:
        return None
    slope = np.polyfit(np.log(scales), np.log([variances[scale] for scale in scales]), 1)[0]
    return float(1 + slope / 2)
