"""A plan run on real rows in this process, under the wall clock: files in, files out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dsms.batch import Batch
from dsms.clock import Clock, WallClock
from dsms.engine import Engine
from dsms.errors import PlanError
from dsms.feed import Feed
from dsms.files import DeadLetters, Sink, Source, sink_from, source_from
from dsms.files.rejected import Reject, Rejected
from dsms.measures import Memory, Results, Turns
from dsms.operators import Aside
from dsms.plan import Plan, Query
from dsms.planfile import read_plan
from dsms.policies.registry import policy_named
from dsms.schema import Schema

STDOUT = "stdout"
ROWS = 10_000  # in a batch: large enough that what a turn costs is rows, small enough for the cache

Progress = Callable[[int, float], None]  # rows so far, seconds so far


@dataclass
class Execution:
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
    progress: Progress | None = None,
) -> Execution:
    """Run a plan's queries over its sources to their end; `sources` and `sinks` may stand in for files, by name.

    Rows that cannot be read or worked out, and late ones, go to `dead_letters` if the plan says so: by default a file
    beside the plan. Ctrl-C ends the run as if the sources had ended, and says so.
    """
    plan = plan if isinstance(plan, Plan) else read_plan(plan)
    done = Execution(policy)
    with ExitStack() as stack:
        letters = stack.enter_context(DeadLetters(dead_letters or _beside(plan)))
        rejected = letters.rejected if plan.settings.on_error == "dead-letter" else None
        feed = feed_of(plan, sources or {}, rows, rejected)
        outlets = _outlets(plan, sinks or {}, stack)
        memory, turns, results = Memory(), Turns(), Results(plan)

        def sink(query: str, batch: Batch) -> None:
            done.results[query] += len(batch)
            outlets[query](batch)

        def aside(station: str, put: Aside) -> None:
            letters.aside(station, put)

        watching = [memory, turns, results]
        engine = Engine(
            plan, policy_named(policy), clock=clock or WallClock(), observers=watching, sink=sink, aside=aside
        )
        try:
            _drive(engine, feed, done, progress)
        except KeyboardInterrupt:
            done.stopped = True
        done.seconds = engine.clock.now()
        engine.finish(done.seconds)
        done.turns, done.memory_max, done.latency = turns.count, memory.max_tuples, results.quantiles()
        done.aside = dict(letters.counts)
        done.dead_letters = letters.path if letters.counts else None
    return done


def _drive(engine: Engine, feed: Feed, done: Execution, progress: Progress | None) -> None:
    try:
        for stream, batch in feed:
            done.rows[stream] += len(batch)
            engine.push(stream, batch)
            engine.run()
            if progress is not None:
                progress(done.rows.total(), engine.clock.now())
    except KeyboardInterrupt:
        done.stopped = True  # what has come in is still worked off
    engine.end()
    engine.run()


def feed_of(plan: Plan, given: Mapping[str, Any], rows: int, rejected: Callable[[str, Rejected], None] | None) -> Feed:
    """The batches of all sources of a plan; rows that cannot be read are handed on, or end the run."""
    sources: dict[str, Any] = {}
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


def _outlets(plan: Plan, given: Mapping[str, Callable[[Batch], None]], stack: ExitStack) -> dict[str, Any]:
    outlets: dict[str, Any] = {}
    written = [query for query in plan.queries if query.name not in given and query.node is not None]
    together = sum(query.sink in (None, STDOUT) for query in written) > 1  # then each row says whose it is
    for query in plan.queries:
        outlets[query.name] = given.get(query.name, _nowhere)
    for query in written:
        named = together and query.sink in (None, STDOUT)
        sink = _sink(plan, query, named)
        stack.push(lambda kind, error, trace, sink=sink: _left(sink, error))
        outlets[query.name] = partial(_write_named, sink, query.name) if named else sink.write
    return outlets


def _sink(plan: Plan, query: Query, named: bool) -> Sink:
    assert query.node is not None
    schema = query.node.schema
    if named:
        schema = Schema((("query", "string"), *schema.fields))
    try:
        return sink_from(STDOUT if query.sink is None else query.sink, schema, query.node.appends, plan.folder)
    except PlanError as error:
        raise error.within(f"queries.{query.name}.sink", plan.name) from None


def _write_named(sink: Sink, query: str, batch: Batch) -> None:
    sink.write(replace(batch, columns={"query": np.full(len(batch), query, dtype=object), **batch.columns}))


def _left(sink: Sink, error: BaseException | None) -> None:
    """A run that came to its end leaves whole files, one that failed leaves parts."""
    if error is None:
        sink.close()
    else:
        sink.abandon()


def _nowhere(batch: Batch) -> None:
    """Results of a query without a schema are counted only."""


def _beside(plan: Plan) -> Path:
    return plan.folder / f"{Path(plan.name or 'plan').stem}.dead.jsonl"
