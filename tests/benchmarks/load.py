"""Load from Spark: how fast rows come through TCP into a system on Ray, and how well a bursty schedule is kept."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import numpy as np
from benchmarks.deployed import Deployed, deployed, own_ray
from benchmarks.report import Row
from benchmarks.timing import interleaved

import dsms
from dsms.planfile import read_table
from loadgen.drive import Drive, Way
from loadgen.formats import register
from loadgen.load import Recipe
from loadgen.session import session

ROWS, FRAME, FAST, REPETITIONS = 4_000_000, 50_000, 300_000, 5
RATE, HELD, SECONDS = 50_000, 0.05, 40.0
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


def load() -> Iterator[Row]:
    """Both figures, on one Spark and one Ray."""
    with TemporaryDirectory() as folder, own_ray():
        plan = Path(folder) / "plan.toml"
        plan.write_text(PLAN, encoding="utf-8")
        spark = session()
        register(spark)
        try:
            with deployed(read_table(plan), "fast") as fast:
                yield through(spark, fast)
            with deployed(read_table(plan), "held") as held:
                yield from paced(spark, held, plan)
        finally:
            spark.stop()


def through(spark: Any, fast: Deployed) -> Row:
    """A data frame written as fast as it goes, by turns with a client that has its rows in memory already."""
    frame = spark.range(0, ROWS, 1, 2).selectExpr("id % 1000 AS auction", "id AS bidder", "id % 100 AS price").cache()
    assert frame.count() == ROWS
    sent = itertools.count(ROWS, ROWS)

    def by_spark() -> float:
        begun = time.perf_counter()
        frame.write.format("dsms").options(address=fast.address, stream="bids").mode("append").save()
        seconds = time.perf_counter() - begun
        assert fast.domain()["streams"][0]["rows"] == next(sent)
        return seconds / ROWS

    def by_client() -> float:
        numbers = np.arange(FRAME)
        rows = {"auction": numbers % 1000, "bidder": numbers, "price": numbers % 100}
        begun = time.perf_counter()
        with dsms.connect(fast.address) as client:
            for _ in range(ROWS // FRAME):
                client.push("bids", rows)
            client.flush()
        seconds = time.perf_counter() - begun
        assert fast.domain()["streams"][0]["rows"] == next(sent)
        return seconds / ROWS

    times = interleaved({"Spark": by_spark, "client": by_client}, REPETITIONS)
    ours, peer = (1 / times[name].median for name in ("Spark", "client"))
    what = "rows/s from Spark through TCP into ingest, 2 tasks; beside a client with its rows in memory"
    return Row(what, f"{ours:,.0f}", f"{peer:,.0f}", ours / peer, f"≥ {FAST:,}/s", ours >= FAST)


def paced(spark: Any, held: Deployed, plan: Path) -> Iterator[Row]:
    """A schedule with tenfold bursts, and how far what was sent was from it."""
    recipe = Recipe.of(plan, rate=RATE, duration=SECONDS)
    with Drive(spark, recipe, Way(held.address)) as drive:
        drive.warm()
        drive.start()
        drive.wait(lambda: Event().wait(0.2))
        _, delivery = drive.delivered()
    assert delivery.rows == drive.load.due(0.0, SECONDS) == held.domain()["streams"][0]["rows"]
    share, mean = delivery.misplaced, delivery.lateness / delivery.rows
    late = f"sent late by {mean * 1e3:.0f} ms in the mean, {delivery.late * 1e3:.0f} ms at most"
    what = f"{RATE:,} rows/s with tenfold bursts: share sent in another second than due; {late}"
    yield Row(what, f"{share:.2%}", f"{HELD:.0%}", HELD / max(share, 1e-9), "≥ 1", share <= HELD)
