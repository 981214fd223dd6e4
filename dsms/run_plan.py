"""Runs a plan on real rows in this process, under the wall clock: reads files, writes files."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from dsms.clock import Clock, WallClock, wall_time_s
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.engine.engine import Engine
from dsms.errors import PlanError
from dsms.gc_tuning import reduce_gc
from dsms.io import DeadLetterFile, FileSource, open_source
from dsms.io.arrow_columns import import_pandas
from dsms.io.rejected_row import Reject, RejectedRow
from dsms.io.source_merge import SourceMerge
from dsms.measure.run_measures import MemoryMeasure, ResultMeasure, TurnMeasure
from dsms.operators import AbstractOperator
from dsms.plan.graph import Plan
from dsms.policies.registry import policy_named
from dsms.query.plan_file import read_plan
from dsms.recording import RunRecorder
from dsms.run_sinks import RunSinks

STDIN = "-"
BATCH_ROWS = 10_000  # in a batch: large enough that rows dominate the cost of a turn, small enough for the cache

Progress = Callable[[int, float], None]  # rows so far, seconds so far


@dataclass
class Report:
    """What a run read, put out and rejected."""

    policy: str
    seconds: float = 0.0
    rows: Counter[str] = field(default_factory=Counter)  # read, by stream
    results: Counter[str] = field(default_factory=Counter)  # put out, by query
    rejected: Mapping[tuple[str, str], int] = field(
        default_factory=dict
    )  # rejected rows by operator or stream, and kind
    dead_letters: Path | None = None  # the file of rejected rows
    turns: int = 0
    memory_max: float = 0.0  # rows in queues
    latency: Mapping[str, float | None] = field(default_factory=dict)
    stopped: bool = False  # by Ctrl-C, before the end of the sources

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        rejected = [{"where": where, "kind": kind, "rows": rows} for (where, kind), rows in self.rejected.items()]
        plain = {name: getattr(self, name) for name in ("policy", "seconds", "turns", "memory_max", "stopped")}
        letters = None if self.dead_letters is None else str(self.dead_letters)
        named = {"rows": dict(self.rows), "results": dict(self.results), "latency": dict(self.latency)}
        return {**plain, **named, "rejected": rejected, "dead_letters": letters}


def run(
    plan: Plan | str | Path,
    policy: str = "fifo",
    *,
    sources: Mapping[str, Any] | None = None,
    sinks: Mapping[str, Callable[[Batch], None]] | None = None,
    rows: int = BATCH_ROWS,
    dead_letters: Path | None = None,
    clock: Clock | None = None,
    record: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run a plan's queries over its sources to their end; `sources` and `sinks` may replace files, by name.

    Late rows go to the file `dead_letters`, by default one beside the plan; if the plan says so, also rows that cannot
    be read or that an operator fails on. Ctrl-C ends the run as if the sources had ended, and sets `stopped`. With
    `record`, a folder, the run is recorded to the folder `run` in it.
    """
    plan = plan if isinstance(plan, Plan) else read_plan(plan)
    _check_runnable(plan)
    done = Report(policy)
    with ExitStack() as stack:
        letters = stack.enter_context(DeadLetterFile(dead_letters or _default_dead_letter_path(plan)))
        letters.begin()
        rejected = letters.add_rejected if plan.settings.on_error == "dead-letter" else None
        batches = open_sources(plan, sources or {}, rows, rejected)
        run_sinks = stack.enter_context(RunSinks(plan, sinks or {}))
        memory, turns, results = watching = (MemoryMeasure(), TurnMeasure(), ResultMeasure(plan))
        engine = Engine(
            plan,
            policy_named(policy),
            clock=clock or WallClock(),
            observers=watching,
            sink=run_sinks.write,
            aside=letters.add,
        )
        recorder = None
        if record is not None:
            recorder = RunRecorder(Path(record) / "run", "run", began=wall_time_s() - engine.clock.now())
            stack.callback(recorder.close)
            engine.watch(recorder)
        with reduce_gc():
            _drive(engine, batches, done, progress)
        done.seconds = engine.clock.now()
        engine.finish(done.seconds)
        if recorder is not None:
            recorder.finish(done.seconds)
        done.turns, done.memory_max, done.latency = turns.count, memory.max_tuples, results.quantiles()
        done.results.update({mine.query.name: mine.count for mine in results.queries if mine.count})
        done.rejected = dict(letters.counts)
        done.dead_letters = letters.path if letters.counts else None
    return done


def _check_runnable(plan: Plan) -> None:
    """Refuse a plan with abstract operators, which cannot process rows."""
    for station in plan.stations:
        if isinstance(station.operator, AbstractOperator):
            raise PlanError(
                f"operator {station.name!r} has a declared cost and no function: use `dsms sim`",
                f"queries.{station.query.name}",
                plan.name,
            )


def _drive(engine: Engine, batches: SourceMerge, done: Report, progress: Progress | None) -> None:
    """Process all batches; after Ctrl-C or TERM, stop before the next batch."""
    with _SignalStop(done) as signals:
        items = iter(batches)
        try:
            while (item := signals.read(items)) is not None:
                stream, batch = item
                done.rows[stream] += len(batch)
                engine.push(stream, batch)
                engine.run()
                if progress is not None:
                    progress(done.rows.total(), engine.clock.now())
        except KeyboardInterrupt:  # raised by a source that waits
            done.stopped = True
        engine.end()
        engine.run()


class _SignalStop:
    """Notes Ctrl-C and TERM during a turn, which would be left half done, and raises them while a source waits.

    The second signal is raised at once. TERM counts where it raises an error, as in a command; elsewhere it kills.
    """

    def __init__(self, done: Report) -> None:
        self._done, self._is_reading = done, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _SignalStop:
        if threading.current_thread() is threading.main_thread():
            numbers = [signal.SIGINT, *([signal.SIGTERM] if callable(signal.getsignal(signal.SIGTERM)) else [])]
            self._before = {number: signal.signal(number, self._stop) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def read(self, items: Iterator[tuple[str, Batch]]) -> tuple[str, Batch] | None:
        """The next batch; None after the last, or after a signal."""
        self._is_reading = True
        try:
            return None if self._done.stopped else next(items, None)
        finally:
            self._is_reading = False

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._done.stopped = True
        for each, before in self._before.items():
            signal.signal(each, before)
        if self._is_reading:
            raise KeyboardInterrupt


def open_sources(
    plan: Plan, given: Mapping[str, Any], rows: int, rejected: Callable[[str, RejectedRow], None] | None
) -> SourceMerge:
    """Open all sources of a plan; rows that cannot be read go to `rejected`, or end the run if that is None."""
    sources: dict[str, Any] = {}
    read = [s.name for s in plan.streams if s.name not in given and s.source and STDIN in s.source.values()]
    if len(read) > 1:
        raise PlanError(f"{read} all read standard input: only one can", f"streams.{read[1]}.source", plan.name)
    for stream in plan.streams:
        if stream.name in given:
            sources[stream.name] = given[stream.name]
        elif stream.source is not None and stream.schema is not None:
            reject = None if rejected is None else partial(rejected, stream.name)
            sources[stream.name] = _open_source(plan, stream.name, stream.source, stream.schema, rows, reject)
        elif stream.consumers:
            raise PlanError(
                'no source: add `source = { csv = "rows.csv" }`, or jsonl, or parquet',
                f"streams.{stream.name}",
                plan.name,
            )
    return SourceMerge(sources, {stream.name: stream.timestamp for stream in plan.streams})


def _open_source(plan: Plan, name: str, table: Any, schema: Schema, rows: int, rejected: Reject | None) -> FileSource:
    import_pandas()  # here, where Ctrl-C ends the command; once rows are read it ends the read
    try:
        return open_source(table, schema, plan.folder, rejected, rows)
    except PlanError as error:
        raise error.within(f"streams.{name}.source", plan.name) from None


def _default_dead_letter_path(plan: Plan) -> Path:
    return plan.folder / f"{Path(plan.name or 'plan').stem}.dead.jsonl"
