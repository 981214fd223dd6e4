"""A domain: one CPU budget, whose thread runs an engine and, between two turns, the jobs in its mailbox."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dsms.clock import monotonic_s
from dsms.config.live import LiveConfig, make_clock
from dsms.config.qos import Qos
from dsms.engine.engine import Engine, RunnerFactory
from dsms.engine.observers import Observer
from dsms.engine.runners.runner import DeadLetterSink, Sink
from dsms.engine.runners.station_state import StationState
from dsms.engine.watermarks import earliest_deadline_s
from dsms.errors import Cause, DsmsError, cause_of
from dsms.live.admission import Admission
from dsms.live.domain_snapshot import DomainState, TimedSnapshot, restore_snapshot, take_snapshot
from dsms.live.log_batch import LogBatch
from dsms.live.log_positions import LogPositions
from dsms.live.mailbox import Mailbox
from dsms.live.migration import StateTransfer, extract_state, migrate
from dsms.live.monitor.metrics import Metrics, Samples
from dsms.live.monitor.monitor import Monitor
from dsms.live.monitor.status import DomainStatus, EngineStatus, RecordingStatus
from dsms.live.quarantine import Quarantine
from dsms.live.query_set import QuerySet
from dsms.live.watchdog import StallCause, Watchdog
from dsms.policies.adaptive.gatherer import format_policy
from dsms.policies.registry import policy_named

if TYPE_CHECKING:
    from dsms.recording.recorder import RunRecorder

log = logging.getLogger("dsms")
ADMISSION_RETRY_S = 0.2  # how often to try to admit waiting rows while nothing else happens
T = TypeVar("T")


class Domain:
    """Runs a set of queries until it is closed; every call is carried out between two turns.

    No operator runs between two turns, so queues, state and results are consistent there.
    """

    def __init__(
        self,
        name: str,
        query_set: QuerySet,
        setup: LiveConfig,
        *,
        epoch: float | None = None,
        runner: RunnerFactory | None = None,
        observers: Sequence[Observer] = (),
        recorder: RunRecorder | None = None,
        sink: Sink | None = None,
        aside: DeadLetterSink | None = None,
    ) -> None:
        self.name, self.query_set, self._setup = name, query_set, setup
        self._mailbox = Mailbox(f"domain {name!r}", lambda: self.engine.row_runner.recall())
        self._changing = threading.Lock()  # one change of the query set at a time
        self.state = "running"
        self.error: str | None = None
        self.cause: Cause | None = None  # of `error`
        self._recorder = recorder
        self._observers = (*observers, *([] if recorder is None else [recorder]))
        self.monitor, self._metrics = Monitor(query_set.plan), Metrics(name)
        self.engine = Engine(
            query_set.plan,
            policy_named(setup.policy),
            clock=make_clock(setup, epoch, self._mailbox.wait),
            runner=runner,
            observers=(*self.monitor.observers, *self._observers),
            sink=sink,
            aside=aside,
        )
        self.monitor.phases.set_reason("first", 0.0)
        self._admission = Admission(setup, lambda: (self.monitor, self.engine))
        self._admission.set_plan(query_set.plan)
        self.quarantined, self.positions = Quarantine(name), LogPositions(name, lambda: self.engine)
        self._iterations, self._is_in_turn = 0, False
        self._last_status = EngineStatus()
        self.watchdog = Watchdog(
            name, setup.patience, self._read_progress, self._find_stall_cause, lambda s: self.engine.row_runner.end(s)
        )
        self._thread = threading.Thread(target=self._run, name=f"domain {name}", daemon=True)

    def start(self) -> None:
        """Start the domain's thread and its watchdog."""
        self._thread.start()
        self.watchdog.start()

    def ask(self, job: Callable[[], T]) -> Future[T]:
        """Run a job between two turns; the future completes with its result."""
        return self._mailbox.ask(job)

    def position(self, gateway: str) -> int:
        """The last offset of this gateway's log that was applied."""
        return self.ask(lambda: self.positions.get(gateway)).result()

    def apply_log_batch(self, batch: LogBatch) -> Future[dict[int, str]]:
        """Apply the next part of a gateway's log, as there is room; answers then why rows were refused, by offset."""
        refused: dict[int, str] = {}

        def enqueue() -> Future[None]:
            self._check()
            return self._admission.enqueue(self.positions.make_steps(batch, refused))

        return self._mailbox.ask_later(enqueue, refused)

    def reject_waiting(self) -> None:
        """Refuse the batches that wait for room; gateways send what was not applied again."""
        self.ask(lambda: self._admission.refuse(DsmsError(f"domain {self.name!r} is full"))).result()

    def snapshot(self, copy_states: Callable[[], object]) -> TimedSnapshot:
        """Take a snapshot between two turns; `copy_states` copies the operators' state at the same moment."""

        def take() -> TimedSnapshot:
            self._check()
            return take_snapshot(self, copy_states)

        return self.ask(take).result()

    def restore(
        self, snapshot: DomainState, states: Mapping[str, StationState], stalled_station: str | None = None
    ) -> None:
        """Continue from a snapshot, without queries so far; those of a stalled station are quarantined."""
        with self._changing:
            after = self.query_set.merge(snapshot.query_set)
            self.ask(lambda: restore_snapshot(self, snapshot, states, after, stalled_station)).result()

    def swap(self, policy: str, reason: str) -> dict[str, Any]:
        """Put another policy in charge from the next turn on; answers how long that took."""
        begun, following = monotonic_s(), policy_named(policy)

        def change() -> dict[str, Any]:
            before = format_policy(self.engine.control.chosen)
            if self._recorder is not None:
                self._recorder.reason = reason
            self.engine.swap(following)
            seconds = monotonic_s() - begun
            self.monitor.phases.set_reason(reason, seconds)
            return {"domain": self.name, "before": before, "after": policy, "seconds": seconds}

        return self.ask(change).result()

    def require(self, qos: str) -> None:
        """Set the quality-of-service goal."""
        goal = Qos.of(qos)
        self.ask(lambda: self.engine.control.require(goal)).result()

    def weigh(self, query: str, weight: float) -> None:
        """Set the weight of a query."""
        self.ask(lambda: self.engine.control.weigh(query, weight)).result()

    def pause(self) -> None:
        """Stop giving turns; rows are still admitted."""
        self.ask(lambda: self._set_state("running", "paused")).result()

    def resume(self) -> None:
        """Continue giving turns."""
        self.ask(lambda: self._set_state("paused", "running")).result()

    def status(self) -> DomainStatus:
        """The domain's present status; while a turn does not return, the figures of the last call."""
        if not self.watchdog.stalled or self._admission.is_stuck:
            self._last_status = self.ask(lambda: self.monitor.status(self.engine)).result()
        return DomainStatus(
            domain=self.name,
            state=self.state,
            error=self.error,
            recorded=self._recording_status(),
            clock=self._setup.clock,
            budget=self._setup.budget,
            ingest=self._admission.status(),
            watchdog=self.watchdog.status(),
            quarantine=self.quarantined.status(),
            **vars(self._last_status),
        )

    def metrics(self) -> Samples:
        """All metric samples; while a turn does not return, only the samples of the domain's state."""

        def measure() -> Samples:
            # A failed domain may have lost a host process, which cannot be asked for its state sizes.
            state_bytes = {} if self.state == "failed" else self._admission.state_bytes()
            return self._metrics.measure(self.monitor, self.engine, state_bytes)

        is_stalled = self.watchdog.stalled and not self._admission.is_stuck
        samples = {} if is_stalled else self.ask(measure).result()
        return samples | self._metrics.status_samples(
            self.state, self._recording_status(), self._admission.status(), self.watchdog.status()
        )

    def _recording_status(self) -> RecordingStatus | None:
        return None if self._recorder is None else RecordingStatus(**self._recorder.status())

    def why(self, count: int) -> list[dict[str, Any]]:
        """The last sampled decisions, the newest first."""
        return [{"domain": self.name, **each} for each in self.ask(lambda: self.monitor.why(count)).result()]

    def add(self, table: Mapping[str, Any], folder: Path | None = None, file: str = "") -> list[str]:
        """Add queries while the others run; answers their names."""
        with self._changing:
            before = {query.name for query in self.query_set.plan.queries}
            query_set = self.query_set.add(table, folder, file)
            self.ask(lambda: self.migrate(query_set)).result()
            return [query.name for query in query_set.plan.queries if query.name not in before]

    def remove(self, query: str) -> int:
        """Remove a query with the rows queued for it alone; answers the number of its last result batch."""
        with self._changing:
            query_set = self.query_set.remove(query)

            def leave() -> int:
                number = self.engine.runner.results[query]
                self.migrate(query_set)
                return number

            return self.ask(leave).result()

    def release(self, queries: Collection[str]) -> tuple[QuerySet, StateTransfer]:
        """Give up queries, and all that share operators with them, with their state, for another domain to adopt."""
        with self._changing:
            staying, leaving = self.query_set.split(queries)

            def leave() -> StateTransfer:
                self._check()
                transfer = extract_state(self.engine, [query.name for query in leaving.plan.queries])
                self.migrate(staying)
                return transfer

            return leaving, self.ask(leave).result()

    def adopt(self, coming: QuerySet, transfer: StateTransfer) -> None:
        """Continue queries that another domain has released, with their state."""
        with self._changing:
            query_set = self.query_set.merge(coming)
            self.ask(lambda: self.migrate(query_set, transfer)).result()

    def lift(self, query: str) -> list[str]:
        """Lift the quarantine of a query and of all with the same reason; answers which."""
        return self.ask(lambda: self.quarantined.lift(self.engine, query)).result()

    def quarantine(self, station: str, reason: str) -> None:
        """Quarantine the queries that need this operator."""
        self.ask(lambda: self.quarantined.quarantine(self.engine, station, reason)).result()

    def close(self) -> None:
        """End after the present turn; jobs in the mailbox are run first."""
        self.watchdog.close()
        self._mailbox.close()
        if self._thread.is_alive():
            self._thread.join()
        now = self.engine.clock.now()
        self.engine.finish(now)
        if self._recorder is not None:
            self._recorder.close() if self.error else self._recorder.finish(now)

    def _run(self) -> None:
        while not self._mailbox.closing:
            self.engine.row_runner.arm()
            self._mailbox.run_jobs()
            self._admission.admit_waiting()
            working = self.state == "running" and self._step()
            self._iterations += 1
            if not working and not (self.state == "running" and self._admission.admit_when_idle()):
                self._wait_for_work()
        self._mailbox.run_jobs()
        self._admission.refuse(DsmsError(f"domain {self.name!r} is closed"))

    def _step(self) -> bool:
        """Give one turn; answers whether there may be another. An error outside of operators fails the domain."""
        self._is_in_turn = True
        try:
            working = self.engine.step()
            if self.engine.runner.consecutive_failures:
                self.quarantined.check_failures(self.engine)
        except Exception as error:
            log.exception("domain %s has failed", self.name)
            killed, self.cause = self.watchdog.ended, cause_of(error)
            message = f"{type(error).__name__}: {error}"
            self.state = "failed"
            self.error = message if killed is None else f"{killed.what}, and was killed ({message})"
            self._admission.refuse(self._failure())
            working = False
        self._is_in_turn = False
        return working

    def _read_progress(self) -> Hashable | None:
        """For the watchdog: another value after every turn and every job; None while there is nothing to do."""
        if self._admission.is_stuck:
            return "full", self.monitor.turns
        return None if self._mailbox.is_waiting or self.state != "running" else (self._iterations, self._mailbox.done)

    def _find_stall_cause(self) -> StallCause:
        """For the watchdog: what keeps the domain from making progress."""
        if self._admission.is_stuck:
            return StallCause(self._admission.explain_stuck())
        current_work = self.engine.row_runner.current_work() if self._is_in_turn else None
        if current_work is None:
            return StallCause("the scheduler itself does not return")
        station, where, stack = current_work
        return StallCause(f"operator {station!r} ({where}) does not return", station, stack)

    def _wait_for_work(self) -> None:
        """Wait for a job, or until the next window closes."""
        due = (
            math.inf
            if self.state != "running" or self.engine.clock.exact
            else earliest_deadline_s(self.engine.runner.deadlines)
        )
        self.engine.clock.idle()
        wait = due - self.engine.clock.now()
        self._mailbox.wait(min(wait, ADMISSION_RETRY_S) if self._admission.has_waiting else wait)

    def _check(self) -> None:
        """Raise an error if the domain has failed."""
        if self.error is not None:
            raise self._failure()

    def _failure(self) -> DsmsError:
        return DsmsError(f"domain {self.name!r} has failed and accepts no calls: {self.error}")

    def _set_state(self, before: str, after: str) -> None:
        if self.state != before:
            raise DsmsError(f"domain {self.name!r} is {self.state}: only a {before} domain can become {after}")
        self.state = after

    def migrate(self, query_set: QuerySet, transfer: StateTransfer | None = None) -> None:
        """Continue with another query set, between two turns; if it is invalid, nothing is changed."""
        self._check()
        monitor = self.monitor.migrate(query_set.plan)
        observers = (*monitor.observers, *self._observers)
        try:
            self.engine = migrate(self.engine, query_set.plan, observers, transfer)
        except DsmsError:
            for observer in (*self.monitor.observers, *self._observers):  # from the engine that never started
                observer.attach(self.engine)
            raise
        self.query_set, self.monitor = query_set, monitor
        self.quarantined.reapply(self.engine)
        self._admission.set_plan(query_set.plan)
