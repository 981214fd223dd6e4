"""A deployment that saves checkpoints: on request, and before it confirms any change to what runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from actors.checkpoints.checkpoint import DeploymentCheckpoint, DomainCheckpoints
from actors.checkpoints.status import DurabilityStatus
from actors.checkpoints.store import CheckpointStore
from actors.deployment.actor_handles import DeploymentActors, wait_until
from actors.deployment.control import MIGRATION_TIMEOUT_S
from actors.deployment.deployment import RESULT_WAIT_S, Deployment
from actors.deployment.launch import DeploymentSpec, check_sinks
from actors.recovery.failure_detector import FailureDetector
from actors.recovery.replace import list_domain_actors
from actors.results.durable_result_hub import DurableResultHub
from actors.rpc.answers import await_answer, await_answers
from actors.rpc.messages import CONTROL, STATE_COPIES, JsonObject, PlanTable, send
from actors.scheduler.durable_scheduler import DurableScheduler
from dsms.clock import monotonic_s
from dsms.errors import Cause, DsmsError
from dsms.live.monitor.metrics import Samples
from dsms.live.monitor.status import DeploymentStatus, DurableStatus

log = logging.getLogger("dsms")


class SavedDeployment(Deployment):
    """A deployment whose answered changes survive: each is in a checkpoint before it is answered."""

    def __init__(
        self, name: str, table: PlanTable, folder: str, file: str, spec: DeploymentSpec, parts: DeploymentActors
    ) -> None:
        super().__init__(name, table, folder, file, spec.setup, parts)
        self._table, self._spec = table, spec
        self._checkpoint_store = CheckpointStore(Path(spec.durable))
        self._folders: dict[str, str] = {}  # by query: the folder that its files are relative to
        self._incarnation = max(domain_actors.incarnation for domain_actors in parts.actors_by_domain.values())
        self._unsaved = False  # whether queries were added, removed or moved since the last checkpoint
        self._broken: set[str] = set()  # actors to be rebuilt: not empty while a recovery runs or after it failed
        self._durability, self._ingest_stopped = DurabilityStatus(spec.durable), False
        self._failure_detector, self._ended = FailureDetector(), threading.Event()

    @property
    def _result_hub(self) -> DurableResultHub:
        return cast(DurableResultHub, self._parts.result_hub)  # a durable deployment starts no other

    def _scheduler(self, domain: str) -> DurableScheduler:
        return cast(DurableScheduler, self._parts.actors_by_domain[domain].scheduler)

    def checkpoint(self) -> JsonObject:
        """Save a checkpoint; returns its number, size and duration."""
        with self._change_lock:
            self._save()
            return self._durability.checkpoint

    def status(self) -> DeploymentStatus:
        """The deployment's status with its last checkpoint and recoveries."""
        return replace(super().status(), durable=DurableStatus.of(self.durability()))

    def durability(self) -> JsonObject:
        """The durability; calls no other actor."""
        return self._durability.status()

    def metrics(self) -> Samples:
        """The durability as samples."""
        return self._durability.metrics()

    def add(self, table: PlanTable, folder: str, file: str) -> list[str]:
        """Add queries to a running plan; they survive a crash."""
        with self._change_lock:
            self._check_recovered()
            check_sinks(self._query_set.add(table, Path(folder), file).plan)
            self._unsaved = True
            names = super().add(table, folder, file)
            self._folders.update(dict.fromkeys(names, folder))
            self._save()
            return names

    def remove(self, query: str) -> None:
        """Remove a query from a running plan."""
        with self._change_lock:
            self._check_recovered()
            self._unsaved = True
            super().remove(query)

    def move(self, query: str, domain: str) -> JsonObject:
        """Move a query to another domain."""
        with self._change_lock:
            self._check_recovered()
            self._unsaved = True
            moved = super().move(query, domain)
            self._save()
            return moved

    def down(self) -> str | None:
        """End all actors after a last checkpoint, for `dsms up --resume`; returns why there is none, if so."""
        self._ended.set()
        unsaved: str | None = None
        with self._change_lock:
            try:
                self._save()
            except DsmsError as error:
                unsaved = f"{self._name!r} ends without a last checkpoint: {error}"
                log.warning("%s", unsaved)
            super().down()
        return unsaved

    @contextmanager
    def _control_change(self) -> Iterator[None]:
        """Refuse a change while actors are rebuilt; save a checkpoint after it."""
        with self._change_lock:
            self._check_recovered()
            yield
            self._save()

    def _finish(self, query: str, number: int) -> None:
        self._folders.pop(query, None)
        self._save({query: number})
        super()._finish(query, number)

    def _save(self, gone: Mapping[str, int] | None = None) -> None:
        """Save a checkpoint: snapshots of all domains, then their results, then it is committed.

        Refused while actors are half rebuilt: they lack results of the last checkpoint.
        """
        self._check_recovered()
        started, result_hub = monotonic_s(), self._result_hub
        domains = self._snapshot_domains()
        numbers = {
            query: n
            for domain_checkpoint in domains.by_domain.values()
            for query, n in domain_checkpoint.results.items()
        }
        numbers.update(gone or {})
        if not wait_until(lambda: not self._call(result_hub.find_incomplete, numbers), RESULT_WAIT_S):
            incomplete = self._call(result_hub.find_incomplete, numbers)
            raise DsmsError(f"results of {incomplete} did not arrive within {RESULT_WAIT_S:g} s")
        done = self._checkpoint_store.save(self._make_checkpoint(numbers), domains)
        self._call(result_hub.release, numbers)
        self._unsaved = False
        gateways = {f"gateway-{place}": gateway for place, gateway in enumerate(self._parts.gateways)}
        for name, upto in self._checkpoint_store.find_truncation_offsets().items():
            send(gateways[name].truncate, upto)
        pauses = {name: domain_checkpoint.pause for name, domain_checkpoint in domains.by_domain.items()}
        self._durability.record_checkpoint(done, pauses, monotonic_s() - started)
        if self._ingest_stopped:
            self._stop_ingest(False)

    def _check_recovered(self) -> None:
        """Raise an error while actors have ended or are half rebuilt."""
        if self._broken:
            raise DsmsError(
                f"nothing is saved or changed: {', '.join(sorted(self._broken))} ended and could not be rebuilt yet "
                f"({self._durability.error}). Repair that: recovery is retried by itself, and `dsms status` reports "
                "when it has succeeded. The last checkpoint is kept"
            )

    def _stop_ingest(self, on: bool) -> None:
        """Have gateways stop or resume reading: without checkpoints, results would fill the memory."""
        for gateway in self._parts.gateways:
            send(gateway.stop_ingest, on, group=CONTROL)
        self._ingest_stopped = on

    def _make_checkpoint(self, numbers: dict[str, int]) -> DeploymentCheckpoint:
        return DeploymentCheckpoint(
            self._epoch,
            self._table,
            self._query_set,
            dict(self._domain_by_query),
            dict(self._folders),
            list(self._gateway_addresses),
            self._call(self._result_hub.snapshot, numbers),
            numbers,
            self._incarnation,
            self._durability.recoveries,
        )

    def _snapshot_domains(self) -> DomainCheckpoints:
        """Take snapshots of all domains; a domain that has failed by an error in code keeps its last one."""
        calls = {name: send(self._scheduler(name).snapshot, group=CONTROL) for name in self._parts.actors_by_domain}
        domains, failed = DomainCheckpoints(), list[str]()
        for name, call in calls.items():
            try:
                domains.by_domain[name] = await_answer(call, f"the snapshot of domain {name}", MIGRATION_TIMEOUT_S)
            except DsmsError:
                if not self._has_failed(name):
                    raise
                failed.append(name)
                continue
            copies = [
                send(host.fetch_state_copy, group=STATE_COPIES) for host in self._parts.actors_by_domain[name].hosts
            ]
            domains.state_copies[name] = await_answers(copies, f"state copies of domain {name}", MIGRATION_TIMEOUT_S)
        if failed:
            before = self._checkpoint_store.domains(failed)
            domains.by_domain.update(before.by_domain)
            domains.state_copies.update(before.state_copies)
        return domains

    def _has_failed(self, domain: str) -> bool:
        """Whether all actors of a domain run, and it has failed by an error in code."""
        if self._failure_detector.find_dead(list_domain_actors(self._parts, domain)):
            return False
        try:
            call = send(self._parts.actors_by_domain[domain].scheduler.failure, group=CONTROL)
            return await_answer(call, f"why domain {domain} failed") is Cause.ERROR
        except DsmsError:  # it does not answer, or has not started
            return False
