"""One CPU budget at work: an engine in a thread of its own, and an inbox that is attended to between two turns."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from dsms.batch import Batch
from dsms.clock import Clock, PacedClock, VirtualClock, WallClock, stopwatch
from dsms.engine import Engine, RunnerFactory
from dsms.errors import DsmsError
from dsms.live.entrance import Entrance
from dsms.live.handover import Inventory, released, succeeded
from dsms.live.inbox import Inbox
from dsms.live.metrics import Metrics, Samples
from dsms.live.quarantine import Quarantine
from dsms.live.roster import Roster
from dsms.live.setup import Setup
from dsms.live.watch import Watch
from dsms.live.watchdog import Culprit, Watchdog
from dsms.observers import Observer
from dsms.parcel import Parcel
from dsms.policies.registry import policy_named
from dsms.progress import earliest
from dsms.qos import Qos
from dsms.recording import Recorder
from dsms.runners.base import Aside, Sink
from dsms.selection.gatherer import text_of

log = logging.getLogger("dsms")
GLANCE = 0.2  # seconds after which it is looked whether those that wait outside can be let in
T = TypeVar("T")


class Domain:
    """Runs the queries of a roster until it is closed; whatever is asked of it is done between two turns.

    Between two turns nothing runs, so whoever is let in there finds everything consistent: queues, state, results.
    """

    def __init__(
        self,
        name: str,
        roster: Roster,
        setup: Setup,
        *,
        epoch: float | None = None,
        runner: RunnerFactory | None = None,
        observers: Sequence[Observer] = (),
        recorder: Recorder | None = None,
        sink: Sink | None = None,
        aside: Aside | None = None,
    ) -> None:
        self.name, self.roster, self._setup = name, roster, setup
        self._inbox = Inbox(f"domain {name!r}")
        self._changing = threading.Lock()  # one change of the queries at a time: each begins with what was before
        self.state = "running"
        self.error: str | None = None
        self._recorder = recorder
        self._observers = (*observers, *([] if recorder is None else [recorder]))
        self.watch, self._metrics = Watch(roster.plan), Metrics(name)
        self.engine = Engine(
            roster.plan,
            policy_named(setup.policy),
            clock=clock_of(setup, epoch, self._inbox.nap),
            runner=runner,
            observers=(*self.watch.observers, *self._observers),
            sink=sink,
            aside=aside,
        )
        self.watch.phases.began("first", 0.0)
        self._entrance = Entrance(setup, lambda: (self.watch, self.engine))
        self._entrance.survey(roster.plan)
        self._quarantine = Quarantine(name)
        self._beats, self._turning = 0, False
        self._told: dict[str, Any] = {"streams": [], "queries": [], "stations": [], "phases": [], "asides": []}
        self.watchdog = Watchdog(name, setup.patience, self._pulse, self._culprit, lambda s: self.engine.runner.end(s))
        self._thread = threading.Thread(target=self._run, name=f"domain {name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self.watchdog.start()

    def ask(self, job: Callable[[], T]) -> Future[T]:
        """Have something done between two turns."""
        return self._inbox.ask(job)

    def arrived(self, goods: Sequence[tuple[str, Batch | Parcel]]) -> float:
        """Rows have come: answers, once there was room to admit them between two turns, how many are held then."""

        def come() -> Future[None]:
            self._check()
            return self._entrance.come(goods)

        self.ask(come).result().result()
        return self.engine.ledger.held

    def advance(self, stream: str, upto: int) -> None:
        """No older rows come by a stream."""
        self.ask(lambda: self.engine.advance(stream, upto)).result()

    def end(self) -> None:
        """No rows come any more."""
        self.ask(lambda: self.engine.end()).result()

    def swap(self, policy: str, reason: str) -> dict[str, Any]:
        """Let another policy decide from the next turn on; the time it took is from being asked to being in charge."""
        asked, following = stopwatch(), policy_named(policy)

        def change() -> dict[str, Any]:
            before = text_of(self.engine.chosen)
            if self._recorder is not None:
                self._recorder.reason = reason
            self.engine.swap(following)
            seconds = stopwatch() - asked
            self.watch.phases.began(reason, seconds)
            return {"domain": self.name, "before": before, "after": policy, "seconds": seconds}

        return self.ask(change).result()

    def require(self, qos: str) -> None:
        """Let this be what is wanted of the queries."""
        wanted = Qos.of(qos)
        self.ask(lambda: self.engine.require(wanted)).result()

    def weigh(self, query: str, weight: float) -> None:
        """Let a query count so much."""
        self.ask(lambda: self.engine.weigh(query, weight)).result()

    def pause(self) -> None:
        """Give no turns; what comes is still admitted."""
        self.ask(lambda: self._turn_to("running", "paused")).result()

    def resume(self) -> None:
        """Give turns again."""
        self.ask(lambda: self._turn_to("paused", "running")).result()

    def status(self) -> dict[str, Any]:
        """How things stand, as plain data; while a turn does not come back, how they stood when last asked."""
        if not self.watchdog.stalled or self._entrance.stuck:
            self._told = self.ask(lambda: self.watch.status(self.engine)).result()
        setup = {"clock": self._setup.clock, "budget": self._setup.budget, "ingest": self._entrance.status()}
        ill = {"watchdog": self.watchdog.status(), "quarantine": self._quarantine.status()}
        return {
            "domain": self.name,
            "state": self.state,
            "error": self.error,
            **self._recorded(),
            **setup,
            **ill,
            **self._told,
        }

    def metrics(self) -> Samples:
        """All that is measured of it, as plain data; while a turn does not come back, only that it does not."""

        def samples() -> Samples:
            # One that has failed has perhaps done so because a process is gone, which cannot be asked.
            state = {} if self.state == "failed" else self._entrance.state()
            return self._metrics.samples(self.watch, self.engine, state)

        stalled = self.watchdog.stalled and not self._entrance.stuck
        told = {} if stalled else self.ask(samples).result()
        recorded = self._recorded()["recorded"]
        return told | self._metrics.standing(self.state, recorded, self._entrance.status(), self.watchdog.status())

    def _recorded(self) -> dict[str, Any]:
        return {"recorded": None if self._recorder is None else self._recorder.status()}

    def why(self, count: int) -> list[dict[str, Any]]:
        """The last decisions."""
        return self.ask(lambda: self.watch.why(count)).result()

    def add(self, table: Mapping[str, Any], folder: Path | None = None, file: str = "") -> list[str]:
        """Take queries in while the others go on; answers their names."""
        with self._changing:
            before = {query.name for query in self.roster.plan.queries}
            roster = self.roster.adding(table, folder, file)
            self.ask(lambda: self._become(roster)).result()
            return [query.name for query in roster.plan.queries if query.name not in before]

    def remove(self, query: str) -> int:
        """Let a query go, with what is queued for it alone; answers the number of its last results."""
        with self._changing:
            roster = self.roster.removing(query)

            def leave() -> int:
                number = self.engine.runner.results[query]
                self._become(roster)
                return number

            return self.ask(leave).result()

    def release(self, queries: Collection[str]) -> tuple[Roster, Inventory]:
        """Let queries go to another domain, and those that must go with them, with all that is theirs."""
        with self._changing:
            staying, going = self.roster.leaving(queries)

            def leave() -> Inventory:
                self._check()
                inventory = released(self.engine, [query.name for query in going.plan.queries])
                self._become(staying)
                return inventory

            return going, self.ask(leave).result()

    def adopt(self, coming: Roster, inventory: Inventory) -> None:
        """Take queries in from another domain, where they left off there, with their stations as they are."""
        with self._changing:
            roster = self.roster.adopting(coming)
            self.ask(lambda: self._become(roster, inventory)).result()

    def readmit(self, query: str) -> list[str]:
        """Let a query out of quarantine, and all that rest for the same reason; answers which."""
        return self.ask(lambda: self._quarantine.release(self.engine, query)).result()

    def bar(self, station: str, reason: str) -> None:
        """Put the queries that need this operator into quarantine."""
        self.ask(lambda: self._quarantine.bar(self.engine, station, reason)).result()

    def close(self) -> None:
        """End after the present turn; what is still asked is done before."""
        self.watchdog.close()
        self._inbox.close()
        if self._thread.is_alive():
            self._thread.join()
        now = self.engine.clock.now()
        self.engine.finish(now)
        if self._recorder is not None:
            self._recorder.close() if self.error else self._recorder.finish(now)

    def _run(self) -> None:
        while not self._inbox.closing:
            self._inbox.attend()
            self._entrance.let_in()
            working = self.state == "running" and self._step()
            self._beats += 1
            if not working and not (self.state == "running" and self._entrance.relieve()):
                self._rest()
        self._inbox.attend()
        self._entrance.refuse(DsmsError(f"domain {self.name!r} is closed"))

    def _step(self) -> bool:
        """Give a turn; whether there may be another. What goes wrong with it, but for an operator, is the end."""
        self._turning = True
        try:
            working = self.engine.step()
            if self.engine.runner.barren:
                self._quarantine.look(self.engine)
        except Exception as error:
            log.exception("domain %s has failed", self.name)
            ended = self.watchdog.ended
            said = f"{type(error).__name__}: {error}"
            self.state, self.error = "failed", said if ended is None else f"{ended.what}, and was ended ({said})"
            self._entrance.refuse(self._failure())
            working = False
        self._turning = False
        return working

    def _pulse(self) -> Hashable | None:
        """For the watchdog: something else after every turn and all that is asked; None where nothing is to be done."""
        if self._entrance.stuck:
            return "full", self.watch.turns
        return None if self._inbox.resting or self.state != "running" else (self._beats, self._inbox.done)

    def _culprit(self) -> Culprit:
        """For the watchdog: who keeps it from getting on."""
        if self._entrance.stuck:
            return Culprit(self._entrance.why_stuck())
        doing = self.engine.runner.doing() if self._turning else None
        if doing is None:
            return Culprit("the scheduler itself does not come back")
        station, where, stack = doing
        return Culprit(f"operator {station!r} ({where}) does not come back", station, stack)

    def _rest(self) -> None:
        """Wait until something is asked, or a window closes that somebody waits for."""
        due = math.inf if self.state != "running" or self.engine.clock.exact else earliest(self.engine.runner.deadlines)
        wait = due - self.engine.clock.now()
        self._inbox.nap(min(wait, GLANCE) if self._entrance.busy else wait)

    def _check(self) -> None:
        """Refuse what only a domain can do whose turns have all come to their end."""
        if self.error is not None:
            raise self._failure()

    def _failure(self) -> DsmsError:
        return DsmsError(f"domain {self.name!r} has failed and takes nothing in: {self.error}")

    def _turn_to(self, before: str, after: str) -> None:
        if self.state != before:
            raise DsmsError(f"domain {self.name!r} is {self.state}: only what is {before} can be {after}")
        self.state = after

    def _become(self, roster: Roster, inventory: Inventory | None = None) -> None:
        """Go on with other queries; what is wrong with them is found out before anything has changed."""
        self._check()
        watch = self.watch.carried(roster.plan)
        observers = (*watch.observers, *self._observers)
        try:
            self.engine = succeeded(self.engine, roster.plan, observers, inventory)
        except DsmsError:
            for observer in (*self.watch.observers, *self._observers):  # told, perhaps, of one that never began
                observer.attach(self.engine)
            raise
        self.roster, self.watch = roster, watch
        self._quarantine.apply(self.engine)
        self._entrance.survey(roster.plan)


def clock_of(setup: Setup, epoch: float | None, sleep: Callable[[float], object]) -> Clock:
    """The clock that a setup asks for."""
    if setup.clock == "virtual":
        return VirtualClock()
    return PacedClock(epoch, sleep, budget=setup.budget) if setup.clock == "paced" else WallClock(epoch, sleep)


def measured(table: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
    """A plan's table for a live system: unless it says otherwise, costs are measured and bad rows are put aside.

    Rows of streams with columns are pushed: what the plan says of their arrivals is for whoever pushes them.
    """
    live = {"on_error": "dead-letter", **({"statistics": "average"} if setup.clock == "wall" else {})}
    streams = {
        name: {key: value for key, value in each.items() if key != "arrivals"} if "schema" in each else each
        for name, each in table.get("streams", {}).items()
    }
    return {**table, "streams": streams, "run": {**live, **table.get("run", {})}}
