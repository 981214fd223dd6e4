"""Two domains and two gateways, durable: after every change of what runs somebody is killed, and results are right."""

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
from actors.cluster import NAMESPACE, PREFIX
from actors.deployment import up
from actors.parts import wait_for
from dsms.errors import DsmsError, PlanError
from dsms.live.setup import Setup

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]
WAIT = 120.0
ROWS, PAUSE = 100, 0.1  # of a frame, and seconds until the next
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
    """A query that comes later."""
    return {"queries": {name: {"cql": "SELECT id FROM b WHERE id % 5 = 0", "sink": {sink: f"{name}.{sink}"}}}}


class System:
    """A deployment, a producer at each of its gateways, and somebody who reads at the second."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        setup = Setup(domains=2, gateways=2, actors=2, port=0, durable=str(folder / "durable"), checkpoint=1.0)
        self.handle = up(TABLE, str(folder), "p.toml", "changing", setup)
        doors = self.ask("identity")["gateways"]
        self.pushed = dict.fromkeys("abc", 0)  # rows
        self.seen: dict[str, Counter[Any]] = {}
        self.numbers: dict[str, list[int]] = {}
        self.trouble: list[BaseException] = []
        self._over, self._counting = threading.Event(), threading.Lock()
        self._producers = [dsms.connect(door, producer=f"p{n}", patience=WAIT) for n, door in enumerate(doors)]
        self._reader = dsms.connect(doors[1], patience=WAIT)
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
        return {q["name"]: one["domain"] for one in self.ask("status")["domains"] for q in one["queries"]}

    def strike(self, *names: str) -> None:
        """SIGKILL for actors, and wait until all is there again."""
        count = self.ask("safety")["recoveries"]
        found = [ray.get_actor(f"{PREFIX}changing:{name}", namespace=NAMESPACE) for name in names]
        for process in ray.get([one.__ray_call__.remote(lambda _: os.getpid()) for one in found], timeout=WAIT):
            os.kill(process, signal.SIGKILL)
        assert wait_for(lambda: self.ask("safety")["recoveries"] > count, WAIT), self.ask("safety")

    def read(self, query: str) -> None:
        seen, numbers = self.seen.setdefault(query, Counter()), self.numbers.setdefault(query, [])

        def take(batch: Any) -> None:
            if batch.number not in numbers[-1:]:
                numbers.append(batch.number)
            with self._counting:
                for sign, *values in zip(batch.each("sign").tolist(), *_columns(batch), strict=True):
                    seen[tuple(values)] += sign

        self._reader.subscribe(query, 0, take)

    def told(self, query: str) -> Counter[Any]:
        """What a subscriber holds."""
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
        """No more rows: all that were pushed are acknowledged."""
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
    """What the queries that were there all the time come to."""
    groups = [(k, len(range(k, pushed["c"], 7)), sum(range(k, pushed["c"], 7))) for k in range(7)]
    return {
        "left": Counter((n,) for n in range(pushed["b"], pushed["a"])),
        "groups": Counter(groups),
        "thirds": Counter((n,) for n in range(0, pushed["c"], 3)),
    }


def gapless(found: Counter[Any]) -> bool:
    """Whether these are all ids that 5 divides from some on, each once."""
    ids = sorted(n for (n,) in found)
    return ids == list(range(ids[0], ids[-1] + 1, 5)) and set(found.values()) == {1}


@pytest.fixture
def system(ray_cluster, tmp_path):
    found = System(tmp_path)
    yield found
    found.close()


def test_results_are_right_and_what_was_changed_stays_so_whoever_is_killed_after_it(system):
    ask, folder = system.ask, str(system.folder)
    with pytest.raises(PlanError, match=r"queries.bad.sink: a Parquet file cannot be gone on with after a crash"):
        ask("add", fifths("bad", "parquet"), folder, "q.toml")
    before = system.where()
    assert ask("add", fifths("fifths"), folder, "q.toml") == ["fifths"]
    system.read("fifths")
    system.strike(f"host-{system.where()['fifths']}-0")

    source, target = before["groups"], "1" if before["groups"] == "0" else "0"
    ask("move", "groups", target)
    system.strike(f"scheduler-{target}")
    assert system.where()["groups"] == target

    ask("remove", "fifths")  # whoever reads it at a gateway that dies now cannot ask for it any more
    assert wait_for(lambda: system.filed("fifths") == system.told("fifths"), WAIT)
    ask("weigh", "thirds", 3.0)
    ask("swap", "chain", "asked for", target)
    system.strike("outlet", "gateway-1", f"host-{source}-1")
    status = ask("status")
    assert {one["domain"]: one["policy"] for one in status["domains"]} == {target: "chain", source: "fifo"}
    assert {q["name"]: q["weight"] for one in status["domains"] for q in one["queries"]}["thirds"] == 3.0
    assert system.where().keys() == QUERIES.keys()
    system.finish()
    right = wanted(system.pushed)
    wait_for(lambda: all(system.told(query) == right[query] == system.filed(query) for query in QUERIES), WAIT)
    for query in QUERIES:
        assert (system.told(query) == right[query], system.filed(query) == right[query]) == (True, True), query
        assert system.numbers[query] == list(range(1, len(system.numbers[query]) + 1))
    assert gapless(system.filed("fifths"))
