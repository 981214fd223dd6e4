"""What being measured costs: a hundred operators that always have work, counted and scraped every second or not.

All in one process, so that whatever is spent on metrics, in whichever thread, is in its processor time.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.bids import one_stream
from benchmarks.deployed import FOLDER, many_operators
from benchmarks.report import Row
from benchmarks.timing import interleaved

from actors.exporter import Exporter, Source
from dsms.batch import Batch
from dsms.live.domain import Domain, measured
from dsms.live.roster import Roster
from dsms.live.setup import Setup

OPERATORS, FRAME, FRAMES = 102, 1_000, 400
EVERY = 1.0  # seconds between two scrapes
REPETITIONS = 5
MOST = 0.02  # of the time
ALL = ("dsms_queue_tuples", "dsms_tuple_latency_seconds_bucket", "dsms_memory_bound_tuples")


def metrics() -> Iterator[Row]:
    """Both by turns, and what a scrape takes by itself."""
    times = interleaved({"without": lambda: worked(False), "with": lambda: worked(True)}, REPETITIONS)
    with_, without = times["with"].median, times["without"].median
    cost = with_ / without - 1
    what = f"metrics of {OPERATORS} operators, scraped every second, of the time"
    yield Row(what, f"{cost:.1%}", f"{MOST:.0%}", MOST / max(cost, 1e-4), "≥ 1", cost <= MOST)


def worked(counted: bool) -> float:
    """Processor time for a row that goes to all queries."""
    load = one_stream(FRAME * FRAMES, FRAME)
    results = 0

    def sink(_: str, batch: Batch) -> None:
        nonlocal results
        results += len(batch)

    setup = Setup()
    table = measured(many_operators(OPERATORS // 3), setup)
    domain = Domain("0", Roster(table, FOLDER), setup, sink=sink)
    if not counted:
        for observer in (domain.watch.decided, domain.watch.times, domain.watch.bound):
            domain.engine.unwatch(observer)
    with ExitStack() as stack:
        stack.callback(domain.close)
        domain.start()
        scrapes = stack.enter_context(_scraping(domain)) if counted else []
        begun = time.process_time()
        for columns in load.bids:
            domain.arrived([("bids", Batch.of(columns))])
        while domain.ask(lambda: domain.engine.ledger.held).result():
            time.sleep(0.01)
        seconds = time.process_time() - begun
    assert results > 0
    assert not counted or all(name in text for name in ALL for text in scrapes)
    assert not counted or len(scrapes) >= seconds // EVERY - 1
    return seconds / FRAME / FRAMES


@contextmanager
def _scraping(domain: Domain) -> Iterator[list[str]]:
    """Somebody asks for all metrics every second; what they got."""
    exporter, over, found = Exporter("bench", "1", [Source("0", domain, "metrics")]), threading.Event(), list[str]()
    address = "http://{}:{}/metrics".format(*exporter.listen("127.0.0.1", 0))

    def scrape() -> None:
        while not over.wait(EVERY):
            with urllib.request.urlopen(address, timeout=10) as answer:
                found.append(answer.read().decode())

    thread = threading.Thread(target=scrape, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(10)
        exporter.close()
