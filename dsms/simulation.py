"""Runs a plan in virtual time under one policy and returns the measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dsms.config.fields import DurationField, is_number
from dsms.engine.engine import Engine, RunnerFactory
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.engine.runners import TupleRunner
from dsms.engine.shedding import count_shed_by_query
from dsms.errors import DsmsError, PlanError
from dsms.gc_tuning import reduce_gc
from dsms.measure.run_measures import FractionalOutputs, MemoryMeasure, MemorySamples, ResultMeasure, TurnMeasure
from dsms.measure.trace import TurnTrace
from dsms.plan.graph import Plan
from dsms.policies.registry import policy_named
from dsms.query.plan_file import plan_from, read_plan

if TYPE_CHECKING:
    from dsms.recording import RunRecorder


@dataclass(frozen=True)
class LevelStats:
    """Mean and maximum of something held over time."""

    max: float
    mean: float
    integral: float


@dataclass(frozen=True)
class MemoryHeld:
    """The memory of the queues; `samples` are (instant, tuples)."""

    tuples: LevelStats
    bytes: LevelStats
    samples: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Latency:
    """Time from the arrival of a result's last input to the result; None: there were no results."""

    mean: float | None
    p50: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True)
class Response:
    """Departure minus arrival, over results only."""

    mean: float | None


@dataclass(frozen=True)
class StaleShare:
    """The part of time in which outputs were behind their inputs: plain and weighted mean over queries."""

    mean: float | None
    weighted: float | None


@dataclass(frozen=True)
class QueryFigures:
    """One query of a run."""

    outputs: float
    latency_mean: float | None
    staleness: float | None
    shed: int  # tuples dropped


@dataclass(frozen=True)
class Run:
    """The measurements of a run."""

    policy: str
    elapsed: float
    turns: int
    switches: int
    admitted: int
    shed: int  # tuples dropped by load shedding
    outputs: float
    output_rate: float | None
    memory: MemoryHeld
    latency: Latency
    response: Response
    longest_wait: float
    overdue: int  # turns given to segments that had waited longer than `max_wait`
    starvations: int  # decisions where the highest-ranked segment, ready or not, had no work
    scheduling: float  # time that decisions took, if the plan gives them a cost
    staleness: StaleShare
    queries: dict[str, QueryFigures]
    choices: list[dict[str, Any]] = field(default_factory=list)  # of a selector: instant, chosen, why, scores, figures

    def to_json(self) -> dict[str, Any]:
        """Return the run as plain data."""
        return asdict(self)


def simulate(
    plan: Plan | str | Path | Mapping[str, Any],
    policy: str | Policy,
    *,
    until: float | None = None,
    cut: bool = False,
    seed: int | None = None,
    turn_cost: float | None = None,
    hop_cost: float | None = None,
    sample: float | None = None,
    trace: str | Path | None = None,
    record: str | Path | None = None,
    runner: RunnerFactory | None = None,
    observers: Sequence[Observer] = (),
    progress: Callable[[float], None] | None = None,
) -> Run:
    """Run a plan in virtual time; `progress` is called now and then with the virtual time.

    `turn_cost` and `hop_cost` are the dead time of a turn and of a change of host; None: as the plan says. With
    `record`, a folder, the run is recorded in a subfolder named after the policy.
    """
    if not isinstance(plan, Plan):
        plan = plan_from(plan) if isinstance(plan, Mapping) else read_plan(plan)
    if written := [query.name for query in plan.queries if query.node is not None]:
        raise PlanError(
            f"{written[0]!r} is a query on rows, and a simulation has no rows: use `dsms run`",
            f"queries.{written[0]}",
            plan.name,
        )
    if not isinstance(policy, str | Policy):
        raise DsmsError(f"{policy!r} is not a policy: expected a Policy or the name of one")
    for name, value in (("until", until), ("sample", sample), ("seed", seed)):
        if value is not None and not (is_number(value) and (value > 0 or (value == 0 and name != "sample"))):
            raise DsmsError(
                f"{name} is {value!r}: expected a number {'above' if name == 'sample' else 'of at least'} 0"
            )
    plan = set_dead_time(plan, turn_cost, hop_cost)
    if seed is not None:
        if seed != int(seed):
            raise DsmsError(f"seed is {seed!r}: expected a whole number of at least 0")
        plan = replace(plan, settings=replace(plan.settings, seed=int(seed)))
    until = plan.settings.until if until is None else until
    if cut and until is None:
        raise DsmsError("a run can be cut only at an instant: give --until, or `until` in [run]")
    text = policy if isinstance(policy, str) else policy.name
    memory, turns, results, amounts = MemoryMeasure(), TurnMeasure(), ResultMeasure(plan), FractionalOutputs(plan)
    samples = MemorySamples(sample) if sample else None
    with ExitStack() as stack:
        watching: list[Observer] = [memory, turns, results, *([samples] if samples else []), *observers]
        if plan.settings.fractional:
            watching.append(amounts)
        chosen = policy_named(policy) if isinstance(policy, str) else policy
        stop = until if cut and until is not None else math.inf
        engine = Engine(plan, chosen, runner=runner, observers=watching, until=until, cut=stop)
        stack.callback(engine.row_runner.close)
        if trace is not None:  # opened last, because opening it deletes its contents
            engine.watch(TurnTrace(stack.enter_context(_open_trace(trace))))
        recorder = None if record is None else _open_recorder(record, text)
        if recorder is not None:
            stack.callback(recorder.close)
            engine.watch(recorder)
        with reduce_gc():
            _drive(engine, progress)
        elapsed = stop if cut else engine.clock.now()
        engine.finish(elapsed)
        if cut:
            _count_unfinished(engine, results, turns, elapsed)
        if recorder is not None:
            recorder.finish(elapsed)
    return _build_run(text, engine, elapsed, memory, turns, results, amounts, samples)


def set_dead_time(plan: Plan, turn_cost: float | None, hop_cost: float | None) -> Plan:
    """Return the plan with other costs of a turn and of a hop in simulations; None: the plan's own."""
    settings, field = plan.settings, DurationField()
    if turn_cost is not None:
        settings = replace(settings, turn_cost=field.read(turn_cost, "turn_cost"))
    if hop_cost is not None:
        settings = replace(settings, hop_cost=field.read(hop_cost, "hop_cost"))
    return plan if settings is plan.settings else replace(plan, settings=settings)


def _open_trace(trace: str | Path) -> TextIO:
    try:
        return open(trace, "w", encoding="utf-8")
    except OSError as error:
        raise DsmsError(f"the trace {str(trace)!r} cannot be written: {error.strerror}") from None


def _open_recorder(folder: str | Path, policy: str) -> RunRecorder:
    from dsms.recording.manifest import safe_name
    from dsms.recording.recorder import RunRecorder  # loads pyarrow: only when recording

    return RunRecorder(Path(folder) / safe_name(policy), "sim")


def _drive(engine: Engine, progress: Callable[[float], None] | None) -> None:
    if progress is None:
        engine.run()
        return
    step = engine.step
    while all(step() for _ in range(4096)):
        progress(engine.clock.now())


def _count_unfinished(engine: Engine, results: ResultMeasure, turns: TurnMeasure, elapsed: float) -> None:
    """Count the tuples still queued when a run is cut: they make outputs stale, and they have waited."""
    runner = engine.runner
    forecast_unfinished = runner.forecast_unfinished() if isinstance(runner, TupleRunner) else None
    results.known = forecast_unfinished is not None or not (engine.ledger.held or engine.unfinished_steps)
    oldest = dict(forecast_unfinished or {})
    waiting = [
        engine.runner.waiting_since(),
        *(step.since for step in engine.unfinished_steps[1:]),
    ]  # the first was in service
    turns.longest_wait = max(turns.longest_wait, elapsed - min(waiting))
    for step in engine.unfinished_steps:
        name = step.queue.station.query.name
        oldest[name] = min([oldest.get(name, math.inf), *step.result_arrivals])
    for mine in results.queries:
        since = oldest.get(mine.query.name, math.inf)
        if since < elapsed:
            mine.staleness.add([since], [elapsed])


def _build_run(
    text: str,
    engine: Engine,
    elapsed: float,
    memory: MemoryMeasure,
    turns: TurnMeasure,
    results: ResultMeasure,
    amounts: FractionalOutputs,
    samples: MemorySamples | None,
) -> Run:
    plan = engine.plan
    fractional = plan.settings.fractional
    queries = {r.query.name: r for r in results.queries}
    outputs = {name: amounts.by_query[name] if fractional else r.count for name, r in queries.items()}
    stale = {
        n: None if fractional or not elapsed or not results.known else r.staleness.total / elapsed
        for n, r in queries.items()
    }
    shed = count_shed_by_query(engine)
    shares = [(value, queries[name].query.weight) for name, value in stale.items() if value is not None]
    quantiles = results.quantiles()
    total = sum(outputs.values())
    count: Callable[[float], float] = float if fractional else int
    return Run(
        policy=text,
        elapsed=elapsed,
        turns=turns.count,
        switches=turns.switches,
        admitted=engine.admitted,
        shed=sum(shed.values()),
        outputs=total,
        output_rate=total / elapsed if elapsed else None,
        memory=MemoryHeld(
            LevelStats(count(memory.max_tuples), _mean(memory.tuples_integral, elapsed), memory.tuples_integral),
            LevelStats(memory.max_bytes, _mean(memory.bytes_integral, elapsed), memory.bytes_integral),
            [(instant, count(held)) for instant, held in samples.taken] if samples else [],
        ),
        latency=Latency(**quantiles),
        response=Response(quantiles["mean"]),
        longest_wait=turns.longest_wait,
        overdue=engine.overdue,
        starvations=engine.starvations,
        scheduling=engine.scheduling,
        staleness=StaleShare(
            sum(value for value, _ in shares) / len(shares) if shares else None,
            sum(v * weight for v, weight in shares) / sum(weight for _, weight in shares) if shares else None,
        ),
        queries={n: QueryFigures(outputs[n], r.latency_mean(), stale[n], shed[n]) for n, r in queries.items()},
        choices=[choice._asdict() for choice in getattr(engine.control.chosen, "choices", ())],
    )


def _mean(integral: float, elapsed: float) -> float:
    return integral / elapsed if elapsed else 0.0
