"""Measures load from Spark: rows a second over TCP into a system on Ray, and how well a bursty schedule is kept."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import numpy as np
from benchmarks.live.deployments import BenchDeployment, deploy, run_ray
from benchmarks.report import BenchmarkRow
from benchmarks.timing import interleave
from pyspark.sql import SparkSession

import dsms
from dsms.query.plan_file import read_table
from loadgen.spark.driver import Driver, PushTarget
from loadgen.spark.register import register
from loadgen.spark.session import get_session
from loadgen.spec.load import LoadSpec

ROWS, FRAME, FAST, REPETITIONS = 4_000_000, 50_000, 300_000, 5
ROWS_PER_S, HELD, SECONDS = 50_000, 0.05, 40.0
# One second in ten has ten times the rate of the others.
PLAN = """
[streams.bids]
schema = { auction = "int64", bidder = "int64", price = "int64" }
arrivals = { kind = "piecewise", rates = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 10.0, 1.0, 1.0], every = 1.0 }

[queries.dear]
cql = "SELECT auction, price FROM bids WHERE price < 1"

[streams.bids.values]
price = { kind = "even", of = 100 }
"""


def load(
    rows: int = ROWS, repetitions: int = REPETITIONS, seconds: float = SECONDS, rate: float = ROWS_PER_S
) -> Iterator[BenchmarkRow]:
    """Measure both figures on one Spark and one Ray; a Spark that is already running stays."""
    running = SparkSession.getActiveSession() is not None
    with TemporaryDirectory() as folder, run_ray():
        plan = Path(folder) / "plan.toml"
        plan.write_text(PLAN, encoding="utf-8")
        spark = get_session()
        register(spark)
        try:
            with deploy(read_table(plan), "fast") as fast:
                yield measure_throughput(spark, fast, rows, repetitions)
            with deploy(read_table(plan), "held") as held:
                yield measure_paced(spark, held, plan, seconds, rate)
        finally:
            if not running:
                spark.stop()


def measure_throughput(spark: Any, fast: BenchDeployment, rows: int, repetitions: int) -> BenchmarkRow:
    """Write a data frame at full speed, by turns with a client that has its rows in memory already."""
    frame = spark.range(0, rows, 1, 2).selectExpr("id % 1000 AS auction", "id AS bidder", "id % 100 AS price").cache()
    assert frame.count() == rows
    sent = itertools.count(rows, rows)

    def by_spark() -> float:
        begun = time.perf_counter()
        frame.write.format("dsms").options(address=fast.address, stream="bids").mode("append").save()
        seconds = time.perf_counter() - begun
        assert fast.domain().streams[0].rows == next(sent)
        return seconds / rows

    def by_client() -> float:
        numbers = np.arange(FRAME)
        columns = {"auction": numbers % 1000, "bidder": numbers, "price": numbers % 100}
        begun = time.perf_counter()
        with dsms.connect(fast.address) as client:
            for _ in range(rows // FRAME):
                client.push("bids", columns)
            client.flush()
        seconds = time.perf_counter() - begun
        assert fast.domain().streams[0].rows == next(sent)
        return seconds / rows

    times = interleave({"Spark": by_spark, "client": by_client}, repetitions)
    ours, peer = (1 / times[name].median for name in ("Spark", "client"))
    what = "rows/s from Spark through TCP into ingest, 2 tasks; beside a client with its rows in memory"
    return BenchmarkRow(what, f"{ours:,.0f}", f"{peer:,.0f}", ours / peer, f"≥ {FAST:,}/s", ours >= FAST)


def measure_paced(spark: Any, held: BenchDeployment, plan: Path, seconds: float, rate: float) -> BenchmarkRow:
    """Send by a schedule with tenfold bursts, and measure how far the sent rows were from it."""
    spec = LoadSpec.of(plan, rate=rate, duration=seconds)
    with Driver(spark, spec, PushTarget(held.address)) as drive:
        drive.warm()
        drive.start()
        drive.wait(lambda: Event().wait(0.2))
        _, delivery = drive.read_delivered()
    assert delivery.rows == drive.load.count_due(0.0, seconds) == held.domain().streams[0].rows
    share, mean = delivery.share_misplaced, delivery.lateness / delivery.rows
    late = f"sent late by {mean * 1e3:.0f} ms in the mean, {delivery.late * 1e3:.0f} ms at most"
    what = f"{rate:,.0f} rows/s with tenfold bursts: share sent in another second than due; {late}"
    return BenchmarkRow(what, f"{share:.2%}", f"{HELD:.0%}", HELD / max(share, 1e-9), "≥ 1", share <= HELD)
