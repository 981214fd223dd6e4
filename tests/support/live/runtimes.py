"""One live domain in two forms: all in this process, and on Ray, as actors: a scheduler, hosts and a result hub."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import ray
from ray import cloudpickle
from support.live.domains import PushedDomain

from actors.rpc.messages import ARRIVALS, CONTROL, make_actor_class, send
from actors.scheduler.scheduler import Scheduler
from dsms.config.live import LiveConfig, apply_live_defaults
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.io import DeadLetterFile
from dsms.live.log_batch import LogBatch, LogItem
from dsms.live.query_set import QuerySet

CONTROL_GROUP = "asked"
RESULT_TIMEOUT_S = 20.0  # for results to arrive
START_TIMEOUT_S = 120.0  # for actors, on a busy machine
Results = dict[str, list[tuple[int, int, dict[str, Any]]]]  # by query: timestamp, sign and row, in order


class ReusableScheduler(Scheduler):
    """A scheduler that opens one domain after the other: starting an actor for each would take half a second."""

    def __init__(self) -> None:
        """Start without a domain."""

    def begin(self, hosts: list[Any], outlet: Any, *domain: Any) -> None:
        """Open another domain."""
        super().__init__(*domain)
        self.open(hosts, outlet)

    def settle(self) -> dict[str, int]:
        """Process all arrived rows; returns, by query, the number of its batches of results."""
        domain = self._running_domain
        domain.ask(lambda: domain.engine.run()).result()
        return dict(self._runner.results)


class FakeResultHub:
    """Keeps the results that it takes."""

    def __init__(self) -> None:
        self._come = threading.Condition()
        self.clear()

    def clear(self) -> None:
        self._taken: list[tuple[str, int, Batch]] = []

    def status(self) -> dict[str, Any]:
        return {}

    def take(self, results: list[tuple[str, int, Batch]]) -> None:
        with self._come:
            self._taken += results
            self._come.notify()

    def results(self, wanted: dict[str, int]) -> Results:
        """All results, once this many have arrived; each number once."""
        with self._come:
            self._come.wait_for(lambda: len(self._taken) >= sum(wanted.values()), RESULT_TIMEOUT_S)
            taken = sorted(self._taken, key=lambda each: each[:2])
        numbers = [(query, number) for query, number, _ in taken]
        assert numbers == [(query, n) for query in sorted(wanted) for n in range(1, wanted[query] + 1)]
        found: Results = {}
        for query, _, batch in taken:
            rows = zip(batch.each("ts").tolist(), batch.each("sign").tolist(), batch.records(), strict=True)
            found.setdefault(query, []).extend(rows)
        return found


class InlineRuntime:
    """All in one process."""

    def __init__(self, table: dict[str, Any], folder: Path, policy: str = "fifo") -> None:
        setup = LiveConfig(policy=policy)
        self._letters = DeadLetterFile(folder / "plan.inline.dead.jsonl")
        self._outlet, self._numbers = FakeResultHub(), Counter[str]()
        query_set = QuerySet(apply_live_defaults(table, setup), folder)
        self._domain = PushedDomain("inline", query_set, setup, sink=self._sink, aside=self._letters.add)
        self._domain.start()

    def push(self, stream: str, batch: Batch) -> None:
        self._domain.admit([(stream, batch)])

    def swap(self, policy: str) -> None:
        self._domain.swap(policy, "asked for")

    def pause(self) -> None:
        self._domain.pause()

    def resume(self) -> None:
        self._domain.resume()

    def end(self) -> None:
        """End all streams."""
        self._domain.end()

    def results(self) -> Results:
        """All results, once all arrived rows are processed."""
        self._domain.ask(lambda: self._domain.engine.run()).result()
        return self._outlet.results(dict(self._numbers))

    def held(self) -> tuple[float, float]:
        """Rows and bytes in queues."""
        status = self._domain.status()
        assert status.held is not None
        assert status.held_bytes is not None
        return status.held, status.held_bytes

    def aside(self) -> list[dict[str, Any]]:
        """The dead letters."""
        return read_json_lines(self._letters.path)

    def close(self) -> None:
        self._domain.close()
        self._letters.close()

    def _sink(self, query: str, batch: Batch) -> None:
        self._numbers[query] += 1
        self._outlet.take([(query, self._numbers[query], batch)])


class RayRuntime:
    """Each station in a host while there are enough; rows go to hosts, and references to the scheduler."""

    def __init__(self, crew: RayActors, table: dict[str, Any], folder: Path, policy: str = "fifo") -> None:
        self._crew, self._keys = crew, 0
        self._letters = folder / "plan.ray.dead.jsonl"
        crew.begin("ray", table, str(folder), "", None, LiveConfig(policy=policy))
        self._routes = crew.ask("routes")

    def push(self, stream: str, batch: Batch) -> None:
        self._keys += 1
        key, hosts = str(self._keys), [self._crew.hosts[place] for place in self._routes[stream]]
        ray.get([host.put.remote({key: batch}) for host in hosts])
        batch_ref = BatchRef(key, len(batch), batch.memory(), int(batch.columns["at"].max()))
        self._apply([LogItem(self._keys, stream, batch_ref)])

    def swap(self, policy: str) -> None:
        self._crew.ask("control", "swap", policy, "asked for")

    def pause(self) -> None:
        self._crew.ask("control", "pause")

    def resume(self) -> None:
        self._crew.ask("control", "resume")

    def end(self) -> None:
        self._keys += 1
        self._apply([], ends=True)

    def _apply(self, items: list[LogItem], ends: bool = False) -> None:
        """Apply the next entry of a log, as a gateway has it applied."""
        batch = LogBatch("g", self._keys - 1, self._keys, items, ends)
        assert self._crew.ask("apply_log_batch", batch, group=ARRIVALS) == {}

    def results(self) -> Results:
        put_out = self._crew.ask("settle")
        return ray.get(self._crew.outlet.results.options(concurrency_group=CONTROL_GROUP).remote(put_out))

    def held(self) -> tuple[float, float]:
        status = self._crew.ask("status")
        return status.held, status.held_bytes

    def aside(self) -> list[dict[str, Any]]:
        return read_json_lines(self._letters)

    def close(self) -> None:
        self._crew.end()


class RayActors:
    """The actors of a domain, kept while the cluster runs."""

    def __init__(self, hosts: list[Any]) -> None:
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import what only tests know
        self.hosts = hosts
        self.scheduler: Any = make_actor_class(ReusableScheduler, **{ARRIVALS: 4, CONTROL: 4}).remote()
        self.outlet: Any = make_actor_class(FakeResultHub, CONTROL_GROUP).remote()
        everyone = [each.ping.remote() for each in (*hosts, self.scheduler)]
        ray.get([*everyone, send(self.outlet.status)], timeout=START_TIMEOUT_S)

    def begin(self, *domain: Any) -> None:
        """Open another domain."""
        self.ask("begin", self.hosts, self.outlet, *domain)

    def ask(self, method: str, *arguments: Any, group: str = CONTROL) -> Any:
        call = getattr(self.scheduler, method).options(concurrency_group=group)
        return ray.get(call.remote(*arguments), timeout=RESULT_TIMEOUT_S)

    def end(self) -> None:
        """Close the domain; the actors can be used again."""
        self.ask("close")
        ray.get([*(host.clear.remote() for host in self.hosts), self.outlet.clear.remote()])


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines; none if it does not exist."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
