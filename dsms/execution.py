"""A plan run on real rows in this process, under the wall clock: files in, files out."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from dsms.batch import Batch
from dsms.clock import Clock, WallClock, epoch
from dsms.collecting import rarely_collecting
from dsms.engine import Engine
from dsms.errors import PlanError
from dsms.feed import Feed
from dsms.files import DeadLetters, Source, source_from
from dsms.files.rejected import Reject, Rejected
from dsms.measures import Memory, Results, Turns
from dsms.operators import Abstract
from dsms.outlets import Outlets
from dsms.plan import Plan
from dsms.planfile import read_plan
from dsms.policies.registry import policy_named
from dsms.recording import Recorder
from dsms.schema import Schema

STDIN = "-"
ROWS = 10_000  # in a batch: large enough that what a turn costs is rows, small enough for the cache

Progress = Callable[[int, float], None]  # rows so far, seconds so far


@dataclass
class Report:
    """What came of it."""

    policy: str
    seconds: float = 0.0
    rows: Counter[str] = field(default_factory=Counter)  # read, by stream
    results: Counter[str] = field(default_factory=Counter)  # put out, by query
    aside: Mapping[tuple[str, str], int] = field(default_factory=dict)  # rows by where and kind
    dead_letters: Path | None = None  # where those are
    turns: int = 0
    memory_max: float = 0.0  # rows in queues
    latency: Mapping[str, float | None] = field(default_factory=dict)
    stopped: bool = False  # before the end, by whoever watched

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        aside = [{"where": where, "kind": kind, "rows": rows} for (where, kind), rows in self.aside.items()]
        plain = {name: getattr(self, name) for name in ("policy", "seconds", "turns", "memory_max", "stopped")}
        letters = None if self.dead_letters is None else str(self.dead_letters)
        named = {"rows": dict(self.rows), "results": dict(self.results), "latency": dict(self.latency)}
        return {**plain, **named, "aside": aside, "dead_letters": letters}


def run(
    plan: Plan | str | Path,
    policy: str = "fifo",
    *,
    sources: Mapping[str, Any] | None = None,
    sinks: Mapping[str, Callable[[Batch], None]] | None = None,
    rows: int = ROWS,
    dead_letters: Path | None = None,
    clock: Clock | None = None,
    record: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run a plan's queries over its sources to their end; `sources` and `sinks` may stand in for files, by name.

    Rows that cannot be read or worked out, and late ones, go to `dead_letters` if the plan says so: by default a file
    beside the plan. Ctrl-C ends the run as if the sources had ended, and says so. With `record`, a folder, the run is
    written to the folder `run` in it.
    """
    plan = plan if isinstance(plan, Plan) else read_plan(plan)
    _check(plan)
    done = Report(policy)
    with ExitStack() as stack:
        letters = stack.enter_context(DeadLetters(dead_letters or _beside(plan)))
        letters.begin()
        rejected = letters.rejected if plan.settings.on_error == "dead-letter" else None
        feed = feed_of(plan, sources or {}, rows, rejected)
        outlets = stack.enter_context(Outlets(plan, sinks or {}))
        memory, turns, results = watching = (Memory(), Turns(), Results(plan))
        engine = Engine(
            plan,
            policy_named(policy),
            clock=clock or WallClock(),
            observers=watching,
            sink=outlets.write,
            aside=letters.aside,
        )
        recorder = None
        if record is not None:
            recorder = Recorder(Path(record) / "run", "run", began=epoch() - engine.clock.now())
            stack.callback(recorder.close)
            engine.watch(recorder)
        with rarely_collecting():
            _drive(engine, feed, done, progress)
        done.seconds = engine.clock.now()
        engine.finish(done.seconds)
        if recorder is not None:
            recorder.finish(done.seconds)
        done.turns, done.memory_max, done.latency = turns.count, memory.max_tuples, results.quantiles()
        done.results.update({mine.query.name: mine.count for mine in results.queries if mine.count})
        done.aside = dict(letters.counts)
        done.dead_letters = letters.path if letters.counts else None
    return done


def _check(plan: Plan) -> None:
    """Only what works on rows can be run on them."""
    for station in plan.stations:
        if isinstance(station.operator, Abstract):
            raise PlanError(
                f"operator {station.name!r} has a declared cost and no function: `dsms sim` runs it, in virtual time",
                f"queries.{station.query.name}",
                plan.name,
            )


def _drive(engine: Engine, feed: Feed, done: Report, progress: Progress | None) -> None:
    """Take all batches through, or those that come before somebody says stop: between two of them."""
    with _stopping(done):
        try:
            for stream, batch in feed:
                done.rows[stream] += len(batch)
                engine.push(stream, batch)
                engine.run()
                if progress is not None:
                    progress(done.rows.total(), engine.clock.now())
                if done.stopped:
                    break
        except KeyboardInterrupt:  # raised by a source that waits
            done.stopped = True
        engine.end()
        engine.run()


@contextmanager
def _stopping(done: Report) -> Iterator[None]:
    """Ctrl-C is noted, not raised in the middle of a turn, which would leave it half done; a second one is raised."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        done.stopped = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def feed_of(plan: Plan, given: Mapping[str, Any], rows: int, rejected: Callable[[str, Rejected], None] | None) -> Feed:
    """The batches of all sources of a plan; rows that cannot be read are handed on, or end the run."""
    sources: dict[str, Any] = {}
    read = [s.name for s in plan.streams if s.name not in given and s.source and STDIN in s.source.values()]
    if len(read) > 1:
        raise PlanError(f"{read} all read standard input: only one can", f"streams.{read[1]}.source", plan.name)
    for stream in plan.streams:
        if stream.name in given:
            sources[stream.name] = given[stream.name]
        elif stream.source is not None and stream.schema is not None:
            reject = None if rejected is None else partial(rejected, stream.name)
            sources[stream.name] = _source(plan, stream.name, stream.source, stream.schema, rows, reject)
        elif stream.consumers:
            raise PlanError(
                'no source: `source = { csv = "rows.csv" }`, or jsonl, or parquet, is wanted',
                f"streams.{stream.name}",
                plan.name,
            )
    return Feed(sources, {stream.name: stream.timestamp for stream in plan.streams})


def _source(plan: Plan, name: str, table: Any, schema: Schema, rows: int, rejected: Reject | None) -> Source:
    try:
        return source_from(table, schema, plan.folder, rejected, rows)
    except PlanError as error:
        raise error.within(f"streams.{name}.source", plan.name) from None


def _beside(plan: Plan) -> Path:
    return plan.folder / f"{Path(plan.name or 'plan').stem}.dead.jsonl"
