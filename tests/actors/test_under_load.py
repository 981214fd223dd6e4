"""A deployment under load: swapped, steered, its queries coming, going and moving; every result once and in order."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from benchmarks import swaps
from live_parts import Cutter

import dsms
from actors import parts
from actors.deployment import up
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


class Live:
    """A deployment with two domains and two gateways, all results of its queries, and the rows that were pushed."""

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
        """The next rows into both streams, by one gateway or by the other."""
        client = client or self.clients[self.rows // ROWS % 2]
        for stream in "ab":
            client.push(stream, rows_from(self.rows))
        self.rows += ROWS
        client.flush(WAIT)

    def where(self):
        """By query: its domain."""
        return {q["name"]: d["domain"] for d in self.ask("status")["domains"] for q in d["queries"]}

    def check(self, *queries):
        """All rows pushed so far gave the same results as in one process, numbered without gaps."""
        wanted = inline(queries, self.rows)
        for query in queries:
            parts.wait_for(lambda query=query: len(self.found[query]) >= len(wanted[query]), WAIT)
            assert Counter(self.found[query]) == Counter(wanted[query]), query
            assert self.numbers[query] == list(range(1, 1 + len(self.numbers[query]))), query
        for query in {"all", "third", "met"} & set(queries):
            assert self.found[query] == wanted[query]


def rows_from(first):
    ids = np.arange(first, first + ROWS)
    return {"id": ids, "k": ids % 5, "at": 10 * ids}


def inline(queries, rows):
    """What these queries make of so many rows in one process."""
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
    found = Live(ray_cluster, tmp_path_factory.mktemp("load"))
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
        ray.get(handle.down.remote())


class Pushing:
    """Rows are pushed all the time while this lasts."""

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


def test_policies_swapped_under_load_lose_double_and_reorder_nothing(ray_cluster, tmp_path):
    with deployed(ray_cluster, swaps.table("paced"), tmp_path, "swaps") as handle:
        address = ray_cluster.get(handle.identity.remote())["gateways"][0]
        found = swaps.swapped(handle, address, 24, 5.0)
    assert np.median(found.seconds) < 5 * swaps.GOAL  # others use the machine now: the benchmark says more


def test_queries_move_back_and_forth_while_rows_come_in_and_lose_nothing(live):
    """A join and a group-by with state and queues; `a` and `b` are read in both domains on the way."""
    with Pushing(live):
        for _, query in itertools.product(range(4), ("met", "groups")):
            home = live.where()[query]
            moved = live.ask("move", query, str(1 - int(home)))
            assert (moved["from"], moved["to"]) == (home, str(1 - int(home)))
            assert live.where()[query] != home
    live.check(*QUERIES)


def test_queries_come_and_go_while_rows_come_in_and_others_notice_nothing(live):
    begun = live.rows
    with Pushing(live):
        for number in range(3):
            name = f"more{number}"
            assert live.ask("add", asked(name), "", "") == [name]
            live.read(name, live.clients[number % 2])
            parts.wait_for(lambda name=name: len(live.found[name]) > 2 * ROWS, WAIT)
        live.ask("remove", "more0")
    live.check(*QUERIES)
    for name in ("more1", "more2"):
        parts.wait_for(lambda name=name: live.found[name][-1][1] == live.rows - 1, WAIT)
        ids = [row[1] for row in live.found[name]]
        assert ids == list(range(ids[0], live.rows))
        assert ids[0] >= begun
        assert ids[0] % ROWS == 0
    ids = [row[1] for row in live.found["more0"]]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    for name in ("more1", "more2"):
        live.ask("remove", name)


def test_a_query_that_comes_again_goes_on_with_its_numbers(live):
    live.ask("add", asked("again"), "", "")
    live.read("again", live.clients[0])
    live.push()
    assert parts.wait_for(lambda: len(live.found["again"]) >= ROWS, WAIT)
    live.ask("remove", "again")
    live.ask("add", asked("again"), "", "")
    live.push()
    assert parts.wait_for(lambda: len(live.found["again"]) >= 2 * ROWS, WAIT)
    numbers = live.numbers["again"]
    assert numbers == list(range(1, 1 + len(numbers)))
    assert [row[1] for row in live.found["again"]][-ROWS:] == list(range(live.rows - ROWS, live.rows))
    live.ask("remove", "again")
    live.check(*QUERIES)


def test_what_is_steered_while_rows_come_in_changes_no_result(live):
    with Pushing(live):
        for number in range(3):
            live.ask("pause")
            live.ask("weigh", "third", 1.0 + number)
            live.ask("require", "memory=0.4,delay=0.6")
            live.ask("swap", ("fas-mcq", "chain", "adaptive")[number])
            assert {domain["state"] for domain in live.ask("status")["domains"]} == {"paused"}
            live.ask("resume")
    live.check(*QUERIES)
    assert live.ask("why", 2)


def test_a_client_whose_connection_breaks_while_it_pushes_loses_and_doubles_nothing(live):
    cutter = Cutter(live.doors[0], up=itertools.cycle([2_000, 3_000]), down=itertools.cycle([3_000, 4_000]))
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
    """In the second of two hosts, where the grant has travelled to."""
    name = how.replace(" ", "-")
    with (
        deployed(ray_cluster, BROKEN, tmp_path, name) as handle,
        dsms.connect(ray_cluster.get(handle.identity.remote())["gateways"][0]) as client,
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
            return ray_cluster.get(handle.status.remote())["domains"][0]

        def failed():
            if how == "a host dies":  # which takes a moment: until then rows pass
                with suppress(DsmsError):
                    client.push("s", {"id": [1]})
            return domain()["state"] == "failed"

        assert parts.wait_for(failed, 10)
        with suppress(DsmsError):
            client.flush(WAIT)  # what was refused meanwhile is told once
        reason = "operator 'bad' raised ZeroDivisionError" if how == "an operator raises" else "a process is gone"
        assert domain()["error"].startswith(f"OperatorError: {reason}")
        client.push("s", {"id": [2]})
        with pytest.raises(DsmsError, match="domain '0' has failed and takes nothing in"):
            client.flush(WAIT)
