"""Saves checkpoints of a running system: periodically, on request, and before any change to it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from actors.checkpoints.checkpoint import DeploymentCheckpoint, DomainCheckpoints
from actors.checkpoints.status import DurabilityStatus
from actors.checkpoints.store import CheckpointStore
from actors.deployment.running_system import MIGRATION_TIMEOUT_S, RESULT_WAIT_S, RunningSystem
from actors.recovery.failure_detector import FailureDetector
from actors.recovery.replace import list_domain_actors
from actors.rpc.answers import await_answer, await_answers
from actors.rpc.messages import CONTROL, STATE_COPIES, send
from dsms.clock import monotonic_s
from dsms.errors import Cause, DsmsError


class Checkpointer:
    """Saves snapshots of all domains with the results that each checkpoint covers, and has those released."""

    def __init__(self, system: RunningSystem) -> None:
        self._system = system
        self.store = CheckpointStore(Path(system.spec.durable))
        self.durability, self.failure_detector = DurabilityStatus(system.spec.durable), FailureDetector()
        self.unsaved = False  # whether queries were added, removed or moved since the last checkpoint
        self._ingest_stopped = False

    def save(self, gone: Mapping[str, int] | None = None) -> None:
        """Save a checkpoint: snapshots of all domains, then their results, then it is committed.

        `gone`: removed queries, with the number of their last result. Refused while actors are half rebuilt: they lack
        results of the last checkpoint.
        """
        self.check_recovered()
        started, system = monotonic_s(), self._system
        domains = self._snapshot_domains()
        by_domain = domains.by_domain.values()
        numbers = {query: number for domain in by_domain for query, number in domain.results.items()}
        numbers.update(gone or {})
        if not system.wait_for_results(numbers):
            incomplete = system.call(system.actors.result_hub.find_incomplete, numbers)
            raise DsmsError(f"results of {incomplete} did not arrive within {RESULT_WAIT_S:g} s")
        done = self.store.save(self._make_checkpoint(numbers), domains)
        system.call(system.actors.result_hub.release, numbers)
        self.unsaved = False
        gateways = {f"gateway-{place}": gateway for place, gateway in enumerate(system.actors.gateways)}
        for name, upto in self.store.find_truncation_offsets().items():
            send(gateways[name].truncate, upto)
        pauses = {name: domain_checkpoint.pause for name, domain_checkpoint in domains.by_domain.items()}
        self.durability.record_checkpoint(done, pauses, monotonic_s() - started)
        if self._ingest_stopped:
            self.stop_ingest(False)

    def check_recovered(self) -> None:
        """Raise an error while actors have ended or are half rebuilt."""
        if self._system.broken:
            raise DsmsError(
                f"nothing is saved or changed: {', '.join(sorted(self._system.broken))} ended and could not be rebuilt "
                f"yet ({self.durability.error}). Repair that: recovery is retried by itself, and `dsms status` reports "
                "when it has succeeded. The last checkpoint is kept"
            )

    def stop_ingest(self, on: bool) -> None:
        """Have gateways stop or resume reading: without checkpoints, results would fill the memory."""
        for gateway in self._system.actors.gateways:
            send(gateway.stop_ingest, on, group=CONTROL)
        self._ingest_stopped = on

    def _make_checkpoint(self, numbers: dict[str, int]) -> DeploymentCheckpoint:
        system = self._system
        return DeploymentCheckpoint(
            system.epoch,
            system.spec.table,
            system.query_set,
            dict(system.domain_by_query),
            dict(system.folders),
            list(system.gateway_addresses),
            system.call(system.actors.result_hub.snapshot, numbers),
            numbers,
            system.incarnation,
            self.durability.recoveries,
        )

    def _snapshot_domains(self) -> DomainCheckpoints:
        """Take snapshots of all domains; a domain that has failed by an error in code keeps its last one."""
        actors_by_domain = self._system.actors.actors_by_domain
        calls = {name: send(one.scheduler.snapshot, group=CONTROL) for name, one in actors_by_domain.items()}
        domains, failed = DomainCheckpoints(), list[str]()
        for name, call in calls.items():
            try:
                domains.by_domain[name] = await_answer(call, f"the snapshot of domain {name}", MIGRATION_TIMEOUT_S)
            except DsmsError:
                if not self._has_failed(name):
                    raise
                failed.append(name)
                continue
            copies = [send(host.fetch_state_copy, group=STATE_COPIES) for host in actors_by_domain[name].hosts]
            domains.state_copies[name] = await_answers(copies, f"state copies of domain {name}", MIGRATION_TIMEOUT_S)
        if failed:
            before = self.store.domains(failed)
            domains.by_domain.update(before.by_domain)
            domains.state_copies.update(before.state_copies)
        return domains

    def _has_failed(self, domain: str) -> bool:
        """Whether all actors of a domain run, and it has failed by an error in code."""
        if self.failure_detector.find_dead(list_domain_actors(self._system.actors, domain)):
            return False
        try:
            call = send(self._system.actors.actors_by_domain[domain].scheduler.failure, group=CONTROL)
            return await_answer(call, f"why domain {domain} failed") is Cause.ERROR
        except DsmsError:  # it does not answer, or has not started
            return False
