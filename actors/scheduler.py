"""A domain as an actor: it decides, and sends grants to the hosts where stations are."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import ray

from actors.fleet import Fleet
from actors.heap import keep_small
from actors.messages import ARRIVALS, CONTROL, actor, pickled, unpickled
from actors.runner import ActorRunner
from dsms.collecting import rarely_collecting
from dsms.errors import DsmsError
from dsms.files import DeadLetters
from dsms.live.domain import Domain, measured
from dsms.live.metrics import Samples
from dsms.live.roster import Roster
from dsms.live.setup import Setup
from dsms.observers import Observer
from dsms.operators.base import Aside
from dsms.parcel import Parcel
from dsms.plan import Plan
from dsms.recording import Recorder
from dsms.trace import Trace

log = logging.getLogger("dsms")


class Scheduler:
    """One domain's engine behind messages, and nothing else."""

    kind: ClassVar[type[Domain]] = Domain
    fresh = True  # False: it goes on with what was put aside before

    def __init__(
        self,
        name: str,
        table: Mapping[str, Any],
        folder: str,
        file: str,
        queries: Collection[str] | None,
        setup: Setup,
        trace: str | None = None,
    ) -> None:
        keep_small()
        self._name, self._setup, self._trace, self._folder = name, setup, trace, Path(folder)
        self._roster = Roster(measured(table, setup), Path(folder), file, queries)
        self._letters = DeadLetters(
            Path(folder) / setup.dead_letters / f"{Path(file or 'plan').stem}.{name}.dead.jsonl"
        )
        self._lost = False  # whether some could not be written
        self._domain: Domain | None = None
        self._open = ExitStack()

    def open(self, hosts: Sequence[Any], outlet: Any = None, epoch: float | None = None, life: int = 0) -> None:
        """Bring the stations to their hosts and begin; instants count from the epoch."""
        rarely_collecting().__enter__()  # for as long as the process lives
        self._letters.path.parent.mkdir(parents=True, exist_ok=True)
        if self.fresh:
            self._letters.begin()
        self._domain = self.kind(
            self._name,
            self._roster,
            self._setup,
            epoch=epoch,
            runner=partial(ActorRunner, fleet=Fleet(hosts, outlet, life=life)),
            observers=self._traced(),
            recorder=self._recorder(epoch),
            aside=self._put_aside,
        )
        self._domain.start()

    def there(self) -> bool:
        """Whether it is."""
        return True

    def arrived(self, parcels: Sequence[tuple[str, Parcel]]) -> float:
        """Rows are at the hosts that read them, under these keys; answers, when admitted, how many are held."""
        return self._at_work.arrived(parcels)

    def advance(self, stream: str, upto: int) -> None:
        self._at_work.advance(stream, upto)

    def end(self) -> None:
        self._at_work.end()

    def swap(self, policy: str, reason: str) -> dict[str, Any]:
        return self._at_work.swap(policy, reason)

    def require(self, qos: str) -> None:
        self._at_work.require(qos)

    def weigh(self, query: str, weight: float) -> None:
        self._at_work.weigh(query, weight)

    def pause(self) -> None:
        self._at_work.pause()

    def resume(self) -> None:
        self._at_work.resume()

    def why(self, count: int) -> list[dict[str, Any]]:
        return self._at_work.why(count)

    def status(self) -> dict[str, Any]:
        """The domain's, and where its stations are."""
        told = self._at_work.status()
        places = self._runner.places
        for station in told["stations"]:
            station["actor"] = places.get(station["name"])  # None: it has gone meanwhile
        return {**told, "node": ray.get_runtime_context().get_node_id()[:8] if ray.is_initialized() else "here"}

    def metrics(self) -> Samples:
        """The domain's, and where its operators are."""
        told, places = self._at_work.metrics(), self._runner.places
        told["dsms_operator_info"] = [
            ((*labels[:-1], str(places.get(labels[1], ""))), value) for labels, value in told["dsms_operator_info"]
        ]
        return told

    def add(self, table: Mapping[str, Any], folder: str, file: str) -> list[str]:
        return self._at_work.add(table, Path(folder), file)

    def remove(self, query: str) -> int:
        return self._at_work.remove(query)

    def release(self, queries: Collection[str]) -> bytes:
        """Queries with all that is theirs, for `adopt` of another domain."""
        return pickled(self._at_work.release(queries))

    def adopt(self, moved: bytes) -> None:
        self._at_work.adopt(*unpickled(moved))

    def readmit(self, query: str) -> list[str]:
        return self._at_work.readmit(query)

    def bar(self, station: str, reason: str) -> None:
        self._at_work.bar(station, reason)

    def routes(self) -> dict[str, list[int]]:
        """By stream: the places of the hosts that read it."""
        domain = self._at_work

        def readers(plan: Plan) -> dict[str, list[int]]:
            places = self._runner.places
            return {s.name: sorted({places[reader.name] for reader in s.consumers}) for s in plan.streams}

        return domain.ask(lambda: readers(domain.engine.plan)).result()

    def close(self) -> dict[str, int]:
        """End; what is queued is let go. Answers the number of the last results of each query."""
        if self._domain is not None:
            self._domain.close()
        self._letters.close()
        self._open.close()
        return dict(self._runner.results) if self._domain is not None else {}

    def _put_aside(self, station: str, aside: Aside) -> None:
        """Write rows down that did not get through; a disk that is full must not end the domain."""
        try:
            self._letters.aside(station, aside)
        except OSError as error:
            if not self._lost:
                log.error("domain %s: dead letters are lost, only counted: %s", self._name, error)
            self._lost = True

    def _recorder(self, epoch: float | None) -> Recorder | None:
        """Whoever writes the run down, if that is asked for: to this node's disk."""
        if not self._setup.record:
            return None
        return Recorder(self._folder / self._setup.record / self._name, "live", strict=False, began=epoch)

    def _traced(self) -> list[Observer]:
        """Whoever writes turns down, if that is asked for."""
        if self._trace is None:
            return []
        with ExitStack() as stack:
            file = stack.enter_context(Path(self._trace).open("w", encoding="utf-8", buffering=1))
            self._open = stack.pop_all()  # closed at the end
        return [Trace(file)]

    @property
    def _at_work(self) -> Domain:
        if self._domain is None:
            raise DsmsError(f"domain {self._name!r} has not been opened yet")
        return self._domain

    @property
    def _runner(self) -> ActorRunner:
        runner = self._at_work.engine.runner
        assert isinstance(runner, ActorRunner)
        return runner


SchedulerActor = actor(Scheduler, **{ARRIVALS: 4, CONTROL: 4})
