"""What being measured costs a hundred operators on Ray that always have work and are scraped every second.

Counting is timed where it happens, by the processor time inside its calls: what else a machine does to two runs is more
than they differ by. How many steps there are in a second, and that scrapes bring all, is seen on Ray. What the
exporter takes is in a process of its own.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any, NamedTuple

from benchmarks.bids import one_stream
from benchmarks.caller import calling
from benchmarks.deployed import FOLDER, deployed, many_operators, own_ray
from benchmarks.report import Row
from benchmarks.timing import timed
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from actors.exporter import families
from dsms.batch import Batch
from dsms.engine import Engine
from dsms.journal import Journal
from dsms.live.domain import Domain, measured
from dsms.live.metrics import Samples
from dsms.live.roster import Roster
from dsms.live.setup import Setup
from dsms.observers import Observer
from dsms.runners.base import Step
from dsms.segment import Segment

OPERATORS, FRAME, FRAMES = 102, 1_000, 300  # a frame is a step of every operator
MANY = 1_500  # frames on Ray
EVERY = 1.0  # seconds between two scrapes
REPETITIONS = 5
MOST = 0.02  # of the time
ALL = ("dsms_queue_tuples{", "dsms_tuple_latency_seconds_bucket{", "dsms_memory_bound_tuples{")


def samples(domain: Domain) -> Samples:
    """All that a domain measures, asked from where it would be."""
    return domain._metrics.samples(domain.watch, domain.engine, domain._entrance.state())


def metrics() -> Iterator[Row]:
    """The part of the time that a domain spends on its metrics, and what the exporter takes beside it."""
    many, single = (median(counting(at_once) for _ in range(REPETITIONS)) for at_once in (FRAMES, 1))
    domain = filled()
    asked = median(timed(lambda: samples(domain))[0] for _ in range(REPETITIONS))
    registry = CollectorRegistry()
    registry.register(Shown(samples(domain)))
    shown = median(timed(lambda: generate_latest(registry))[0] for _ in range(REPETITIONS))
    steps = steps_a_second()
    cost = many.each * steps + asked / EVERY
    what = f"metrics of {OPERATORS} operators, scraped every second: of a domain's time on Ray"
    said = f"{cost:.2%}: {many.each * 1e6:.1f} µs a step, {asked * 1e3:.1f} ms a scrape"
    yield Row(what, said, f"{MOST:.0%} at {steps:,.0f} steps/s", MOST / cost, "≥ 1", cost <= MOST)
    what = f"counting, in this process, always busy, {FRAME} rows a step: of all processor time"
    for how, found in (("many steps a turn", many), ("one", single)):
        said = f"{found.part:.1%}: {found.each * 1e6:.1f} µs a step"
        yield Row(f"{what}, {how}", said, f"{MOST:.0%}", MOST / found.part)
    yield Row("the exporter's text for Prometheus", f"{shown * 1e3:.1f} ms a scrape", "1 s", EVERY / shown)


class Counting(NamedTuple):
    """Processor time that counting takes."""

    each: float  # seconds a step
    part: float  # of all


class Clocked(Observer):
    """Another observer, and the processor time inside its calls: a little too much, as looking at the clock counts."""

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


class Shown(Collector):
    """The same samples whenever they are asked for."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        return families(self._samples)


def counting(at_once: int) -> Counting:
    """Of frames that come so many at once: on Ray there are many, as a turn's slice is longer than a frame takes."""
    domain = _domain()
    watch, engine = domain.watch, domain.engine
    clocked = [Clocked(observer) for observer in (watch.decided, watch.times, watch.bound)]
    for one in (watch.decided, watch.times, watch.bound):
        engine.unwatch(one)
    engine.watch(*clocked)
    frames = [Batch.of(columns) for columns in one_stream(FRAME * FRAMES, FRAME).bids]
    seconds, _ = timed(lambda: _through(domain, frames, at_once))
    steps = sum(sum(account.waits) for account in watch.times.accounts.values())
    assert steps == FRAMES * OPERATORS
    spent = sum(one.seconds for one in clocked)
    return Counting(spent / steps, spent / seconds)


def filled() -> Domain:
    """A domain that has done something."""
    domain = _domain()
    _through(domain, [Batch.of(columns) for columns in one_stream(FRAME, FRAME).bids], 1)
    return domain


def steps_a_second() -> float:
    """Of a system on Ray while rows come as fast as it takes them, in small frames, and it is scraped every second."""
    with own_ray(), calling() as caller, deployed(many_operators(OPERATORS // 3), "metered", metrics=0) as system:
        address, over = system.status()["metrics"], threading.Event()
        caller.ask("pushed", system.address, FRAME, FRAME)  # so that all have been called once
        begun = time.monotonic()
        scrapes = ThreadPoolExecutor(1).submit(_scraped, address, over)
        caller.ask("pushed", system.address, FRAME * MANY, FRAME)
        while system.domain()["held"]:
            time.sleep(0.05)
        seconds = time.monotonic() - begun
        over.set()
        found = scrapes.result()
        assert len(found) >= 2, "too short to be scraped"
        assert all(name in text for text in found for name in ALL)
        return _steps(found[-1]) / seconds


def _steps(text: str) -> float:
    """Every step has waited for its turn."""
    lines = [line for line in text.splitlines() if line.startswith("dsms_queue_wait_seconds_count{")]
    assert len(lines) == OPERATORS
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def _scraped(address: str, over: threading.Event) -> list[str]:
    """What somebody got who asked for all metrics every second."""
    found = []
    last = False
    while not last:
        last = over.wait(EVERY)
        with urllib.request.urlopen(address, timeout=10) as answer:
            found.append(answer.read().decode())
    return found


def _domain() -> Domain:
    setup = Setup()
    table = measured(many_operators(OPERATORS // 3), setup)
    return Domain("0", Roster(table, FOLDER), setup, sink=lambda query, batch: None)


def _through(domain: Domain, frames: list[Batch], at_once: int) -> None:
    for place, frame in enumerate(frames, start=1):
        domain.engine.push("bids", frame)
        if place % at_once == 0:
            domain.engine.run()
    domain.engine.fold()
