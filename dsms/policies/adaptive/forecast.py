"""Forecasts each candidate policy by simulating it from the current queues, and picks the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dsms.arrivals import Floats
from dsms.clock import Clock
from dsms.engine.engine import Engine
from dsms.engine.ledger import Ledger
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.engine.runners.runner import Step
from dsms.engine.runners.tuples import BufferContents, TupleRunner
from dsms.errors import DsmsError, existing
from dsms.measure.run_measures import MemoryMeasure, TurnMeasure
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment
from dsms.policies.adaptive.recent_arrivals import RecentArrivals
from dsms.policies.adaptive.shadow_plan import build_shadow_plan, copy_buffers, steps_ahead

FORECAST_SUMS = ("held", "delays", "outputs", "elapsed", "length")
STEP_LIMIT = 4_000  # of work that one candidate may simulate
MAX_ROUNDS = 4  # recent arrivals predict only the near future
METRICS = ("memory", "delay", "rate")


@dataclass(frozen=True)
class Forecast:
    """What a candidate is expected to do with the arrivals of the horizon, until the queues are empty."""

    held: float  # tuples, integrated over time
    delays: float  # sum over all results
    outputs: float  # results
    elapsed: float  # until the queues are empty
    length: float  # `elapsed` of the slowest candidate, the same for all
    turns: int  # simulated

    @property
    def mean_queued(self) -> float:
        return self.held / self.length if self.length else 0.0

    @property
    def mean_delay(self) -> float | None:
        return self.delays / self.outputs if self.outputs else None

    @property
    def output_rate(self) -> float | None:
        return self.outputs / self.elapsed if self.outputs else None

    def after(self, before: Forecast | None, weight: float) -> Forecast:
        """Return the mean of this forecast and the one before, weighted by `weight`.

        Sums are added, not means: what a policy does to a burst counts for more than what it does to a few tuples.
        """
        if before is None:
            return self
        held, delays, outputs, elapsed, length = (getattr(self, n) + weight * getattr(before, n) for n in FORECAST_SUMS)
        return Forecast(held, delays, outputs, elapsed, length, self.turns)

    def costs(self) -> dict[str, float | None]:
        """Return the cost by each metric, the lower the better; None: nothing to measure."""
        per_output = 1 / self.output_rate if self.output_rate else None
        return dict(zip(METRICS, (self.mean_queued or None, self.mean_delay or None, per_output), strict=True))


@dataclass(frozen=True)
class ForecastWorkload:
    """The workload on which all candidates are simulated."""

    plan: Plan
    stocks: list[BufferContents]
    scale: float  # below 1: the part of the backlog, its ages and the time ahead that is simulated


def forecast(
    engine: Engine,
    recent: RecentArrivals,
    candidates: Mapping[str, Callable[[], Policy]],
    horizon: float,
    limit: int = STEP_LIMIT,
) -> dict[str, Forecast]:
    """Simulate each candidate on a copy of the engine's queues and the arrivals of the next `horizon`.

    Each candidate is a copy, so that neither the policy in charge nor the engine is disturbed. It is called
    between two turns.
    """
    look = build_workload(engine, recent, horizon, limit)
    runs = {name: _run(look, candidate()) for name, candidate in candidates.items()}
    # One length for all: a slower candidate must not look better because it averages over more time.
    longest = max((run.elapsed for run in runs.values()), default=0.0)
    return {name: run.outlook(longest, look.scale) for name, run in runs.items()}


def build_workload(engine: Engine, recent: RecentArrivals, horizon: float, limit: int = STEP_LIMIT) -> ForecastWorkload:
    """Return the workload: the backlog, and the arrivals of the last `horizon` repeated.

    The pattern repeated is the simplest forecast that keeps what policies differ by, bursts and all, and it is exact
    where the pattern recurs; one that is too short is repeated until it is long enough. If the work comes to more than
    `limit` steps, the horizon is shortened; if the backlog alone is more than half of that, everything is looked at in
    proportion: fewer tuples, younger by as much, over a shorter time. Queues then grow and drain as they would, only
    smaller, and costs, start-ups and turns need no other scale.
    """
    if not horizon >= 0 or limit < 1:
        raise DsmsError(f"horizon is {horizon!r}, limit {limit!r}: expected a time of at least 0 and at least 1 step")
    arriving, waiting = steps_ahead(engine)
    backlog = sum(queue.count * waiting[queue.station.index] for queue in engine.ledger.queues)
    scale = min(1.0, limit / 2 / backlog) if backlog else 1.0
    late, now = recent.pattern(), engine.clock.now()
    late = late.pick(np.array(arriving)[late.streams] > 0)  # streams without readers need no arrivals
    steps = np.cumsum((late.counts * np.array(arriving)[late.streams])[::-1])[::-1]
    beyond = late.instants[steps > limit - backlog * scale]
    start = max(now - horizon * scale, recent.since, float(beyond[-1]) if len(beyond) else -np.inf)
    late = late.pick(late.instants > start)
    instants = np.repeat(late.instants - start, late.counts)
    streams = np.repeat(late.streams, late.counts)
    work = float(steps[-len(late.instants)]) if len(late.instants) else 0.0
    rounds = _rounds(now - start, horizon * scale, (limit - backlog * scale) / work if work else 1.0)
    instants = np.concatenate([instants + lap * (now - start) for lap in range(rounds)])
    streams = np.tile(streams, rounds)
    arrivals: list[Floats] = [instants[streams == place] for place in range(len(arriving))]
    return ForecastWorkload(build_shadow_plan(engine, arrivals), copy_buffers(engine, recent, scale), scale)


def _rounds(known: float, horizon: float, allowed: float) -> int:
    """Return how often to repeat a pattern of this length: to fill the horizon, within the step limit."""
    if not 0 < known < horizon:
        return 1
    return max(1, int(min(np.ceil(horizon / known), MAX_ROUNDS, allowed)))


def choose_best(
    outlooks: Mapping[str, Forecast], weights: Mapping[str, float], present: str, hysteresis: float = 0.0
) -> tuple[str, dict[str, dict[str, float]]]:
    """Return the candidate of least J = Σ w·c/c*, where c* is the best cost by that metric; ties keep the active one.

    To be beaten, its J must be above the best by more than `hysteresis`. The reasons are each one's ratios c/c* by
    metric, and J as "score". A metric that some candidate has no figure of counts for none.
    """
    for metric in weights:
        if metric not in METRICS:
            raise DsmsError(f"no metric {metric!r}{existing(metric, METRICS)}")
    costs = {name: outlook.costs() for name, outlook in outlooks.items()}
    reasons: dict[str, dict[str, float]] = {name: {} for name in outlooks}
    for metric in METRICS:
        known = {name: cost for name, by_metric in costs.items() if (cost := by_metric[metric]) is not None}
        if weights.get(metric) and len(known) == len(costs):
            least = min(known.values(), default=1.0)
            for name, cost in known.items():
                reasons[name][metric] = cost / least
    for ratios in reasons.values():
        ratios["score"] = sum(weights[metric] * ratio for metric, ratio in ratios.items())
    scores = {name: ratios["score"] for name, ratios in reasons.items()}
    leader = min(scores, key=scores.__getitem__, default=present)
    beaten = present not in scores or scores[present] > scores[leader] * (1 + hysteresis)
    return leader if beaten else present, reasons


@dataclass(frozen=True)
class _RunTotals:
    elapsed: float
    held: float  # tuples, integrated over time
    delays: float
    outputs: float
    turns: int

    def outlook(self, length: float, scale: float) -> Forecast:
        # In a scaled workload ages, times and tuples are all smaller.
        return Forecast(
            self.held / scale**2, self.delays / scale**2, self.outputs / scale, self.elapsed / scale, length / scale,
            self.turns,
        )  # fmt: skip


def _run(look: ForecastWorkload, policy: Policy) -> _RunTotals:

    def stocked(plan: Plan, ledger: Ledger, clock: Clock) -> TupleRunner:
        runner = TupleRunner(plan, ledger, clock)
        runner.load_buffers(look.stocks)
        return runner

    memory, turns, delays = MemoryMeasure(), TurnMeasure(), _DelayObserver(look)
    engine = Engine(look.plan, policy, runner=stocked, observers=[memory, turns, delays])
    engine.run()
    elapsed = engine.clock.now()
    engine.finish(elapsed)
    return _RunTotals(elapsed, memory.tuples_integral, delays.total, delays.outputs, turns.count)


class _DelayObserver(Observer):
    """Accumulates the expected number of results and the sum of their delays.

    A tuple counts with its chance to become a result (or with how many) for as long as it is in a queue, whatever
    becomes of it: by Little's law that is the results' delay, and it rests on all tuples, where the few results of a
    short run say little. As each chance is entered when a tuple comes and struck out when it goes on, the sum over time
    is the sum of the instants at which that is done, those of entering taken off.
    """

    trusted = True

    def __init__(self, look: ForecastWorkload) -> None:
        self._look = look
        self.outputs = self.total = 0.0

    def attach(self, engine: Engine) -> None:
        ledger = engine.ledger
        ahead = engine.statistics.results()
        buffers = [*ledger.streams, *ledger.outlets]
        worth = [sum(ahead[queue.station.index] for queue in buffer.readers) for buffer in buffers]
        self._arriving = worth[: len(ledger.streams)]
        self._taken = [ahead[queue.station.index] for queue in ledger.queues]
        self._made = [worth[len(ledger.streams) + queue.station.index] for queue in ledger.queues]
        for buffer, stock in zip(buffers, self._look.stocks, strict=True):
            for queue, left in zip(buffer.readers, stock.left, strict=True):
                self.outputs += left * self._taken[queue.index]
                self.total -= float(stock.arrived[len(stock.seq) - left :].sum()) * self._taken[queue.index]

    def arrive(self, now: float, stream: int, count: int) -> None:
        self.outputs += self._arriving[stream] * count
        self.total -= self._arriving[stream] * count * now

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        for queue, taken, made, cost, *_ in steps:
            start += cost
            self.total += (taken * self._taken[queue.index] - made * self._made[queue.index]) * start
