"""What came in: how much, whether another run had the same, and how unevenly it came and results left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from loadgen.report.tables import Tables

BINS = 1 << 12  # of a run, in which rows are counted
FEWEST = 16  # sums of bins that a variance is taken over
SCALES = (0, 3, 6)  # shown: bins put together, as powers of 2
MODULUS = 1_000_003  # small enough for sums of many rows
Counts = NDArray[np.float64]


def fingerprints(tables: Tables) -> DataFrame:
    """By run: how many rows came, the mean lag, and a number that is the same for the same arrivals."""
    each = sql.pmod(sql.xxhash64("stream", "at"), sql.lit(MODULUS))
    return (
        tables.table("arrivals")
        .groupBy("run")
        .agg(
            sql.sum("rows").alias("rows"),
            (sql.sum(sql.col("lag") * sql.col("rows")) / sql.sum("rows")).alias("lag"),
            sql.sum(each * sql.col("rows")).alias("print"),
        )
    )


def arrived(tables: Tables) -> DataFrame:
    """By run and cell: how many rows came."""
    return tables.located("arrivals").groupBy("run", "cell").agg(sql.sum("rows").alias("arrived"))


def counts(tables: Tables) -> DataFrame:
    """By run, `flow` (arrivals or outputs) and bin: how many rows."""
    place = sql.floor((sql.col("at") - sql.col("began")) / sql.col("lasted") * BINS)
    inside = sql.least(sql.greatest(place, sql.lit(0)), sql.lit(BINS - 1)).alias("bin")
    arrivals, outputs = (
        tables.table(name).select("run", sql.lit(name).alias("flow"), inside, "rows")
        for name in ("arrivals", "outputs")
    )
    rows = arrivals.unionAll(outputs)
    return rows.groupBy("run", "flow", "bin").agg(sql.sum("rows").alias("rows"))


@dataclass(frozen=True)
class Burstiness:
    """How uneven a flow is; of Poisson arrivals the dispersion is 1 at all scales, and the Hurst exponent 0.5."""

    width: float  # of a bin
    variances: Mapping[int, float]  # by how many bins are put together: of their mean, by the square of the mean
    dispersion: Mapping[int, float]  # likewise: the variance of a count by its mean
    peak: float | None  # the fullest 1/128 of the time by the mean
    hurst: float | None


def burstiness(counted: Counts, duration: float) -> Burstiness:
    """By the variance of counts at scales that double; the Hurst exponent from how slowly it falls (variance-time)."""
    width, mean = duration / len(counted), float(counted.mean())
    variances, dispersion = {}, {}
    if mean > 0:
        scale = 1
        while len(counted) // scale >= FEWEST:
            sums = counted[: len(counted) // scale * scale].reshape(-1, scale).sum(axis=1)
            variance = float(sums.var(ddof=1))
            variances[scale] = variance / (scale * mean) ** 2
            dispersion[scale] = variance / (scale * mean)
            scale *= 2
    peak = float(counted.reshape(128, -1).sum(axis=1).max() / (mean * len(counted) / 128)) if mean > 0 else None
    return Burstiness(width, variances, dispersion, peak, _hurst(variances, mean))


def _hurst(variances: Mapping[int, float], mean: float) -> float | None:
    """1 + slope / 2 of the variance of the mean over the scale, both as logarithms, where bins hold a few rows."""
    scales = [scale for scale, variance in variances.items() if variance > 0 and mean * scale >= 1]
    if len(scales) < 4:
        return None
    slope = np.polyfit(np.log(scales), np.log([variances[scale] for scale in scales]), 1)[0]
    return float(1 + slope / 2)
