"""Makes live domains in this process, pushes batches to them, and collects their results."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from actors.hosts.host import Host
from actors.hosts.host_pool import HostPool
from actors.hosts.runner import ActorRunner
from dsms.config.live import LiveConfig
from dsms.data.batch import Batch
from dsms.engine.runners import BatchRunner
from dsms.errors import DsmsError
from dsms.live.domain import Domain
from dsms.live.log_batch import LogBatch, LogItem
from dsms.live.query_set import QuerySet

STREAMS = {"s": {"schema": {"x": "int64"}}, "t": {"schema": {"x": "int64"}}}
ALL, EVEN, JOIN = (
    "SELECT x FROM s",
    "SELECT x FROM s WHERE x % 2 = 0",
    "SELECT ISTREAM(s.x) FROM s [ROWS 100], t [ROWS 100] WHERE s.x = t.x",
)
WAIT = 10.0  # seconds after which a test fails


def asked(**queries):
    """Return a plan table of queries in CQL."""
    return {"streams": STREAMS, "queries": {name: {"cql": text} for name, text in queries.items()}}


class ResultCollector:
    """Collects results, and lets tests wait for them: a sink, or a result hub that notes numbers too."""

    def __init__(self):
        self.rows, self.numbers = {}, {}
        self._came = threading.Condition()

    def __call__(self, query, batch):
        with self._came:
            self.rows.setdefault(query, []).extend(batch.columns["x"].tolist())
            self._came.notify_all()

    def take(self, results):
        for query, number, batch in results:
            self.numbers.setdefault(query, []).append(number)
            self(query, batch)

    def status(self):
        return {}

    def of(self, query, count):
        """Wait for `count` rows of a query, and return its rows."""
        with self._came:
            self._came.wait_for(lambda: len(self.rows.get(query, ())) >= count, WAIT)
            return list(self.rows.get(query, ()))


class PushedDomain(Domain):
    """A domain to which every thread pushes rows as a gateway does; with `saves`, a snapshot follows each push."""

    saves = False

    def admit(self, arrivals):
        self._apply(arrivals)

    def advance(self, stream, watermark):
        self._apply([(stream, watermark)])

    def end(self):
        self._apply([], ends=True)

    def _apply(self, contents, ends=False):
        gateway = f"thread {threading.get_ident()}"
        after = self.position(gateway)
        items = [LogItem(offset, stream, content) for offset, (stream, content) in enumerate(contents, after + 1)]
        refused = self.apply_log_batch(LogBatch(gateway, after, after + len(items), items, ends)).result()
        if refused:
            raise DsmsError(next(iter(refused.values())))
        if self.saves:
            with suppress(DsmsError):  # it may have failed meanwhile
                self.snapshot(getattr(self.engine.runner, "copy_state", lambda: None))


def fleet_of(hosts: int, outlet: Any = None, sockets: bool = False) -> HostPool:
    """Return a pool of plain hosts, called directly or through sockets as actors are."""
    return HostPool([Host() for _ in range(hosts)], outlet, sockets)


@contextmanager
def domain_of(table, results=None, hosts=None, name="0", **setup):
    """Run a domain in this process, or on hosts that are plain objects."""
    fleet = None if hosts is None else fleet_of(hosts, results, sockets=True)
    found = PushedDomain(
        name,
        QuerySet(table),
        LiveConfig(**setup),
        runner=BatchRunner if fleet is None else partial(ActorRunner, host_pool=fleet),
        sink=results if fleet is None else None,
    )
    found.start()
    try:
        yield found
    finally:
        found.close()


def batch(*values):
    return Batch.of({"x": np.array(values)})


def settled(domain):
    """Wait until nothing is queued, and return the status."""
    while True:
        status = domain.status()
        if not status.held or status.state != "running":
            return status


def failing(batch):
    if (batch.columns["x"] == 13).any():
        raise ValueError("no such luck")
    return batch.columns["x"] > 0


BROKEN = {
    "streams": STREAMS,
    "queries": {
        "q": {
            "from": "s",
            "operators": [
                {"name": "first", "function": lambda batch: batch.columns["x"] > -1},
                {"name": "bad", "function": failing},
            ],
        }
    },
}


def values(batch):
    """Return the values of column x."""
    return batch.columns["x"].tolist() if len(batch) else []


class Moody:
    """An operator that raises while `raises` is true."""

    def __init__(self):
        self.raises = True

    def __call__(self, batch):
        if self.raises:
            raise ValueError("not today")
        return batch
