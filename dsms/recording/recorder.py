"""Records a run while it runs: turns, arrivals, outputs, memory with its lower bound, and phases, in parts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dsms.clock import RealClock, monotonic_s
from dsms.data.journal import Journal
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.engine.runners.runner import Step
from dsms.errors import DsmsError
from dsms.measure.completions import Completions
from dsms.measure.memory_bound import MemoryBound
from dsms.measure.turn_overhead import OverheadMeter
from dsms.plan.segment import Segment
from dsms.policies.adaptive.gatherer import format_policy
from dsms.recording.manifest import describe_run
from dsms.recording.part_writer import PartWriter
from dsms.recording.table_buffer import Floats, RowBuffer

log = logging.getLogger("dsms")
PART_ROWS = 1 << 18  # of a table, before a part is written
MEMORY_SAMPLE_S = 0.005  # between two samples of the lower bound of memory
PART_INTERVAL_S = 5.0  # a part is written at least so often: a run that crashes loses only the last part
FIRST, SWAPPED = "first", "swapped"


class RunRecorder(Observer):
    """Writes a run to a folder; if writing fails, a `strict` recorder ends the run, any other stops and logs it.

    It continues when an engine is replaced by one for another plan: stations, streams and queries are known by name.
    """

    trusted = True  # errors of the disk are handled here
    _engine: Engine  # once it is attached

    def __init__(self, folder: Path, runtime: str, *, strict: bool = True, began: float | None = None) -> None:
        self.folder, self._strict = folder, strict
        domain = folder.name if runtime == "live" else None
        self._about: dict[str, Any] = {"name": folder.name, "domain": domain, "runtime": runtime, "began": began}
        self._about |= {"since": None, "complete": False, "until": None}
        self._parts, self._rows = PartWriter(folder), RowBuffer()
        self.reason = SWAPPED  # of the next change of policy
        self.error: str | None = None  # why recording has stopped
        self._open, self._turn, self._decider = True, 0, 0
        self._policy: Policy | None = None  # that decided the last turn
        self._described: Engine | None = None
        self._bound: MemoryBound | None = None  # on a real clock only
        self._meter = OverheadMeter()  # likewise
        self._looked = 0.0
        self._begun = False  # whether the first phase is recorded
        self._written = monotonic_s()
        self._parts.begin()

    def attach(self, engine: Engine) -> None:
        self._engine, names = engine, self._rows.names
        self._real, self._pace = isinstance(engine.clock, RealClock), 1 / engine.clock.budget
        self._streams = [names["stream"].code(stream.name) for stream in engine.plan.streams]
        self._stations = [names["station"].code(station.name) for station in engine.plan.stations]
        self._queries = np.array([names["query"].code(query.name) for query in engine.plan.queries], np.int64)
        if self._real:
            self._bound = MemoryBound(engine.plan) if self._bound is None else self._bound.migrate(engine.plan)
            self._bound.attach(engine)
            self._meter.attach(engine)
        if self._described is None:
            self._about["since"] = self._folded = engine.clock.now()
            first = np.array([self._folded])
            self._rows.add("memory", first, np.zeros(1), self._sizes([0.0], 1))  # start of the next row
            self._describe()

    def arrive(self, now: float, stream: int, count: int) -> None:
        if self._bound is not None:
            self._look(now, self._engine.ledger.held - count * self._engine.ledger.streams[stream].copies)
            self._bound.arrive(now, stream, count)
            self._meter.arrive(now, stream, count)
        self._rows.arrivals += (now, self._streams[stream], count, self._engine.lag)

    def begin(self, now: float) -> None:
        if self._real:
            self._meter.begin(now)
            if now - self._looked > MEMORY_SAMPLE_S:
                self._look(now, self._engine.ledger.held)

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self._policy is not self._engine.control.policy:
            self._policy = self._engine.control.policy
            self._decider = self._rows.names["policy"].code(format_policy(self._policy))
        number, decider, at, rows = self._turn, self._decider, start, self._rows.steps
        for step in steps:
            station = self._stations[step.queue.station.index]
            rows += (number, at, station, step.taken, step.made, step.cost, decider)
            at += step.cost * self._pace
        self._turn = number + 1
        if self._real:
            self._meter.turn(start, segment, steps)
            if start - self._folded > PART_INTERVAL_S:
                self._engine.fold()  # a journal fills slowly when little happens

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        if (
            after is self._engine.control.chosen and after is not before
        ):  # else the adaptive policy has changed its candidate
            self._begin(before)
            self._phase(now, after, self.reason)

    def read(self, journal: Journal) -> None:
        if self.error is not None:
            self._rows.clear()
            return
        if self._bound is not None:
            self._bound.read(journal)
        if journal.instants:
            self._folded = journal.instants[-1]
            held = _column(journal.held)
            sizes = self._sizes(journal.held_bytes, len(held))
            self._rows.add("memory", _column(journal.instants), held, sizes)
        completions = Completions.of(journal)
        self._rows.add(
            "outputs", completions.left, self._queries[completions.query_index], completions.arrived, completions.alike
        )
        if self._rows.flush() >= PART_ROWS or monotonic_s() - self._written > PART_INTERVAL_S:
            self._write()

    def finish(self, until: float) -> None:
        """Write the rest: the run has ended normally, and the recording is complete."""
        self._about["until"] = until
        if self.error is None:
            self._write()
            self._about["complete"] = True
            self._describe()
        self.close()
        self._check(True)

    def close(self) -> None:
        """Stop; unless `finish` was called, the recording stays incomplete."""
        if self._open and self.error is None and self._described is not None and not self._about["complete"]:
            try:
                self._write()
            except DsmsError as error:  # the run was ended early: that error matters more
                log.error("%s", error)
        self._open = False
        self._parts.close()

    def status(self) -> dict[str, Any]:
        """The folder, and the error that stopped the recording, if any."""
        return {"folder": str(self.folder), "error": self.error}

    def _look(self, now: float, held: float) -> None:
        """Sample the lower bound of memory, at most what is held: the bound is an estimate."""
        bound = self._bound
        if bound is not None and now > self._looked:
            bound.advance(now)
            if bound.tuples is not None:
                self._rows.bound += (now, min(bound.tuples, held))
            self._looked = now

    def _begin(self, policy: Policy) -> None:
        """Record the first policy, which is known only once the engine has started."""
        if not self._begun:
            self._begun = True
            self._phase(self._about["since"], policy, FIRST)

    def _phase(self, now: float, policy: Policy, reason: str) -> None:
        names = self._rows.names
        self._rows.phases += (now, names["policy"].code(format_policy(policy)), names["reason"].code(reason))

    def _write(self) -> None:
        """Write all rows since the last part."""
        self._written = monotonic_s()
        if self._engine.control.is_started:
            self._begin(self._engine.control.chosen)
        if self._described is not self._engine:
            self._describe()
        for table, columns in self._rows.tables():
            self._check(self._parts.table(table, columns, self._strict))

    def _describe(self) -> None:
        self._described = self._engine
        self._about = describe_run(self._engine, self._about)
        self._about["overhead"] = self._meter.overhead()._asdict() if self._real else None
        self._check(self._parts.about(self._about, self._strict))

    def _check(self, taken: bool) -> None:
        """Handle a disk that is full or slow."""
        reason = self._parts.error or (None if taken else "the disk is too slow")
        if reason is None or self.error is not None:
            return
        self.error = f"recording to {str(self.folder)!r} failed: {reason}"
        if self._strict:
            raise DsmsError(self.error)
        log.error("%s; the run continues without a recording", self.error)

    def _sizes(self, held_bytes: list[float], rows: int) -> Floats:
        """Bytes, if tuples differ in size; else NaN: they are tuples times size."""
        return _column(held_bytes) if self._engine.ledger.size is None else np.full(rows, np.nan)


def _column(values: list[float]) -> Floats:
    return np.fromiter(values, np.float64, len(values))
