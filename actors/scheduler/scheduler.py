"""The scheduler actor of one domain: passes calls to its engine, which grants turns to hosts."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import ray

from actors.cluster.malloc_trim import start_malloc_trim
from actors.hosts.host import Host, ResultTaker
from actors.hosts.host_pool import HostPool
from actors.hosts.runner import ActorRunner
from actors.hosts.state_copy import StateCopy, load_state_copy
from actors.rpc.messages import ARRIVALS, CONTROL, PlanTable, deserialize, make_actor_class, serialize
from actors.scheduler.verbs import VERBS
from actors.transport.address import Address
from actors.transport.listener import Listener
from dsms.config.live import LiveConfig, apply_live_defaults
from dsms.data.dead_letter import DeadLetter
from dsms.engine.observers import Observer
from dsms.engine.runners.station_state import StationState
from dsms.errors import Cause, DsmsError
from dsms.gc_tuning import reduce_gc
from dsms.io.dead_letters import DeadLetterFile
from dsms.live.domain import Domain
from dsms.live.domain_snapshot import DomainState
from dsms.live.log_batch import LogBatch
from dsms.live.monitor.metrics import Samples
from dsms.live.monitor.status import DomainStatus
from dsms.live.query_set import QuerySet
from dsms.measure.trace import TurnTrace
from dsms.plan.graph import Plan

if TYPE_CHECKING:
    from dsms.recording.recorder import RunRecorder

log = logging.getLogger("dsms")


class DomainCheckpoint(NamedTuple):
    """A snapshot of a domain between two turns; its hosts hold the copies of station states."""

    snapshot: bytes
    results: dict[str, int]  # by query: the number of its last result
    positions: dict[str, int]  # by gateway: the offset up to which its log is applied
    dead_letter_bytes: int  # of the dead-letter file
    pause: float  # seconds that turns waited for the snapshot


class Scheduler:
    """One domain's engine behind remote calls, and nothing else."""

    def __init__(
        self,
        name: str,
        table: PlanTable,
        folder: str,
        file: str,
        queries: Collection[str] | None,
        setup: LiveConfig,
        trace: str | None = None,
    ) -> None:
        start_malloc_trim()
        self._name, self._setup, self._trace, self._folder = name, setup, trace, Path(folder)
        self._query_set = QuerySet(apply_live_defaults(table, setup), Path(folder), file, queries)
        self._dead_letters = DeadLetterFile(
            Path(folder) / setup.dead_letters / f"{Path(file or 'plan').stem}.{name}.dead.jsonl"
        )
        self._has_lost_letters = False  # whether dead letters could not be written
        self._domain: Domain | None = None
        self._listener: Listener | None = None
        self._open = ExitStack()

    def open(
        self,
        hosts: Sequence[Host],
        result_hub: ResultTaker | None = None,
        epoch: float | None = None,
        incarnation: int = 0,
        resumed: bool = False,
    ) -> None:
        """Bring stations to hosts and start; instants count from the epoch. With `resumed`, `restore` comes next."""
        reduce_gc().__enter__()  # until the process ends
        self._dead_letters.path.parent.mkdir(parents=True, exist_ok=True)
        if not resumed:
            self._dead_letters.begin()
        self._domain = Domain(
            self._name,
            self._query_set,
            self._setup,
            epoch=epoch,
            runner=partial(ActorRunner, host_pool=HostPool(hosts, result_hub, incarnation=incarnation)),
            observers=self._make_observers(),
            recorder=self._recorder(epoch),
            aside=self._write_dead_letter,
        )
        self._domain.start()

    def addresses(self) -> tuple[Address, list[Address]]:
        """Where gateways on this machine call this scheduler and its hosts."""
        if self._listener is None:
            self._listener = Listener({"apply_log_batch": self._start_log_batch})
        return self._listener.address, self._runner.host_pool.addresses

    def ping(self) -> bool:
        """Answer that the process runs."""
        return True

    def position(self, gateway: str) -> int:
        return self._running_domain.position(gateway)

    def apply_log_batch(self, log_batch: LogBatch) -> dict[int, str]:
        return self._running_domain.apply_log_batch(log_batch).result()

    def _start_log_batch(self, fields: Sequence[Any]) -> Future[dict[int, str]]:
        """Apply a log batch that comes through the socket, whose next call does not wait for it."""
        return self._running_domain.apply_log_batch(LogBatch.read(fields))

    def reject_waiting(self) -> None:
        self._running_domain.reject_waiting()

    def snapshot(self) -> DomainCheckpoint:
        """Take a snapshot; hosts copy their states at the same instant."""
        dead_letter_bytes = 0

        def copy_states() -> None:
            nonlocal dead_letter_bytes
            self._runner.copy_state()
            dead_letter_bytes = self._dead_letters.size

        state, pause = self._running_domain.snapshot(copy_states)
        return DomainCheckpoint(
            serialize(state), dict(state.transfer.results), dict(state.positions), dead_letter_bytes, pause
        )

    def restore(
        self,
        domain_checkpoint: DomainCheckpoint,
        state_copies: Sequence[StateCopy],
        query_set: QuerySet | None = None,
        staying: Collection[str] = (),
        stalled_station: str | None = None,
    ) -> None:
        """Continue from a snapshot; with another query set, only stations in `staying` keep their state."""
        state: DomainState = deserialize(domain_checkpoint.snapshot)
        states: dict[str, StationState] = {
            name: one for each in state_copies for name, one in load_state_copy(each).items()
        }
        if query_set is not None:
            state = state.migrate(query_set, staying)
            states = {name: one for name, one in states.items() if name in staying}
        self._dead_letters.resume_at(domain_checkpoint.dead_letter_bytes)
        self._running_domain.restore(state, states, stalled_station)

    def control(self, verb: str, *arguments: object) -> object:
        """Carry out one of the verbs of `actors.scheduler.verbs` on the domain."""
        result: object = getattr(self._running_domain, VERBS[verb].name)(*arguments)
        return result

    def status(self) -> DomainStatus:
        """The domain's status with the host of each operator and the node of this scheduler."""
        status, places = self._running_domain.status(), self._runner.places
        operators = [replace(each, actor=places.get(each.name)) for each in status.stations]  # None: just removed
        node = ray.get_runtime_context().get_node_id()[:8] if ray.is_initialized() else "here"
        return replace(status, stations=operators, node=node)

    def failure(self) -> Cause | None:
        """Why the domain has failed; None if it has not."""
        return self._running_domain.cause

    def metrics(self) -> Samples:
        """The domain's metrics, with the host of each operator."""
        samples, places = self._running_domain.metrics(), self._runner.places
        samples["dsms_operator_info"] = [
            ((*labels[:-1], str(places.get(labels[1], ""))), value) for labels, value in samples["dsms_operator_info"]
        ]
        return samples

    def add(self, table: PlanTable, folder: str, file: str) -> list[str]:
        return self._running_domain.add(table, Path(folder), file)

    def remove(self, query: str) -> int:
        return self._running_domain.remove(query)

    def release(self, queries: Collection[str]) -> bytes:
        """Remove queries and return them with their state, for `adopt` of another domain."""
        return serialize(self._running_domain.release(queries))

    def adopt(self, moved: bytes) -> None:
        self._running_domain.adopt(*deserialize(moved))

    def quarantine(self, station: str, reason: str) -> None:
        self._running_domain.quarantine(station, reason)

    def routes(self) -> dict[str, list[int]]:
        """By stream: the places of the hosts that read it."""
        domain = self._running_domain

        def readers(plan: Plan) -> dict[str, list[int]]:
            places = self._runner.places
            return {s.name: sorted({places[reader.name] for reader in s.consumers}) for s in plan.streams}

        return domain.ask(lambda: readers(domain.engine.plan)).result()

    def close(self) -> dict[str, int]:
        """Stop and drop what is queued; returns the number of the last result of each query."""
        if self._listener is not None:
            self._listener.close()
        if self._domain is not None:
            self._domain.close()
        self._dead_letters.close()
        self._open.close()
        return dict(self._runner.results) if self._domain is not None else {}

    def _write_dead_letter(self, station: str, dead_letter: DeadLetter) -> None:
        """Write rejected rows to a file; a full disk must not end the domain."""
        try:
            self._dead_letters.add(station, dead_letter)
        except OSError as error:
            if not self._has_lost_letters:
                log.error("domain %s: dead letters are lost, only counted: %s", self._name, error)
            self._has_lost_letters = True

    def _recorder(self, epoch: float | None) -> RunRecorder | None:
        """The recorder of the run, on this node's disk; None where recording is off."""
        if not self._setup.record:
            return None
        from dsms.recording.recorder import RunRecorder  # loads pyarrow: only when recording

        return RunRecorder(self._folder / self._setup.record / self._name, "live", strict=False, began=epoch)

    def _make_observers(self) -> list[Observer]:
        """A trace of turns, where one is asked for."""
        if self._trace is None:
            return []
        with ExitStack() as stack:
            file = stack.enter_context(Path(self._trace).open("w", encoding="utf-8", buffering=1))
            self._open = stack.pop_all()  # closed at the end
        return [TurnTrace(file)]

    @property
    def _running_domain(self) -> Domain:
        if self._domain is None:
            raise DsmsError(f"domain {self._name!r} has not been opened yet")
        return self._domain

    @property
    def _runner(self) -> ActorRunner:
        runner = self._running_domain.engine.runner
        assert isinstance(runner, ActorRunner)
        return runner


SchedulerActor = make_actor_class(Scheduler, **{ARRIVALS: 4, CONTROL: 4})
