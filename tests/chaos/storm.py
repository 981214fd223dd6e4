"""A durable deployment, those who send to it and read from it, and somebody who kills its processes."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayError

from actors.cluster import NAMESPACE, PREFIX
from actors.deployment import up
from actors.parts import named, sweep
from chaos.clients import PATIENCE, Reader, Sender
from chaos.expected import QUERIES, STREAMS, Rows, expected
from chaos.spark_load import ROWS, SparkLoad
from chaos.verdict import Verdict, compared, in_order
from dsms.clock import stopwatch
from dsms.errors import DsmsError
from dsms.live.setup import Setup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from chaos.workers import Workers

POLICIES = ("fifo", "chain", "rr", "mtiq")
AGAIN = 0.1  # seconds
TOGETHER = 0.3  # seconds within which two die at once
MEANWHILE = 3.0  # seconds after a kill within which another falls into what is being rebuilt
NODE, PAIR, TWICE, SPARK = "worker node", "gateway and host", "in recovery", "task of Spark"
ACTORS = ("host", "scheduler", "gateway", "outlet", "deployment")


class Storm:
    """One deployment under fire; everything in it is by a seed but the moment at which a kill falls."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        actors: int = 3,
        checkpoint: float = 0.5,
        workers: Workers | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        self._random, self._folder, self._workers = random.Random(seed), folder, workers
        self.name = f"storm-{seed}"
        self.table = {
            "streams": STREAMS,
            "queries": {n: {"cql": text, "sink": {"jsonl": f"{n}.jsonl"}} for n, text in QUERIES.items()},
        }
        self._setup = Setup(actors=actors, port=0, durable=str(folder / "durable"), checkpoint=checkpoint)
        self.handle = up(self.table, str(folder), "storm.toml", self.name, self._setup)
        [door] = self.ask("identity")["gateways"]
        self._reader = Reader(door)
        self._senders = {stream: Sender(door, stream, seed) for stream in "ab"}
        self._spark = None if spark is None else SparkLoad(spark, door)

    @property
    def rows(self) -> int:
        """How many were sent."""
        return sum(sender.pushed for sender in self._senders.values()) + (self._spark.pushed if self._spark else 0)

    def ask(self, method: str, *given: Any) -> Any:
        """Of the deployment, which may have been killed, and is then started again."""
        begun = stopwatch()
        while True:
            try:
                return ray.get(getattr(self.handle, method).remote(*given), timeout=PATIENCE)
            except ray.exceptions.ActorUnavailableError:
                if stopwatch() - begun > PATIENCE:
                    raise
                time.sleep(AGAIN)

    def strike(self, kind: str) -> tuple[int, float]:
        """Kill at some moment, and wait until a row comes through that was sent afterwards; how many, how long.

        The policy is swapped in between.
        """
        time.sleep(self._random.random())
        if kind == SPARK:
            return 1, self._strike_spark()
        kills = 1
        if kind == NODE:
            assert self._workers is not None
            self._workers.kill(self._process("host"), self._random.random() * TOGETHER)
        elif kind in (PAIR, TWICE):
            kills = 2
            self._kill("gateway" if kind == PAIR else self._random.choice(ACTORS[:4]))
            time.sleep(self._random.random() * (TOGETHER if kind == PAIR else MEANWHILE))
            self._kill("host" if kind == PAIR else self._random.choice(ACTORS[:4]))
        else:
            self._kill(kind)
        seconds = self._recovered("third", self._senders["b"].pushed)
        self.swap()
        return kills, seconds

    def blackout(self, table: dict[str, Any] | None = None) -> None:
        """End all processes at once, and go on from what is stored, perhaps with another plan."""
        sweep(self.name)
        self.handle = up(table or self.table, str(self._folder), "storm.toml", self.name, self._setup, resume=True)

    def read_no_more(self, query: str) -> None:
        """It has gone."""
        self._reader.forget(query)

    def swap(self) -> None:
        """Another policy; while a scheduler is dead nobody can be asked."""
        with suppress(DsmsError, RayError):
            self.ask("swap", self._random.choice(POLICIES))

    def finish(self) -> Verdict:
        """No more rows: what came of all that was acknowledged, by both ways."""
        if self._spark is not None:
            self._spark.finish()
        self._senders["a"].finish("c")
        self._senders["b"].finish()
        counts = {stream: sender.pushed for stream, sender in self._senders.items()}
        wanted = expected({**counts, "c": self._spark.pushed if self._spark else 0})
        self._reader.await_all(wanted)
        verdict = Verdict()
        for query, seen in self._reader.seen.items():
            found = {
                "numbers": in_order(self._reader.numbers[query]),
                "subscriber": compared(seen, wanted[query]),
                "file": compared(self._filed(query), wanted[query]),
            }
            for where, each in found.items():
                if not each.right:
                    print(f"{query}, {where}: {each}; {self._reader.numbers[query][-5:]}", flush=True)
                verdict += each
        return verdict

    def close(self) -> None:
        for client in (*self._senders.values(), self._reader):
            client.close()
        self.ask("down")

    def _strike_spark(self) -> float:
        assert self._spark is not None
        self._spark.start()
        self._recovered("sparked", self._spark.pushed - ROWS)  # it has begun
        return self._recovered("sparked", self._spark.kill())

    def _recovered(self, query: str, number: int) -> float:
        """Wait for a row from this id on; the seconds that it took."""
        struck = stopwatch()
        if not self._reader.await_row(query, number):
            if self._spark is not None:
                self._spark.check()
            raise AssertionError(f"no new result of {query!r} within {PATIENCE:g} s: {self.ask('safety')}")
        return stopwatch() - struck

    def _kill(self, kind: str) -> None:
        with suppress(ProcessLookupError):  # it was about to go
            os.kill(self._process(kind), signal.SIGKILL)

    def _process(self, kind: str) -> int:
        """The process of an actor of this kind, drawn at random; while it is rebuilt there may be none."""
        begun, own = stopwatch(), f"{PREFIX}{self.name}:"
        while True:
            found = sorted(name for name in named(self.name) if name.removeprefix(own).startswith(kind))
            if kind == "deployment":
                found = [own.removesuffix(":")]
            try:
                process: Any = ray.get_actor(self._random.choice(found), namespace=NAMESPACE).__ray_call__
                return int(ray.get(process.remote(lambda _: os.getpid()), timeout=PATIENCE))
            except (IndexError, ValueError, RayError):
                if stopwatch() - begun > PATIENCE:
                    raise
                time.sleep(AGAIN)

    def _filed(self, query: str) -> Rows:
        found: Rows = Counter()
        for line in (self._folder / f"{query}.jsonl").read_text().splitlines():
            row = json.loads(line)
            sign = row.pop("sign", 1)
            row.pop("ts", None)
            found[tuple(row.values())] += sign
        return found
