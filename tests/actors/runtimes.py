"""One live domain in two ways: all in this process, and on Ray, as a scheduler, hosts and an outlet that are actors."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import ray
from ray import cloudpickle

from actors.messages import ARRIVALS, CONTROL, actor
from actors.scheduler import Scheduler
from dsms.batch import Batch
from dsms.files import DeadLetters
from dsms.live.domain import Domain, measured
from dsms.live.roster import Roster
from dsms.live.setup import Setup
from dsms.parcel import Parcel

ASKED = "asked"
PATIENCE = 20.0  # seconds until results that do not come are given up
START = 120.0  # and until actors are there, on a machine that is busy
Results = dict[str, list[tuple[int, int, dict[str, Any]]]]  # by query: timestamp, sign and row, in order


class Recycled(Scheduler):
    """A scheduler that opens one domain after the other: starting an actor for each would take half a second."""

    def __init__(self) -> None:
        """It has none yet."""

    def begin(self, hosts: list[Any], outlet: Any, *domain: Any) -> None:
        """Open another domain."""
        super().__init__(*domain)
        self.open(hosts, outlet)

    def settle(self) -> dict[str, int]:
        """Work off all that has come; answers, by query, how many batches of results went out."""
        domain = self._at_work
        domain.ask(lambda: domain.engine.run()).result()
        return dict(self._runner.results)


class Outlet:
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
        """All of them once so many have come, each number once."""
        with self._come:
            self._come.wait_for(lambda: len(self._taken) >= sum(wanted.values()), PATIENCE)
            taken = sorted(self._taken, key=lambda each: each[:2])
        numbers = [(query, number) for query, number, _ in taken]
        assert numbers == [(query, n) for query in sorted(wanted) for n in range(1, wanted[query] + 1)]
        found: Results = {}
        for query, _, batch in taken:
            rows = zip(batch.each("ts").tolist(), batch.each("sign").tolist(), batch.records(), strict=True)
            found.setdefault(query, []).extend(rows)
        return found


class Inline:
    """All in one process."""

    def __init__(self, table: dict[str, Any], folder: Path, policy: str = "fifo") -> None:
        setup = Setup(policy=policy)
        self._letters = DeadLetters(folder / "plan.inline.dead.jsonl")
        self._outlet, self._numbers = Outlet(), Counter[str]()
        roster = Roster(measured(table, setup), folder)
        self._domain = Domain("inline", roster, setup, sink=self._sink, aside=self._letters.aside)
        self._domain.start()

    def push(self, stream: str, batch: Batch) -> None:
        self._domain.arrived([(stream, batch)])

    def swap(self, policy: str) -> None:
        self._domain.swap(policy, "asked for")

    def pause(self) -> None:
        self._domain.pause()

    def resume(self) -> None:
        self._domain.resume()

    def end(self) -> None:
        """No more rows come."""
        self._domain.end()

    def results(self) -> Results:
        """All of them, once all that has come is worked off."""
        self._domain.ask(lambda: self._domain.engine.run()).result()
        return self._outlet.results(dict(self._numbers))

    def held(self) -> tuple[float, float]:
        """Rows and bytes in queues."""
        status = self._domain.status()
        return status["held"], status["held_bytes"]

    def aside(self) -> list[dict[str, Any]]:
        """The rows that were put aside."""
        return read(self._letters.path)

    def close(self) -> None:
        self._domain.close()
        self._letters.close()

    def _sink(self, query: str, batch: Batch) -> None:
        self._numbers[query] += 1
        self._outlet.take([(query, self._numbers[query], batch)])


class OnRay:
    """Each station in a host as far as there are enough; rows go to hosts, and the scheduler is told of parcels."""

    def __init__(self, crew: Crew, table: dict[str, Any], folder: Path, policy: str = "fifo") -> None:
        self._crew, self._keys = crew, 0
        self._letters = folder / "plan.ray.dead.jsonl"
        crew.begin("ray", table, str(folder), "", None, Setup(policy=policy))
        self._routes = crew.ask("routes")

    def push(self, stream: str, batch: Batch) -> None:
        self._keys += 1
        key, hosts = str(self._keys), [self._crew.hosts[place] for place in self._routes[stream]]
        ray.get([host.put.remote({key: batch}) for host in hosts])
        parcel = Parcel(key, len(batch), batch.memory(), int(batch.columns["at"].max()))
        self._crew.ask("arrived", [(stream, parcel)], group=ARRIVALS)

    def swap(self, policy: str) -> None:
        self._crew.ask("swap", policy, "asked for")

    def pause(self) -> None:
        self._crew.ask("pause")

    def resume(self) -> None:
        self._crew.ask("resume")

    def end(self) -> None:
        self._crew.ask("end", group=ARRIVALS)

    def results(self) -> Results:
        put_out = self._crew.ask("settle")
        return ray.get(self._crew.outlet.results.options(concurrency_group=ASKED).remote(put_out))

    def held(self) -> tuple[float, float]:
        status = self._crew.ask("status")
        return status["held"], status["held_bytes"]

    def aside(self) -> list[dict[str, Any]]:
        return read(self._letters)

    def close(self) -> None:
        self._crew.end()


class Crew:
    """The actors of a domain, kept for as long as the cluster is there."""

    def __init__(self, hosts: list[Any]) -> None:
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import what only tests know
        self.hosts = hosts
        self.scheduler = actor(Recycled, **{ARRIVALS: 4, CONTROL: 4}).remote()
        self.outlet = actor(Outlet, ASKED).remote()
        everyone = [each.there.remote() for each in (*hosts, self.scheduler)]
        ray.get([*everyone, self.outlet.status.remote()], timeout=START)

    def begin(self, *domain: Any) -> None:
        """Open another domain."""
        self.ask("begin", self.hosts, self.outlet, *domain)

    def ask(self, method: str, *arguments: Any, group: str = CONTROL) -> Any:
        call = getattr(self.scheduler, method).options(concurrency_group=group)
        return ray.get(call.remote(*arguments), timeout=PATIENCE)

    def end(self) -> None:
        """Close the domain; all are as new."""
        self.ask("close")
        ray.get([*(host.clear.remote() for host in self.hosts), self.outlet.clear.remote()])


def read(path: Path) -> list[dict[str, Any]]:
    """What stands in a file of JSON lines, if there is one."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
