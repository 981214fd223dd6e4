"""Makes domains on hosts in this process, saves and restores them, and numbers their results."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from actors.hosts.host_pool import HostPool
from actors.hosts.runner import ActorRunner
from actors.hosts.state_copy import StateCopy, load_state_copy
from actors.rpc.messages import deserialize, serialize
from dsms.config.live import LiveConfig
from dsms.data.batch import Batch
from dsms.live.domain import Domain
from dsms.live.log_batch import LogBatch, LogItem
from dsms.live.query_set import QuerySet

STREAM = {"schema": {"id": "int64", "k": "int64", "at": "int64"}, "timestamp": "at"}
TABLE: dict[str, Any] = {
    "streams": {"a": STREAM, "b": STREAM},
    "queries": {
        "met": {"cql": "SELECT ISTREAM(a.id AS a, b.id AS b) FROM a [ROWS 9], b [ROWS 9] WHERE a.k = b.k"},
        "groups": {"cql": "SELECT k, count(*) AS n FROM a [RANGE 50 MICROSECONDS] GROUP BY k"},
        "left": {"cql": "SELECT id FROM a EXCEPT SELECT id FROM b"},
    },
}


class NumberedResults:
    """A result hub that keeps all results by query and number."""

    def __init__(self):
        self.results = {}

    def take(self, results):
        for query, number, batch in results:
            self.results[query, number] = batch

    def status(self):
        return {}

    def rows(self, upto):
        """Return each query's rows after the results up to these numbers."""
        found = {query: Counter() for query in TABLE["queries"]}
        for (query, number), batch in sorted(self.results.items(), key=lambda item: item[0]):
            if number <= upto[query]:
                columns = zip(*(batch.columns[name].tolist() for name in batch.columns), strict=True)
                for sign, row in zip(batch.each("sign").tolist(), columns, strict=True):
                    found[query][row] += sign
        return {query: +rows for query, rows in found.items()}


@contextmanager
def domain_on(hosts, taken, query_set=None, policy="fifo", **live):
    fleet, setup = HostPool(hosts, taken, sockets=True), LiveConfig(policy=policy, durable="d", **live)
    found = Domain("0", query_set or QuerySet(TABLE), setup, runner=partial(ActorRunner, host_pool=fleet))
    found.start()
    try:
        yield found
    finally:
        found.close()


def delivery(after, count):
    """The next rows of both streams, as one entry of a log each; an entry has as many offsets as rows."""
    items = []
    for place, stream in enumerate("ab"):
        ids = np.arange(after, after + count) * (1 if stream == "a" else 2)
        offset = 2 * after + (1 + place) * count
        items.append(LogItem(offset, stream, Batch.of({"id": ids, "k": ids % 3, "at": ids * 10})))
    return LogBatch("g", 2 * after, 2 * (after + count), items)


def end(after):
    """The end of both streams after this many rows of each."""
    return LogBatch("g", 2 * after, 2 * after, ends=True)


def settled(domain):
    """Process all rows; return the number of the last results by query."""
    return domain.ask(lambda: (domain.engine.run(), dict(domain.engine.runner.results))[1]).result()


def saved(domain, hosts):
    """Take a snapshot, as it is written to disk."""
    snapshot, pause = domain.snapshot(lambda: domain.engine.runner.copy_state())
    assert pause >= 0
    parts = [
        StateCopy.read({n: bytearray(d) for n, d in host.fetch_state_copy().sections("h").items()}, "h")
        for host in hosts
    ]
    return serialize(snapshot), parts


def restored(domain, data):
    snapshot, parts = deserialize(data[0]), data[1]
    domain.restore(snapshot, {name: state for part in parts for name, state in load_state_copy(part).items()})
    return snapshot
