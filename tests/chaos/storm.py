"""A durable deployment, somebody who keeps sending, somebody who reads, and somebody who kills."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayError

import dsms
from actors.cluster import NAMESPACE, PREFIX
from actors.deployment import up
from actors.parts import named, sweep, wait_for
from chaos.expected import QUERIES, STREAM, Rows, expected, rows
from dsms.clock import stopwatch
from dsms.errors import DsmsError
from dsms.live.setup import Setup

POLICIES = ("fifo", "chain", "rr", "mtiq")
PATIENCE = 120.0  # seconds for anything to come right
BURST, PAUSE = 6, 0.25  # frames at once, and seconds until the next
AGAIN = 0.1  # seconds
ROWS = 300  # of a frame


class Storm:
    """One deployment under fire; everything in it is by a seed but the moment at which a kill falls."""

    def __init__(self, folder: Path, seed: int, actors: int = 3, checkpoint: float = 0.5) -> None:
        self._random, self._folder = random.Random(seed), folder
        self.name = f"storm-{seed}"
        table = {
            "streams": {"a": STREAM, "b": STREAM},
            "queries": {n: {"cql": text, "sink": {"jsonl": f"{n}.jsonl"}} for n, text in QUERIES.items()},
        }
        self._setup = Setup(actors=actors, port=0, durable=str(folder / "durable"), checkpoint=checkpoint)
        self.table = table
        self.handle = up(table, str(folder), "storm.toml", self.name, self._setup)
        [self._door] = self.ask("identity")["gateways"]
        self.pushed = 0  # rows of each stream
        self.numbers: dict[str, list[int]] = {}
        self.seen: dict[str, Rows] = {}
        self._ended, self._counting = threading.Event(), threading.Lock()
        self._trouble: list[BaseException] = []
        self._producer = dsms.connect(self._door, producer="storm", patience=PATIENCE)
        self._reader = dsms.connect(self._door, patience=PATIENCE)
        for query in QUERIES:
            self._read(query)
        self._thread = threading.Thread(target=self._push, daemon=True)
        self._thread.start()

    def ask(self, method: str, *given: Any) -> Any:
        begun = stopwatch()
        while True:
            try:
                return ray.get(getattr(self.handle, method).remote(*given), timeout=PATIENCE)
            except ActorUnavailableError:  # it was killed, and is started again
                if stopwatch() - begun > PATIENCE:
                    raise
                time.sleep(AGAIN)

    def kill(self, among: tuple[str, ...] = ("host", "scheduler", "gateway", "outlet")) -> str:
        """SIGKILL for an actor of a kind drawn at random; answers which it was."""
        kind, own = self._random.choice(among), f"{PREFIX}{self.name}:"
        found = sorted(name for name in named(self.name) if name.removeprefix(own).startswith(kind))
        name = self._random.choice(found) if kind != "deployment" else own.removesuffix(":")
        process: Any = ray.get_actor(name, namespace=NAMESPACE).__ray_call__
        self._count = 1 if kind == "deployment" else self.ask("safety")["recoveries"] + 1
        os.kill(ray.get(process.remote(lambda _: os.getpid()), timeout=PATIENCE), signal.SIGKILL)
        self._struck = stopwatch()
        return name.removeprefix(own) if kind != "deployment" else kind

    def strike(self, among: tuple[str, ...]) -> tuple[str, float]:
        """Kill at some moment, swap meanwhile, and wait until it is made good; who it was, and how long that took."""
        time.sleep(self._random.random())
        name = self.kill(among)
        self.await_recovery()
        seconds = stopwatch() - self._struck
        self.swap()
        return name, seconds

    def blackout(self, table: dict[str, Any] | None = None) -> None:
        """End all processes at once, and go on from what is stored, perhaps with another plan."""
        sweep(self.name)
        self.handle = up(table or self.table, str(self._folder), "storm.toml", self.name, self._setup, resume=True)

    def read_no_more(self, query: str) -> None:
        """It has gone."""
        del self.seen[query]

    def swap(self) -> None:
        """Another policy; while a scheduler is dead nobody can be asked."""
        with suppress(DsmsError, RayError):
            self.ask("swap", self._random.choice(POLICIES))

    def await_recovery(self) -> dict[str, Any]:
        """Wait until what was killed is there again; how safe it is then."""
        told, count = dict[str, Any](), self._count

        def done() -> bool:
            nonlocal told
            told = self.ask("safety")
            return bool(told["recoveries"] >= count)

        if not wait_for(done, PATIENCE):
            raise AssertionError(f"{told['recoveries']} recoveries instead of {count}: {told}")
        return told

    def finish(self) -> None:
        """No more rows; all results have come, by both ways, each once."""
        self._ended.set()
        self._thread.join(PATIENCE)
        self._producer.flush(PATIENCE)
        for stream in "ab":
            self._producer.end(stream)
        self._producer.flush(PATIENCE)
        wanted = expected(self.pushed)
        wait_for(lambda: all(self._is_held(query, wanted[query]) for query in self.seen), PATIENCE)
        assert not self._trouble, str(self._trouble[0])[:400]
        for query in self.seen:
            assert self.numbers[query] == list(range(1, len(self.numbers[query]) + 1)), (
                f"{query}: {self.numbers[query]}"
            )
            _same(query, "subscriber", self.seen[query], wanted[query])
            _same(query, "file", self._filed(query), wanted[query])

    def close(self) -> None:
        self._ended.set()
        for client in (self._producer, self._reader):
            with suppress(DsmsError):
                client.close(1.0)
        self.ask("down")

    def _push(self) -> None:
        """Bursts of frames into both streams, for as long as it goes on."""
        try:
            while not self._ended.wait(PAUSE):
                for _ in range(self._random.randrange(1, BURST)):
                    for stream in "ab":
                        self._producer.push(stream, rows(stream, self.pushed, ROWS))
                    self.pushed += ROWS
        except BaseException as error:
            self._trouble.append(error)

    def _read(self, query: str) -> None:
        seen, numbers = self.seen.setdefault(query, Counter()), self.numbers.setdefault(query, [])

        def take(batch: Any) -> None:
            if batch.number not in numbers[-1:]:  # a large one comes in several parts
                numbers.append(batch.number)
            columns = [batch.columns[name].tolist() for name in batch.columns]
            with self._counting:
                for sign, *values in zip(batch.each("sign").tolist(), *columns, strict=True):
                    seen[tuple(values)] += sign

        self._reader.subscribe(query, 0, take)

    def _is_held(self, query: str, wanted: Rows) -> bool:
        with self._counting:
            return +self.seen[query] == wanted

    def _filed(self, query: str) -> Rows:
        found: Rows = Counter()
        for line in (self._folder / f"{query}.jsonl").read_text().splitlines():
            row = json.loads(line)
            del row["ts"]
            found[tuple(row.values())[1:] if "sign" in row else tuple(row.values())] += row.get("sign", 1)
        return found


def _same(query: str, where: str, found: Rows, wanted: Rows) -> None:
    doubled, lost = found - wanted, wanted - +found
    assert not doubled, f"{query}, {where}: {len(doubled)} too often, such as {list(doubled)[:3]}"
    assert not lost, f"{query}, {where}: {len(lost)} too few, such as {list(lost)[:3]}"
    assert min(found.values(), default=0) >= 0, f"{query}, {where}: taken back though it was not there"
