"""A deployment under load: policies are swapped, queries added, removed and moved; each result comes once, in order."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from benchmarks.live import swaps
from support.live.in_process_domain import CuttingProxy

import dsms
from actors.control.deploy import up
from actors.deployment.actor_handles import wait_until
from actors.rpc.messages import get_result, send
from dsms.errors import DsmsError

pytestmark = pytest.mark.ray

STREAM = {"schema": {"id": "int64", "k": "int64", "at": "int64"}, "timestamp": "at"}
QUERIES = {
    "all": "SELECT id FROM a",
    "third": "SELECT id FROM a WHERE id % 3 = 0",
    "met": "SELECT ISTREAM(a.id AS id) FROM a [RANGE 200 MICROSECONDS], b [RANGE 200 MICROSECONDS] WHERE a.id = b.id",
    "groups": "SELECT k AS id, count(*) AS n FROM b [RANGE 300 MICROSECONDS] GROUP BY k",
}
ROWS = 20
WAIT = 60.0


def asked(*names):
    return {
        "streams": {"a": STREAM, "b": STREAM},
        "queries": {name: {"cql": QUERIES.get(name, QUERIES["all"])} for name in names},
    }


class LoadedDeployment:
    """A deployment with two domains and two gateways, its results, and the pushed rows."""

    def __init__(self, ray, folder):
        setup = {"live": {"domains": 2, "actors": 3, "gateways": 2, "port": 0}}
        self._get = ray.get
        self.handle = up(asked(*QUERIES) | setup, str(folder), "p.toml", "load")
        self.doors = self.ask("identity")["gateways"]
        self.rows = 0
        self.clients = [dsms.connect(door) for door in self.doors]
        self.found, self.numbers = {}, {}
        for place, query in enumerate(QUERIES):
            self.read(query, self.clients[place % 2])

    def ask(self, method, *arguments):
        return self._get(getattr(self.handle, method).remote(*arguments), timeout=WAIT)

    def read(self, query, client):
        self.found[query], self.numbers[query] = [], []

        def take(batch):
            columns = [batch.columns[name].tolist() for name in batch.columns]
            self.found[query] += zip(batch.each("sign").tolist(), *columns, strict=True)
            self.numbers[query].append(batch.number)

        client.subscribe(query, 0, take)

    def push(self, client=None):
        """Push the next rows to both streams, through alternating gateways."""
        client = client or self.clients[self.rows // ROWS % 2]
        for stream in "ab":
            client.push(stream, rows_from(self.rows))
        self.rows += ROWS
        client.flush(WAIT)

    def where(self):
        """By query: its domain."""
        return {q.name: d.domain for d in self.ask("status").domains for q in d.queries}

    def wait_for(self, query, count):
        """Wait for `count` results of a query."""
        wait_until(lambda: len(self.found[query]) >= count, WAIT)

    def wait_for_last(self, query):
        """Wait for the result of the last row pushed."""
        wait_until(lambda: self.found[query][-1][1] == self.rows - 1, WAIT)

    def check(self, *queries):
        """Check that results equal those of one process and are numbered without gaps."""
        wanted = inline(queries, self.rows)
        for query in queries:
            self.wait_for(query, len(wanted[query]))
            assert Counter(self.found[query]) == Counter(wanted[query]), query
            assert self.numbers[query] == list(range(1, 1 + len(self.numbers[query]))), query
        for query in {"all", "third", "met"} & set(queries):
            assert self.found[query] == wanted[query]


def rows_from(first):
    ids = np.arange(first, first + ROWS)
    return {"id": ids, "k": ids % 5, "at": 10 * ids}


def inline(queries, rows):
    """The results of these queries for this number of rows, in one process."""
    found = {query: [] for query in queries}

    def sink(query, batch):
        columns = [batch.columns[name].tolist() for name in batch.columns]
        found[query] += zip(batch.each("sign").tolist(), *columns, strict=True)

    plan = dsms.plan_from(asked(*queries))
    engine = dsms.Engine(plan, dsms.policy_named("fifo"), clock=dsms.WallClock(), sink=sink)
    for first, stream in itertools.product(range(0, rows, ROWS), "ab"):
        engine.push(stream, dsms.Batch.of(rows_from(first)))
    engine.run()
    return found


@pytest.fixture(scope="module")
def live(ray_cluster, tmp_path_factory):
    found = LoadedDeployment(ray_cluster, tmp_path_factory.mktemp("load"))
    yield found
    for client in found.clients:
        client.close()
    found.ask("down")


@contextmanager
def deployed(ray, table, folder, name):
    handle = up(table, str(folder), "p.toml", name)
    try:
        yield handle
    finally:
        get_result(send(handle.down))


class Pushing:
    """Pushes rows in a thread while the context is open."""

    def __init__(self, live):
        self._live, self._over = live, threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self):
        try:
            while not self._over.is_set():
                self._live.push()
        except Exception as error:
            self._failure = error


def test_policies_swapped_under_load_lose_duplicate_and_reorder_nothing(ray_cluster, tmp_path):
    with deployed(ray_cluster, swaps.table("paced"), tmp_path, "swaps") as handle:
        address = get_result(send(handle.identity))["gateways"][0]
        found = swaps.run_swaps(handle, address, 24, 5.0)
    assert np.median(found.seconds) < 5 * swaps.SWAP_LIMIT_S  # loose: the machine is busy, the benchmark measures it


def test_queries_move_back_and_forth_while_rows_come_in_and_lose_nothing(live):
    """A join and a group-by with state and queues; `a` and `b` are read in both domains on the way."""
    with Pushing(live):
        for _, query in itertools.product(range(4), ("met", "groups")):
            home = live.where()[query]
            moved = live.ask("move", query, str(1 - int(home)))
            assert (moved["from"], moved["to"]) == (home, str(1 - int(home)))
            assert live.where()[query] != home
    live.check(*QUERIES)


def test_queries_are_added_and_removed_under_load_and_others_are_unaffected(live):
    begun = live.rows
    with Pushing(live):
        for number in range(3):
            name = f"more{number}"
            assert live.ask("add", asked(name), "", "") == [name]
            live.read(name, live.clients[number % 2])
            live.wait_for(name, 2 * ROWS + 1)
        live.ask("remove", "more0")
    live.check(*QUERIES)
    for name in ("more1", "more2"):
        live.wait_for_last(name)
        ids = [row[1] for row in live.found[name]]
        assert ids == list(range(ids[0], live.rows))
        assert ids[0] >= begun
        assert ids[0] % ROWS == 0
    ids = [row[1] for row in live.found["more0"]]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    for name in ("more1", "more2"):
        live.ask("remove", name)


def test_a_query_added_again_continues_its_numbers(live):
    live.ask("add", asked("again"), "", "")
    live.read("again", live.clients[0])
    live.push()
    assert wait_until(lambda: len(live.found["again"]) >= ROWS, WAIT)
    live.ask("remove", "again")
    live.ask("add", asked("again"), "", "")
    live.push()
    assert wait_until(lambda: len(live.found["again"]) >= 2 * ROWS, WAIT)
    numbers = live.numbers["again"]
    assert numbers == list(range(1, 1 + len(numbers)))
    assert [row[1] for row in live.found["again"]][-ROWS:] == list(range(live.rows - ROWS, live.rows))
    live.ask("remove", "again")
    live.check(*QUERIES)


def test_control_commands_under_load_change_no_result(live):
    with Pushing(live):
        for number in range(3):
            live.ask("pause")
            live.ask("weigh", "third", 1.0 + number)
            live.ask("require", "memory=0.4,delay=0.6")
            live.ask("swap", ("fas-mcq", "chain", "adaptive")[number])
            assert {domain.state for domain in live.ask("status").domains} == {"paused"}
            live.ask("resume")
    live.check(*QUERIES)
    assert live.ask("why", 2)


def test_a_client_whose_connection_breaks_loses_and_duplicates_nothing(live):
    cutter = CuttingProxy(live.doors[0], up=itertools.cycle([2_000, 3_000]), down=itertools.cycle([3_000, 4_000]))
    with dsms.connect(cutter.address, producer="unlucky") as client:
        for _ in range(15):
            live.push(client)
    cutter.close()
    assert cutter.cuts > 2
    live.check(*QUERIES)


BROKEN = {
    "streams": {"s": {"schema": {"id": "int64"}}},
    "queries": {
        "q": {
            "from": "s",
            "operators": [
                {"name": "first", "function": lambda batch: batch.columns["id"] >= 0},
                {"name": "bad", "function": lambda batch: batch.columns["id"] >= 1 // int(batch.columns["id"].min())},
            ],
        }
    },
    "live": {"actors": 2, "port": 0, "policy": "rr-query"},
    "run": {"on_error": "fail"},
}


@pytest.mark.parametrize("how", ["an operator raises", "a host dies"])
def test_a_turn_that_cannot_end_fails_its_domain_within_seconds(ray_cluster, tmp_path, how):
    """In the second of two hosts, to which the grant was forwarded."""
    name = how.replace(" ", "-")
    with (
        deployed(ray_cluster, BROKEN, tmp_path, name) as handle,
        dsms.connect(get_result(send(handle.identity))["gateways"][0]) as client,
    ):
        with client.subscribe("q", 0) as results:
            client.push("s", {"id": [1]})
            assert results.next(WAIT).columns["id"].tolist() == [1]
        if how == "a host dies":
            host = ray_cluster.get_actor(f"dsms:{name}:host-0-1", namespace="dsms")
            ray_cluster.kill(host)
        else:
            client.push("s", {"id": [0]})
            client.flush(WAIT)

        def domain():
            return get_result(send(handle.status)).domains[0]

        def failed():
            if how == "a host dies":  # takes a moment: until then rows pass
                with suppress(DsmsError):
                    client.push("s", {"id": [1]})
            return domain().state == "failed"

        assert wait_until(failed, 10)
        with suppress(DsmsError):
            client.flush(WAIT)  # frames refused meanwhile are reported once
        reason = "operator 'bad' raised ZeroDivisionError" if how == "an operator raises" else "a process is gone"
        assert domain().error.startswith(f"OperatorError: {reason}")
        client.push("s", {"id": [2]})
        with pytest.raises(DsmsError, match="domain '0' has failed and accepts no calls"):
            client.flush(WAIT)
