"""A plan run in virtual time under one policy, and all that was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dsms.collecting import rarely_collecting
from dsms.engine import Engine, RunnerFactory
from dsms.errors import DsmsError, PlanError
from dsms.measures import Amounts, Memory, Results, Samples, Turns
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.planfile import plan_from, read_plan
from dsms.policies.base import Policy
from dsms.policies.registry import policy_named
from dsms.settings import is_number
from dsms.shedding import shed_by_query
from dsms.trace import Trace

if TYPE_CHECKING:
    from dsms.recording import Recorder


@dataclass(frozen=True)
class Level:
    """Something held over time."""

    max: float
    mean: float
    integral: float


@dataclass(frozen=True)
class MemoryHeld:
    """The queues' memory; `samples` are (instant, tuples)."""

    tuples: Level
    bytes: Level
    samples: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Latency:
    """From the moment all that a result needs is in the system to the result; None where there was none."""

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
    """The share of time in which a query's output was behind its input: mean over queries, and by their weights."""

    mean: float | None
    weighted: float | None


@dataclass(frozen=True)
class QueryFigures:
    """One query of a run."""

    outputs: float
    latency_mean: float | None
    staleness: float | None
    shed: int  # tuples that were given up


@dataclass(frozen=True)
class Run:
    """What came of a run."""

    policy: str
    elapsed: float
    turns: int
    switches: int
    admitted: int
    shed: int  # tuples that queries gave up, where the plan lets them
    outputs: float
    output_rate: float | None
    memory: MemoryHeld
    latency: Latency
    response: Response
    longest_wait: float
    overdue: int  # turns of segments that had waited for more than `max_wait`
    starvations: int  # decisions whose highest-ranked segment, ready or not, had no work
    scheduling: float  # time that deciding took, where that costs something
    staleness: StaleShare
    queries: dict[str, QueryFigures]
    choices: list[dict[str, Any]] = field(default_factory=list)  # of a selector: instant, chosen, why, scores, figures

    def to_json(self) -> dict[str, Any]:
        """The run as plain data; what does not exist is None."""
        return asdict(self)


def simulate(
    plan: Plan | str | Path | Mapping[str, Any],
    policy: str | Policy,
    *,
    until: float | None = None,
    cut: bool = False,
    seed: int | None = None,
    sample: float | None = None,
    trace: str | Path | None = None,
    record: str | Path | None = None,
    runner: RunnerFactory | None = None,
    observers: Sequence[Observer] = (),
    progress: Callable[[float], None] | None = None,
) -> Run:
    """Run a plan in virtual time; `progress` is told now and then what time it is there.

    With `record`, a folder, the run is written to a folder in it that is called like the policy.
    """
    if not isinstance(plan, Plan):
        plan = plan_from(plan) if isinstance(plan, Mapping) else read_plan(plan)
    if written := [query.name for query in plan.queries if query.node is not None]:
        raise PlanError(
            f"{written[0]!r} is a query on rows, which virtual time has none of: `dsms run` runs it on files",
            f"queries.{written[0]}",
            plan.name,
        )
    if not isinstance(policy, str | Policy):
        raise DsmsError(f"{policy!r} is not a policy: its name, or an object of a class of policies, is wanted")
    for name, value in (("until", until), ("sample", sample), ("seed", seed)):
        if value is not None and not (is_number(value) and (value > 0 or (value == 0 and name != "sample"))):
            raise DsmsError(f"{name} is {value!r}: a number {'above' if name == 'sample' else 'from'} 0 is wanted")
    if seed is not None:
        if seed != int(seed):
            raise DsmsError(f"seed is {seed!r}: a whole number from 0 is wanted")
        plan = replace(plan, settings=replace(plan.settings, seed=int(seed)))
    until = plan.settings.until if until is None else until
    if cut and until is None:
        raise DsmsError("a run can be cut only at an instant: give --until, or `until` in [run]")
    text = policy if isinstance(policy, str) else policy.name
    memory, turns, results, amounts = Memory(), Turns(), Results(plan), Amounts(plan)
    samples = Samples(sample) if sample else None
    with ExitStack() as stack:
        watching: list[Observer] = [memory, turns, results, *([samples] if samples else []), *observers]
        if plan.settings.fractional:
            watching.append(amounts)
        chosen = policy_named(policy) if isinstance(policy, str) else policy
        stop = until if cut and until is not None else math.inf
        engine = Engine(plan, chosen, runner=runner, observers=watching, until=until, cut=stop)
        stack.callback(engine.runner.close)
        if trace is not None:  # not before it is known that there will be a run: what stood in the file is lost
            engine.watch(Trace(stack.enter_context(_opened(trace))))
        recorder = None if record is None else _recorder(record, text)
        if recorder is not None:
            stack.callback(recorder.close)
            engine.watch(recorder)
        with rarely_collecting():
            _drive(engine, progress)
        elapsed = stop if cut else engine.clock.now()
        engine.finish(elapsed)
        if cut:
            _close(engine, results, turns, elapsed)
        if recorder is not None:
            recorder.finish(elapsed)
    return _figures(text, engine, elapsed, memory, turns, results, amounts, samples)


def _opened(trace: str | Path) -> TextIO:
    try:
        return open(trace, "w", encoding="utf-8")
    except OSError as error:
        raise DsmsError(f"the trace {str(trace)!r} cannot be written: {error.strerror}") from None


def _recorder(folder: str | Path, policy: str) -> Recorder:
    from dsms.recording.about import safe_name
    from dsms.recording.recorder import Recorder  # pyarrow takes its time: only for those who record

    return Recorder(Path(folder) / safe_name(policy), "sim")


def _drive(engine: Engine, progress: Callable[[float], None] | None) -> None:
    if progress is None:
        engine.run()
        return
    step = engine.step
    while all(step() for _ in range(4096)):
        progress(engine.clock.now())


def _close(engine: Engine, results: Results, turns: Turns, elapsed: float) -> None:
    """Count what is still under way when a run is cut: it is stale, and it has waited."""
    prospects = engine.runner.prospects()
    results.known = prospects is not None or not (engine.ledger.held or engine.undone)
    oldest = dict(prospects or {})
    waiting = [engine.runner.waiting_since(), *(step[4] for step in engine.undone[1:])]  # the first was in service
    turns.longest_wait = max(turns.longest_wait, elapsed - min(waiting))
    for queue, *_, gone, _ in engine.undone:
        name = queue.station.query.name
        oldest[name] = min([oldest.get(name, math.inf), *gone])
    for mine in results.queries:
        since = oldest.get(mine.query.name, math.inf)
        if since < elapsed:
            mine.staleness.add([since], [elapsed])


def _figures(
    text: str,
    engine: Engine,
    elapsed: float,
    memory: Memory,
    turns: Turns,
    results: Results,
    amounts: Amounts,
    samples: Samples | None,
) -> Run:
    plan = engine.plan
    fractional = plan.settings.fractional
    queries = {r.query.name: r for r in results.queries}
    outputs = {name: amounts.by_query[name] if fractional else r.count for name, r in queries.items()}
    stale = {
        n: None if fractional or not elapsed or not results.known else r.staleness.total / elapsed
        for n, r in queries.items()
    }
    shed = shed_by_query(engine)
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
            Level(count(memory.max_tuples), _mean(memory.tuples_integral, elapsed), memory.tuples_integral),
            Level(memory.max_bytes, _mean(memory.bytes_integral, elapsed), memory.bytes_integral),
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
        choices=[choice._asdict() for choice in getattr(engine.chosen, "choices", ())],
    )


def _mean(integral: float, elapsed: float) -> float:
    return integral / elapsed if elapsed else 0.0
