"""What being measured costs a hundred operators on Ray that always have work and are scraped every second.

What counting adds to a turn is measured in this process, with it and without it by turns; how many turns there are in a
second, and that scrapes bring all, on Ray. What the exporter takes is in a process of its own.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from benchmarks.bids import one_stream
from benchmarks.caller import calling
from benchmarks.deployed import FOLDER, deployed, many_operators, own_ray
from benchmarks.report import Row
from benchmarks.timing import interleaved, timed

from actors.exporter import families
from dsms.batch import Batch
from dsms.live.domain import Domain, measured
from dsms.live.roster import Roster
from dsms.live.setup import Setup

OPERATORS, FRAME, FRAMES = 102, 10_000, 50
SMALL, MANY = 1_000, 1_500  # rows of a frame on Ray, and frames
EVERY = 1.0  # seconds between two scrapes
REPETITIONS = 7
MOST = 0.02  # of the time
ALL = ("dsms_queue_tuples{", "dsms_tuple_latency_seconds_bucket{", "dsms_memory_bound_tuples{")


def metrics() -> Iterator[Row]:
    """The part of the time that a domain spends on its metrics, and what the exporter takes beside it."""
    times = interleaved({"with": lambda: worked(True), "without": lambda: worked(False)}, REPETITIONS)
    counting = max(0.0, times["with"].median - times["without"].median)
    domain = filled()
    asked = median(timed(lambda: domain._metrics.samples(domain.watch, domain.engine))[0] for _ in range(9))
    samples = domain._metrics.samples(domain.watch, domain.engine)
    shown = median(timed(lambda: list(families(samples)))[0] for _ in range(9))
    turns = turns_a_second()
    cost = counting * turns + asked / EVERY
    what = f"metrics of {OPERATORS} operators, scraped every second: of a domain's time"
    said = f"{cost:.2%}: {counting * 1e6:.1f} µs a turn, {asked * 1e3:.1f} ms a scrape"
    yield Row(what, said, f"{MOST:.0%} at {turns:,.0f} turns/s", MOST / cost, "≥ 1", cost <= MOST)
    yield Row("the same, families for Prometheus", f"{shown * 1e3:.1f} ms a scrape", "1 s", EVERY / shown)


def worked(counted: bool) -> float:
    """Processor time of a turn."""
    domain = _domain()
    if not counted:
        for observer in (domain.watch.decided, domain.watch.times, domain.watch.bound):
            domain.engine.unwatch(observer)
    frames = [Batch.of(columns) for columns in one_stream(FRAME * FRAMES, FRAME).bids]
    seconds, _ = timed(lambda: _through(domain, frames))
    turns = domain.watch.status(domain.engine)["turns"]
    assert turns >= FRAMES * OPERATORS
    return seconds / turns


def filled() -> Domain:
    """A domain that has done something."""
    domain = _domain()
    _through(domain, [Batch.of(columns) for columns in one_stream(FRAME, FRAME).bids])
    return domain


def turns_a_second() -> float:
    """Of a system on Ray while rows come as fast as it takes them, in small frames, and it is scraped every second."""
    with own_ray(), calling() as caller, deployed(many_operators(OPERATORS // 3), "metered", metrics=0) as system:
        address, over = system.status()["metrics"], threading.Event()
        caller.ask("pushed", system.address, SMALL, SMALL)  # so that all have been called once
        before, begun = system.domain()["turns"], time.monotonic()
        scrapes = ThreadPoolExecutor(1).submit(_scraped, address, over)
        caller.ask("pushed", system.address, SMALL * MANY, SMALL)
        while system.domain()["held"]:
            time.sleep(0.05)
        turns, seconds = system.domain()["turns"] - before, time.monotonic() - begun
        over.set()
        assert all(name in text for text in scrapes.result() for name in ALL)
        assert len(scrapes.result()) >= 2, "too short to be scraped"
        return float(turns) / seconds


def _scraped(address: str, over: threading.Event) -> list[str]:
    """What somebody got who asked for all metrics every second."""
    found = []
    while not over.wait(EVERY):
        with urllib.request.urlopen(address, timeout=10) as answer:
            found.append(answer.read().decode())
    return found


def _domain() -> Domain:
    setup = Setup()
    table = measured(many_operators(OPERATORS // 3), setup)
    return Domain("0", Roster(table, FOLDER), setup, sink=lambda query, batch: None)


def _through(domain: Domain, frames: list[Batch]) -> None:
    for frame in frames:
        domain.engine.push("bids", frame)
        domain.engine.run()
