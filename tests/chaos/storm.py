"""Runs a durable deployment under load, kills its processes, and compares all results with the expected ones."""

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

from actors.cluster.cluster import NAMESPACE, PREFIX
from actors.control.deploy import up
from actors.deployment.actor_handles import list_actor_names, tear_down
from chaos.clients import CLIENT_TIMEOUT_S, CountingReader, Sender
from chaos.expected import QUERIES, STREAMS, Rows, expect_results
from chaos.spark_load import ROWS, SparkLoad
from chaos.verdict import DeliveryCheck, check_order, compare_rows
from dsms.clock import monotonic_s
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from chaos.workers import WorkerNodes

POLICIES = ("fifo", "chain", "rr", "mtiq")
RETRY_S = 0.1
PAIR_WINDOW_S = 0.3  # between two kills of a pair
RECOVERY_WINDOW_S = 3.0  # between a kill and another during the recovery
NODE, PAIR, TWICE, SPARK = "worker node", "gateway and host", "in recovery", "task of Spark"
ACTORS = ("host", "scheduler", "gateway", "outlet", "deployment")


class Storm:
    """One deployment whose processes are killed; a seed determines everything but the moments of kills."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        actors: int = 3,
        checkpoint: float = 0.5,
        workers: WorkerNodes | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        self._random, self._folder, self._workers = random.Random(seed), folder, workers
        self.name = f"storm-{seed}"
        self.table = {
            "streams": STREAMS,
            "queries": {n: {"cql": text, "sink": {"jsonl": f"{n}.jsonl"}} for n, text in QUERIES.items()},
        }
        self._setup = LiveConfig(actors=actors, port=0, durable=str(folder / "durable"), checkpoint=checkpoint)
        self.handle = up(self.table, str(folder), "storm.toml", self.name, self._setup)
        [door] = self.ask("identity")["gateways"]
        self._reader = CountingReader(door)
        self._senders = {stream: Sender(door, stream, seed) for stream in "ab"}
        self._spark = None if spark is None else SparkLoad(spark, door)

    @property
    def rows(self) -> int:
        """The number of rows sent."""
        return sum(sender.pushed for sender in self._senders.values()) + (self._spark.pushed if self._spark else 0)

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call the deployment; while it restarts after a kill, retry."""
        begun = monotonic_s()
        while True:
            try:
                return ray.get(getattr(self.handle, method).remote(*arguments), timeout=CLIENT_TIMEOUT_S)
            except ray.exceptions.ActorUnavailableError:
                if monotonic_s() - begun > CLIENT_TIMEOUT_S:
                    raise
                time.sleep(RETRY_S)

    def strike(self, kind: str) -> tuple[int, float]:
        """Kill at a random moment, and wait for a row that was sent afterwards; then swap the policy.

        Answers the number of kills and the seconds to recover.
        """
        time.sleep(self._random.random())
        if kind == SPARK:
            return 1, self._strike_spark()
        kills = 1
        if kind == NODE:
            assert self._workers is not None
            self._workers.kill(self._process("host"), self._random.random() * PAIR_WINDOW_S)
        elif kind in (PAIR, TWICE):
            kills = 2
            self._kill("gateway" if kind == PAIR else self._random.choice(ACTORS[:4]))
            time.sleep(self._random.random() * (PAIR_WINDOW_S if kind == PAIR else RECOVERY_WINDOW_S))
            self._kill("host" if kind == PAIR else self._random.choice(ACTORS[:4]))
        else:
            self._kill(kind)
        seconds = self._recovered("third", self._senders["b"].pushed)
        self.swap()
        return kills, seconds

    def blackout(self, table: dict[str, Any] | None = None) -> None:
        """End all processes at once, and resume from storage, perhaps with another plan."""
        tear_down(self.name)
        self.handle = up(table or self.table, str(self._folder), "storm.toml", self.name, self._setup, resume=True)

    def read_no_more(self, query: str) -> None:
        """Ignore a query that is removed from the plan."""
        self._reader.forget(query)

    def swap(self) -> None:
        """Swap the policy; this fails while a scheduler is dead."""
        with suppress(DsmsError, RayError):
            self.ask("swap", self._random.choice(POLICIES))

    def finish(self) -> DeliveryCheck:
        """End all streams, and compare subscribers' rows and files with the expected results."""
        if self._spark is not None:
            self._spark.finish()
        self._senders["a"].finish("c")
        self._senders["b"].finish()
        counts = {stream: sender.pushed for stream, sender in self._senders.items()}
        wanted = expect_results({**counts, "c": self._spark.pushed if self._spark else 0})
        self._reader.await_all(wanted)
        verdict = DeliveryCheck()
        for query, seen in self._reader.seen.items():
            found = {
                "numbers": check_order(self._reader.numbers[query]),
                "subscriber": compare_rows(seen, wanted[query]),
                "file": compare_rows(self._filed(query), wanted[query]),
            }
            for where, each in found.items():
                if not each.right:
                    print(f"{query}, {where}: {each}; {self._reader.numbers[query][-5:]}", flush=True)
                verdict += each
        return verdict

    def close(self) -> None:
        for sender in self._senders.values():
            sender.close()
        self._reader.close()
        self.ask("down")

    def _strike_spark(self) -> float:
        assert self._spark is not None
        self._spark.start()
        self._recovered("sparked", self._spark.pushed - ROWS)  # the load has begun
        return self._recovered("sparked", self._spark.kill())

    def _recovered(self, query: str, number: int) -> float:
        """Wait for a row from this id on; answers the seconds until it came."""
        killed_at = monotonic_s()
        if not self._reader.await_row(query, number):
            if self._spark is not None:
                self._spark.check()
            raise AssertionError(f"no new result of {query!r} within {CLIENT_TIMEOUT_S:g} s: {self.ask('durability')}")
        return monotonic_s() - killed_at

    def _kill(self, kind: str) -> None:
        with suppress(ProcessLookupError):  # it has ended already
            os.kill(self._process(kind), signal.SIGKILL)

    def _process(self, kind: str) -> int:
        """Return the process of a random actor of this kind; wait while it is rebuilt."""
        begun, own = monotonic_s(), f"{PREFIX}{self.name}:"
        while True:
            found = sorted(name for name in list_actor_names(self.name) if name.removeprefix(own).startswith(kind))
            if kind == "deployment":
                found = [own.removesuffix(":")]
            try:
                process: Any = ray.get_actor(self._random.choice(found), namespace=NAMESPACE).__ray_call__
                return int(ray.get(process.remote(lambda _: os.getpid()), timeout=CLIENT_TIMEOUT_S))
            except (IndexError, ValueError, RayError):
                if monotonic_s() - begun > CLIENT_TIMEOUT_S:
                    raise
                time.sleep(RETRY_S)

    def _filed(self, query: str) -> Rows:
        found: Rows = Counter()
        for line in (self._folder / f"{query}.jsonl").read_text().splitlines():
            row = json.loads(line)
            sign = row.pop("sign", 1)
            row.pop("ts", None)
            found[tuple(row.values())] += sign
        return found
