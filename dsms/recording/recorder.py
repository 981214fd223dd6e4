"""A run written down as it goes on: turns, arrivals, outputs, memory with its bound, and phases, in parts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsms.bound import Bound
from dsms.clock import RealClock, stopwatch
from dsms.departures import Departures
from dsms.errors import DsmsError
from dsms.journal import Journal
from dsms.observers import Observer
from dsms.policies.base import Policy
from dsms.recording.about import about
from dsms.recording.parts import Parts
from dsms.recording.stretch import Floats, Stretch
from dsms.runners.base import Step
from dsms.segment import Segment
from dsms.selection.gatherer import text_of

if TYPE_CHECKING:
    from dsms.engine import Engine

log = logging.getLogger("dsms")
ROWS = 1 << 18  # of a table, after which they become a part
GLANCE = 0.005  # seconds between two looks at what had to be held
SECONDS = 5.0  # after which they do, too, so that a run that dies leaves all but the last of it
FIRST, SWAPPED = "first", "swapped"


class Recorder(Observer):
    """Writes a run to a folder; where that fails, a `strict` one ends the run, any other gives up and says so.

    It goes on when an engine is succeeded by one for another plan: stations, streams and queries go by their names.
    """

    trusted = True  # what goes wrong with the disk is dealt with here
    _engine: Engine  # once it is attached

    def __init__(self, folder: Path, runtime: str, *, strict: bool = True, began: float | None = None) -> None:
        self.folder, self._strict = folder, strict
        domain = folder.name if runtime == "live" else None
        self._about: dict[str, Any] = {"name": folder.name, "domain": domain, "runtime": runtime, "began": began}
        self._about |= {"since": None, "complete": False, "until": None}
        self._parts, self._stretch = Parts(folder), Stretch()
        self.reason = SWAPPED  # why the next policy is put in charge
        self.error: str | None = None  # why nothing is recorded any more
        self._open, self._turn, self._decider = True, 0, 0
        self._policy: Policy | None = None  # who decided on the last turn
        self._described: Engine | None = None
        self._bound: Bound | None = None  # on a real clock, where memory is what a user has to find room for
        self._looked = 0.0
        self._begun = False  # whether the first phase is written down
        self._written = stopwatch()
        self._parts.begin()

    def attach(self, engine: Engine) -> None:
        self._engine, names = engine, self._stretch.names
        self._real, self._pace = isinstance(engine.clock, RealClock), 1 / engine.clock.budget
        self._streams = [names["stream"].code(stream.name) for stream in engine.plan.streams]
        self._stations = [names["station"].code(station.name) for station in engine.plan.stations]
        self._queries = np.array([names["query"].code(query.name) for query in engine.plan.queries], np.int64)
        if self._real:
            self._bound = Bound(engine.plan) if self._bound is None else self._bound.carried(engine.plan)
            self._bound.attach(engine)
        if self._described is None:
            self._about["since"] = self._folded = engine.clock.now()
            first = np.array([self._folded])
            self._stretch.add("memory", first, np.zeros(1), self._sizes([0.0], 1))  # from when the next row lasts
            self._describe()

    def arrive(self, now: float, stream: int, count: int) -> None:
        if self._bound is not None:
            self._look(now, self._engine.ledger.held - count * self._engine.ledger.streams[stream].copies)
            self._bound.arrive(now, stream, count)
        self._stretch.arrivals += (now, self._streams[stream], count, self._engine.lag)

    def begin(self, now: float) -> None:
        if self._bound is not None and now - self._looked > GLANCE:
            self._look(now, self._engine.ledger.held)

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self._policy is not self._engine.policy:
            self._policy = self._engine.policy
            self._decider = self._stretch.names["policy"].code(text_of(self._policy))
        number, decider, at, rows = self._turn, self._decider, start, self._stretch.steps
        for step in steps:
            cost = step[3]
            rows += (number, at, self._stations[step[0].station.index], step[1], step[2], cost, decider)
            at += cost * self._pace
        self._turn = number + 1
        if self._real and start - self._folded > SECONDS:
            self._engine.fold()  # where little happens a journal takes long to fill

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        if after is self._engine.chosen and after is not before:  # else a selector lets another one decide
            self._begin(before)
            self._phase(now, after, self.reason)

    def read(self, journal: Journal) -> None:
        if self.error is not None:
            self._stretch.clear()
            return
        if self._bound is not None:
            self._bound.read(journal)
        if journal.instants:
            self._folded = journal.instants[-1]
            held = _column(journal.held)
            sizes = self._sizes(journal.held_bytes, len(held))
            self._stretch.add("memory", _column(journal.instants), held, sizes)
        gone = Departures.of(journal)
        self._stretch.add("outputs", gone.left, self._queries[gone.whose], gone.arrived, gone.alike)
        if self._stretch.settle() >= ROWS or stopwatch() - self._written > SECONDS:
            self._write()

    def finish(self, until: float) -> None:
        """The run has ended in good order, all has been read: with what is left, the recording is complete."""
        self._about["until"] = until
        if self.error is None:
            self._write()
            self._about["complete"] = True
            self._describe()
        self.close()
        self._check(True)

    def close(self) -> None:
        """Nothing more comes; unless it is finished, what has come so far is kept as it is: not complete."""
        if self._open and self.error is None and self._described is not None and not self._about["complete"]:
            try:
                self._write()
            except DsmsError as error:  # whoever ends a run early has other worries
                log.error("%s", error)
        self._open = False
        self._parts.close()

    def status(self) -> dict[str, Any]:
        """Where it goes, and what went wrong with it, if anything did."""
        return {"folder": str(self.folder), "error": self.error}

    def _look(self, now: float, held: float) -> None:
        """Write down what had to be held up to now; an estimate may come out above what is held."""
        bound = self._bound
        if bound is not None and now > self._looked:
            bound.advance(now)
            if bound.tuples is not None:
                self._stretch.bound += (now, min(bound.tuples, held))
            self._looked = now

    def _begin(self, policy: Policy) -> None:
        """Write down who was the first in charge, which is known only when somebody is."""
        if not self._begun:
            self._begun = True
            self._phase(self._about["since"], policy, FIRST)

    def _phase(self, now: float, policy: Policy, reason: str) -> None:
        names = self._stretch.names
        self._stretch.phases += (now, names["policy"].code(text_of(policy)), names["reason"].code(reason))

    def _write(self) -> None:
        """Hand on all that has come since the last time."""
        self._written = stopwatch()
        if self._engine.begun:
            self._begin(self._engine.chosen)
        if self._described is not self._engine:
            self._describe()
        for table, columns in self._stretch.tables():
            self._check(self._parts.table(table, columns, self._strict))

    def _describe(self) -> None:
        self._described = self._engine
        self._about = about(self._engine, self._about)
        self._check(self._parts.about(self._about, self._strict))

    def _check(self, taken: bool) -> None:
        """Deal with a disk that is full or slow."""
        reason = self._parts.error or (None if taken else "the disk does not keep up")
        if reason is None or self.error is not None:
            return
        self.error = f"recording to {str(self.folder)!r} failed: {reason}"
        if self._strict:
            raise DsmsError(self.error)
        log.error("%s; the run goes on without it", self.error)

    def _sizes(self, held_bytes: list[float], rows: int) -> Floats:
        """Bytes, where tuples differ in size; elsewhere they are tuples times size, and nobody counts."""
        return _column(held_bytes) if self._engine.ledger.size is None else np.full(rows, np.nan)


def _column(values: list[float]) -> Floats:
    return np.fromiter(values, np.float64, len(values))
