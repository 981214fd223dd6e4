"""A scheduler actor that takes snapshots of its domain and restores one after a restart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, NamedTuple

from actors.hosts.host import Host, ResultTaker
from actors.hosts.state_copy import StateCopy, load_state_copy
from actors.rpc.messages import ARRIVALS, CONTROL, deserialize, make_actor_class, serialize
from actors.scheduler.scheduler import Scheduler
from dsms.engine.runners.station_state import StationState
from dsms.live.domain import Domain
from dsms.live.domain_snapshot import DomainState
from dsms.live.durable_domain import DurableDomain
from dsms.live.log_batch import LogBatch
from dsms.live.query_set import QuerySet


class DomainCheckpoint(NamedTuple):
    """A snapshot of a domain between two turns; its hosts hold the copies of station states."""

    snapshot: bytes
    results: dict[str, int]  # by query: the number of its last result
    positions: dict[str, int]  # by gateway: the offset up to which its log is applied
    dead_letter_bytes: int  # of the dead-letter file
    pause: float  # seconds that turns waited for the snapshot


class DurableScheduler(Scheduler):
    """A scheduler that applies gateways' logs, takes snapshots, and continues from one."""

    kind: ClassVar[type[Domain]] = DurableDomain

    def reopen(self, hosts: Sequence[Host], result_hub: ResultTaker | None, epoch: float, incarnation: int) -> None:
        """Open without queries, for `restore`."""
        self.fresh = False
        self.open(hosts, result_hub, epoch, incarnation)

    def position(self, gateway: str) -> int:
        return self._durable.position(gateway)

    def apply_log_batch(self, log_batch: LogBatch) -> float:
        return self._durable.apply_log_batch(log_batch)

    def reject_waiting(self) -> None:
        self._durable.reject_waiting()

    def snapshot(self) -> DomainCheckpoint:
        """Take a snapshot; hosts copy their states at the same instant."""
        dead_letter_bytes = 0

        def copy_state() -> None:
            nonlocal dead_letter_bytes
            self._runner.copy_state()
            dead_letter_bytes = self._dead_letters.size

        state, pause = self._durable.snapshot(copy_state)
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
        self._durable.restore(state, states, stalled_station)

    @property
    def _durable(self) -> DurableDomain:
        domain = self._running_domain
        assert isinstance(domain, DurableDomain)
        return domain


DurableSchedulerActor = make_actor_class(DurableScheduler, **{ARRIVALS: 4, CONTROL: 4})
