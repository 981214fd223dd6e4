"""Measures what metrics cost a hundred operators on Ray that always have work and are scraped every second.

Counting is timed by the processor time inside its calls: two whole runs differ by more than counting costs. The
benchmark counts steps a second on Ray, and checks there that scrapes are complete. The exporter runs in a process of
its own.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median, median_low
from typing import Any, NamedTuple

from benchmarks.live.client_process import start_child
from benchmarks.live.deployments import FOLDER, deploy, many_operators, run_ray
from benchmarks.queries.bids import one_stream
from benchmarks.report import BenchmarkRow
from benchmarks.timing import measure_time
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from actors.metrics.exporter import build_families
from dsms.config.live import LiveConfig, apply_live_defaults
from dsms.data.batch import Batch
from dsms.data.journal import Journal
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.live.domain import Domain
from dsms.live.monitor.metrics import Samples
from dsms.live.query_set import QuerySet
from dsms.plan.segment import Segment

OPERATORS, FRAME, FRAMES = 102, 1_000, 300  # a step of an operator takes a frame, or several that wait together
MANY = 1_500  # frames pushed on Ray
SCRAPE_INTERVAL_S = 1.0
REPETITIONS = 5
CPU_SHARE_LIMIT = 0.02  # of the time
ALL = ("dsms_queue_tuples{", "dsms_tuple_latency_seconds_bucket{", "dsms_memory_bound_tuples{")


def samples(domain: Domain) -> Samples:
    """Return all metrics of a domain, read in its own thread."""
    return domain._metrics.measure(domain.monitor, domain.engine, domain._admission.state_bytes())


def metrics(repetitions: int = REPETITIONS, frames: int = MANY) -> Iterator[BenchmarkRow]:
    """Measure the share of time that a domain spends on its metrics, and the exporter's time beside it."""
    many, single = (median_low(measure_counting(at_once) for _ in range(repetitions)) for at_once in (FRAMES, 1))
    domain = make_used_domain()
    asked = median(measure_time(lambda: samples(domain))[0] for _ in range(repetitions))
    registry = CollectorRegistry()
    registry.register(FixedCollector(samples(domain)))
    shown = median(measure_time(lambda: generate_latest(registry))[0] for _ in range(repetitions))
    steps = steps_a_second(frames)
    cost = many.each * steps + asked / SCRAPE_INTERVAL_S
    what = f"metrics of {OPERATORS} operators, scraped every second: of a domain's time on Ray"
    said = f"{cost:.2%}: {many.each * 1e6:.1f} µs a step, {asked * 1e3:.1f} ms a scrape"
    yield BenchmarkRow(
        what,
        said,
        f"{CPU_SHARE_LIMIT:.0%} at {steps:,.0f} steps/s",
        CPU_SHARE_LIMIT / cost,
        "≥ 1",
        cost <= CPU_SHARE_LIMIT,
    )
    what = f"counting, in this process, always busy, {FRAME} rows a step: of all processor time"
    for how, found in (("many steps a turn", many), ("one", single)):
        said = f"{found.part:.1%}: {found.each * 1e6:.1f} µs a step"
        yield BenchmarkRow(f"{what}, {how}", said, f"{CPU_SHARE_LIMIT:.0%}", CPU_SHARE_LIMIT / found.part)
    yield BenchmarkRow(
        "the exporter's text for Prometheus", f"{shown * 1e3:.1f} ms a scrape", "1 s", SCRAPE_INTERVAL_S / shown
    )


class CountingCost(NamedTuple):
    """Processor time that counting takes."""

    each: float  # seconds a step
    part: float  # of all


class TimedObserver(Observer):
    """Times the calls to another observer; reading the clock is counted too, so the figure is a little high."""

    trusted = True

    def __init__(self, inner: Observer) -> None:
        self._inner, self.seconds = inner, 0.0

    def attach(self, engine: Engine) -> None:
        self._inner.attach(engine)

    def read(self, journal: Journal) -> None:
        self._clocked(self._inner.read, journal)

    def arrive(self, now: float, stream: int, count: int) -> None:
        self._clocked(self._inner.arrive, now, stream, count)

    def begin(self, now: float) -> None:
        self._clocked(self._inner.begin, now)

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        self._clocked(self._inner.turn, start, segment, steps)

    def _clocked(self, call: Callable[..., None], *arguments: Any) -> None:
        begun = time.thread_time()
        call(*arguments)
        self.seconds += time.thread_time() - begun


class FixedCollector(Collector):
    """Collects the same samples at every scrape."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        return build_families(self._samples)


def measure_counting(at_once: int) -> CountingCost:
    """Time counting when `at_once` frames arrive together; on Ray they do, as a slice is longer than a frame takes."""
    domain = _domain()
    watch, engine = domain.monitor, domain.engine
    clocked = [TimedObserver(observer) for observer in (watch.decision_stats, watch.times, watch.bound)]
    for one in (watch.decision_stats, watch.times, watch.bound):
        engine.unwatch(one)
    engine.watch(*clocked)
    frames = [Batch.of(columns) for columns in one_stream(FRAME * FRAMES, FRAME).bids]
    seconds, _ = measure_time(lambda: _push_through(domain, frames, at_once))
    accounts = watch.times.accounts.values()
    steps = sum(sum(account.waits.counts) for account in accounts)
    assert steps >= OPERATORS
    assert max(account.taken for account in accounts) == FRAMES * FRAME
    spent = sum(one.seconds for one in clocked)
    return CountingCost(spent / steps, spent / seconds)


def make_used_domain() -> Domain:
    """Return a domain that has processed a frame."""
    domain = _domain()
    _push_through(domain, [Batch.of(columns) for columns in one_stream(FRAME, FRAME).bids], 1)
    return domain


def steps_a_second(frames: int) -> float:
    """Count steps of a system on Ray, scraped every second, that gets small frames as fast as it admits them."""
    with run_ray(), start_child() as caller, deploy(many_operators(OPERATORS // 3), "metered", metrics=0) as system:
        address, over = system.status().metrics, threading.Event()
        caller.ask("pushed", system.address, FRAME, FRAME)  # so that all have been called once
        begun = time.monotonic()
        scrapes = ThreadPoolExecutor(1).submit(_scrape, address, over)
        caller.ask("pushed", system.address, FRAME * frames, FRAME)
        while system.domain().held:
            time.sleep(0.05)
        seconds = time.monotonic() - begun
        over.set()
        texts = scrapes.result()
        assert len(texts) >= 2 or frames < MANY, "the run ended before the first scrape"
        assert all(name in text for text in texts for name in ALL)
        return _count_steps(texts[-1]) / seconds


def _count_steps(text: str) -> float:
    """Count the steps in a scrape: each step has waited for its turn once."""
    lines = [line for line in text.splitlines() if line.startswith("dsms_queue_wait_seconds_count{")]
    assert len(lines) == OPERATORS
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def _scrape(address: str, over: threading.Event) -> list[str]:
    """Scrape all metrics every second, and once more at the end."""
    texts = []
    last = False
    while not last:
        last = over.wait(SCRAPE_INTERVAL_S)
        with urllib.request.urlopen(address, timeout=10) as answer:
            texts.append(answer.read().decode())
    return texts


def _domain() -> Domain:
    setup = LiveConfig()
    table = apply_live_defaults(many_operators(OPERATORS // 3), setup)
    return Domain("0", QuerySet(table, FOLDER), setup, sink=lambda query, batch: None)


def _push_through(domain: Domain, frames: list[Batch], at_once: int) -> None:
    for place, frame in enumerate(frames, start=1):
        domain.engine.push("bids", frame)
        if place % at_once == 0:
            domain.engine.run()
    domain.engine.fold()
