"""A durable deployment of two domains and two gateways: actors are killed after every change, and results are right."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import ray

import dsms
from actors.cluster.cluster import NAMESPACE, PREFIX
from actors.control.deploy import up
from actors.deployment.actor_handles import wait_until
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError, PlanError

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]
WAIT = 120.0
ROWS, PAUSE = 100, 0.1  # rows of a frame, and seconds to the next one
STREAM = {"schema": {"id": "int64"}}
QUERIES = {
    "left": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "groups": "SELECT id % 7 AS k, count(*) AS n, sum(id) AS total FROM c GROUP BY id % 7",
    "thirds": "SELECT id FROM c WHERE id % 3 = 0",
}
TABLE = {
    "streams": dict.fromkeys("abc", STREAM),
    "queries": {name: {"cql": text, "sink": {"jsonl": f"{name}.jsonl"}} for name, text in QUERIES.items()},
}


def fifths(name: str, sink: str = "jsonl") -> dict[str, Any]:
    """A query that is added later."""
    return {"queries": {name: {"cql": "SELECT id FROM b WHERE id % 5 = 0", "sink": {sink: f"{name}.{sink}"}}}}


class ChangingSystem:
    """A deployment, a producer at each of its gateways, and a subscriber at the second."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        setup = LiveConfig(domains=2, gateways=2, actors=2, port=0, durable=str(folder / "durable"), checkpoint=1.0)
        self.handle = up(TABLE, str(folder), "p.toml", "changing", setup)
        gateway_addresses = self.ask("identity")["gateways"]
        self.pushed = dict.fromkeys("abc", 0)  # rows
        self.seen: dict[str, Counter[Any]] = {}
        self.numbers: dict[str, list[int]] = {}
        self.trouble: list[BaseException] = []
        self._over, self._counting = threading.Event(), threading.Lock()
        self._producers = [
            dsms.connect(door, producer=f"p{n}", patience=WAIT) for n, door in enumerate(gateway_addresses)
        ]
        self._reader = dsms.connect(gateway_addresses[1], patience=WAIT)
        for query in QUERIES:
            self.read(query)
        self._threads = [
            threading.Thread(target=self._push, args=each, daemon=True)
            for each in zip(self._producers, ("ac", "b"), strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def ask(self, method: str, *given: Any) -> Any:
        try:
            return ray.get(getattr(self.handle, method).remote(*given), timeout=WAIT)
        except ray.exceptions.RayTaskError as error:
            raise getattr(error, "cause", error) from None

    def where(self) -> dict[str, str]:
        """By query: its domain."""
        return {q.name: one.domain for one in self.ask("status").domains for q in one.queries}

    def strike(self, *names: str) -> None:
        """SIGKILL for actors, and wait until all are rebuilt."""
        count = self.ask("durability")["recoveries"]
        found = [ray.get_actor(f"{PREFIX}changing:{name}", namespace=NAMESPACE) for name in names]
        for process in ray.get([one.__ray_call__.remote(lambda _: os.getpid()) for one in found], timeout=WAIT):
            os.kill(process, signal.SIGKILL)
        assert wait_until(lambda: self.ask("durability")["recoveries"] > count, WAIT), self.ask("durability")

    def read(self, query: str) -> None:
        seen, numbers = self.seen.setdefault(query, Counter()), self.numbers.setdefault(query, [])

        def take(batch: Any) -> None:
            if batch.number not in numbers[-1:]:
                numbers.append(batch.number)
            with self._counting:
                for sign, *values in zip(batch.each("sign").tolist(), *_columns(batch), strict=True):
                    seen[tuple(values)] += sign

        self._reader.subscribe(query, 0, take)

    def subscribed(self, query: str) -> Counter[Any]:
        """The rows of a subscriber."""
        with self._counting:
            return +self.seen[query]

    def filed(self, query: str) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for line in (self.folder / f"{query}.jsonl").read_text().splitlines():
            row = json.loads(line)
            sign = row.pop("sign", 1)
            del row["ts"]
            found[tuple(row.values())] += sign
        return +found

    def finish(self) -> None:
        """Stop pushing, and wait for all acknowledgements."""
        self._over.set()
        for thread in self._threads:
            thread.join(WAIT)
        for producer in self._producers:
            producer.flush(WAIT)
        assert not self.trouble, self.trouble

    def close(self) -> None:
        self._over.set()
        for client in (*self._producers, self._reader):
            with suppress(DsmsError):
                client.close(1.0)
        self.ask("down")

    def _push(self, producer: Any, streams: str) -> None:
        try:
            while not self._over.wait(PAUSE):
                for stream in streams:
                    first = self.pushed[stream]
                    producer.push(stream, {"id": np.arange(first, first + ROWS)})
                    self.pushed[stream] = first + ROWS
        except BaseException as error:
            self.trouble.append(error)


def _columns(batch: Any) -> list[list[Any]]:
    return [batch.columns[name].tolist() for name in batch.columns]


def wanted(pushed: dict[str, int]) -> dict[str, Counter[Any]]:
    """The results of the queries that ran all the time."""
    groups = [(k, len(range(k, pushed["c"], 7)), sum(range(k, pushed["c"], 7))) for k in range(7)]
    return {
        "left": Counter((n,) for n in range(pushed["b"], pushed["a"])),
        "groups": Counter(groups),
        "thirds": Counter((n,) for n in range(0, pushed["c"], 3)),
    }


def gapless(found: Counter[Any]) -> bool:
    """Whether these are all multiples of 5 from the first one on, each once."""
    ids = sorted(n for (n,) in found)
    return ids == list(range(ids[0], ids[-1] + 1, 5)) and set(found.values()) == {1}


@pytest.fixture
def system(ray_cluster, tmp_path):
    found = ChangingSystem(tmp_path)
    yield found
    found.close()


def test_results_are_right_and_changes_stay_whichever_actor_is_killed(system):
    ask, folder = system.ask, str(system.folder)
    with pytest.raises(PlanError, match=r"queries.bad.sink: a Parquet file cannot be continued after a crash"):
        ask("add", fifths("bad", "parquet"), folder, "q.toml")
    before = system.where()
    assert ask("add", fifths("fifths"), folder, "q.toml") == ["fifths"]
    system.read("fifths")
    system.strike(f"host-{system.where()['fifths']}-0")

    source, target = before["groups"], "1" if before["groups"] == "0" else "0"
    ask("move", "groups", target)
    system.strike(f"scheduler-{target}")
    assert system.where()["groups"] == target

    ask("remove", "fifths")  # a subscriber at a gateway that dies now cannot subscribe to it again
    assert wait_until(lambda: system.filed("fifths") == system.subscribed("fifths"), WAIT)
    ask("weigh", "thirds", 3.0)
    ask("swap", "chain", "asked for", target)
    system.strike("outlet", "gateway-1", f"host-{source}-1")
    status = ask("status")
    assert {one.domain: one.policy for one in status.domains} == {target: "chain", source: "fifo"}
    assert {q.name: q.weight for one in status.domains for q in one.queries}["thirds"] == 3.0
    assert system.where().keys() == QUERIES.keys()
    system.finish()
    right = wanted(system.pushed)
    wait_until(lambda: all(system.subscribed(query) == right[query] == system.filed(query) for query in QUERIES), WAIT)
    for query in QUERIES:
        assert (system.subscribed(query) == right[query], system.filed(query) == right[query]) == (True, True), query
        assert system.numbers[query] == list(range(1, len(system.numbers[query]) + 1))
    assert gapless(system.filed("fifths"))
