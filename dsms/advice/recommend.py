"""Which policy suits a plan: all of them run on its arrivals, scored by what is wanted of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dsms.advice.explain import plan_given
from dsms.advice.reasons import finite, knows_the_future
from dsms.errors import DsmsError, PolicyError, existing
from dsms.plan import Plan
from dsms.policies.registry import parameters, policy_named
from dsms.policies.registry import policies as registered
from dsms.qos import SHORT, Qos, template
from dsms.settings import is_number
from dsms.simulate import Run, simulate

SEEDS = 5
BALANCED = {"memory": 1 / 3, "delay": 1 / 3, "rate": 1 / 3}
FLOOR = 1e-3  # of the worst: a best of next to nothing must not make all others infinitely bad
NEAR = 0.005  # a metric within so much of the best is as good


class Metric:
    """Something that a QoS may weigh: the less the better."""

    def __init__(self, name: str, said: str, cost: Callable[[Run], float | None]) -> None:
        self.name, self.said, self.cost = name, said, cost


METRICS = {
    metric.name: metric
    for metric in (
        Metric("memory", "queued tuples", lambda run: run.memory.tuples.mean),
        Metric("delay", "delay", lambda run: run.latency.mean),
        Metric("rate", "time per result", lambda run: 1 / run.output_rate if run.output_rate else None),
        Metric("freshness", "staleness", lambda run: run.staleness.mean),
    )
}


@dataclass(frozen=True)
class Spread:
    """Figures of several seeds: their mean and standard deviation; None where there is none."""

    mean: float | None
    deviation: float | None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Spread:
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return cls(None, None)
        return cls(statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else None)


@dataclass(frozen=True)
class Trial:
    """One policy on all seeds."""

    policy: str
    yardstick: bool  # it knows the future: to compare with, not to choose
    runs: list[Run]
    scores: list[float]  # J of each seed: 1 would be the best of all in everything

    @property
    def score(self) -> Spread:
        return Spread.of(self.scores)

    def over_seeds(self, figure: Callable[[Run], float | None]) -> Spread:
        return Spread.of([figure(run) for run in self.runs])

    def to_json(self) -> dict[str, Any]:
        shown = {name: vars(self.over_seeds(figure)) for name, figure in SHOWN.items()}
        return {"policy": self.policy, "yardstick": self.yardstick, "score": vars(self.score), **shown}


SHOWN: dict[str, Callable[[Run], float | None]] = {
    "memory_mean": lambda run: run.memory.tuples.mean,
    "memory_max": lambda run: run.memory.tuples.max,
    "latency_mean": lambda run: run.latency.mean,
    "latency_p99": lambda run: run.latency.p99,
    "staleness": lambda run: run.staleness.mean,
    "output_rate": lambda run: run.output_rate,
}


@dataclass(frozen=True)
class Recommendation:
    """Every policy that was tried, the best first and yardsticks last, and what speaks for the first."""

    plan: str
    qos: dict[str, float]
    seeds: list[int]
    policy: str
    reasons: list[str]
    trials: list[Trial]
    left_out: dict[str, str]  # policies that cannot run the plan, and why

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; what does not exist is None."""
        return {**vars(self), "trials": [trial.to_json() for trial in self.trials]}


def recommend(
    plan: Plan | str | Path | Mapping[str, Any],
    qos: Qos | Mapping[str, float] | str | None = None,
    *,
    policies: Sequence[str] | None = None,
    seeds: int = SEEDS,
    until: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Recommendation:
    """Run policies (default: all) on a plan's arrivals with several seeds, from the plan's own on, and choose.

    J = Σ w·c/c*, with c = (mean queued tuples, mean delay, 1/rate, staleness) and c* the best of all policies that do
    not know the future, seed by seed. `progress` is told which policy runs next, how many runs are done, and of how
    many.
    """
    plan = plan_given(plan)
    weights = weights_of(plan.qos if qos is None else qos)
    if not isinstance(seeds, int) or isinstance(seeds, bool) or seeds < 1:
        raise DsmsError(f"seeds is {seeds!r}: a whole number from 1 is wanted")
    wanted = registered() if policies is None else policies
    names = list(dict.fromkeys(name if qos is None else _told(name, weights) for name in wanted))
    clairvoyant = {name: knows_the_future(policy_named(name)) for name in names}  # typing errors first of all
    if all(clairvoyant.values()):
        choices = sorted(name for name, policy in registered().items() if not knows_the_future(policy))
        raise PolicyError(f"policies are {names}: one that does not know the future is wanted; there are {choices}")
    drawn = [plan.settings.seed + more for more in range(seeds)]
    runs: dict[str, list[Run]] = {}
    left_out: dict[str, str] = {}
    for place, name in enumerate(names):
        try:
            runs[name] = _runs(plan, name, drawn, until, progress, place * seeds, len(names) * seeds)
        except PolicyError as error:
            if policies is not None:
                raise
            left_out[name] = str(error)
    if not any(run.admitted for run in next(iter(runs.values()))):
        raise DsmsError(f"{plan.name or 'the plan'}: nothing arrives, so that nothing can be compared")
    scores = _scores(runs, weights, [name for name in runs if not clairvoyant[name]])
    trials = [Trial(name, clairvoyant[name], runs[name], scores[name]) for name in runs]
    trials.sort(key=lambda trial: (trial.yardstick, statistics.fmean(trial.scores)))
    return Recommendation(plan.name, weights, drawn, trials[0].policy, _reasons(trials, weights), trials, left_out)


def weights_of(qos: Qos | Mapping[str, float] | str | None) -> dict[str, float]:
    """How much each metric counts, by a template's name or from `memory=0.5,delay=0.3,rate=0.2`; by default alike.

    Freshness, which is known only when a run is over, is nothing that a `Qos` could require of one that goes on.
    """
    if qos is None:
        return dict(BALANCED)
    if isinstance(qos, str) and qos and "=" not in qos:
        qos = template(qos)
    if isinstance(qos, Qos):
        short = {statistic: name for name, (statistic, _) in SHORT.items()}
        qos = {short.get(r.statistic, r.statistic): r.weight for r in qos.requirements}
    given: dict[str, Any] = {}
    for part in qos.split(",") if isinstance(qos, str) else qos:
        name, equals, value = part.partition("=") if isinstance(qos, str) else (part, "=", qos[part])
        if not equals or name.strip() in given:
            raise PolicyError(f"qos: {part!r} in {qos!r}: each of {list(METRICS)} at most once, as in memory=0.5")
        given[name.strip()] = value
    for name, value in given.items():
        if name not in METRICS:
            raise PolicyError(f"qos: nothing is known of {name!r}{existing(name, METRICS)}")
        try:
            given[name] = float(value)
        except (TypeError, ValueError):
            given[name] = math.nan
        if not is_number(given[name]) or given[name] < 0:
            raise PolicyError(f"qos: the weight of {name} is {value!r}: a number from 0 is wanted")
    total = math.fsum(given.values())
    if abs(total - 1) > 1e-6:
        raise PolicyError(f"qos: the weights add up to {total:.9g}, not to 1: {_weighed(given)}")
    return given


def _told(name: str, weights: Mapping[str, float]) -> str:
    """A policy that can be told what is wanted, and was not, is."""
    mine = {key: weights.get(key, 0.0) for key in BALANCED}
    total = math.fsum(mine.values())
    if ":" in name or not total:
        return name
    takes = parameters(type(policy_named(name)))
    texts = [f"{key}={weight / total:.12g}" for key, weight in mine.items() if weight]
    if "qos" in takes:
        return f"{name}:qos={'+'.join(texts)}"
    return f"{name}:{','.join(texts)}" if mine.keys() <= takes.keys() else name


def _runs(
    plan: Plan,
    name: str,
    seeds: Sequence[int],
    until: float | None,
    progress: Callable[[str, int, int], None] | None,
    done: int,
    total: int,
) -> list[Run]:
    found = []
    for more, seed in enumerate(seeds):
        if progress is not None:
            progress(name, done + more, total)
        found.append(simulate(plan, name, until=until, seed=seed))
    return found


def _scores(
    runs: Mapping[str, Sequence[Run]], weights: Mapping[str, float], choices: Sequence[str]
) -> dict[str, list[float]]:
    """J of every policy and seed."""
    scores = {name: [0.0] * len(mine) for name, mine in runs.items()}
    for metric, weight in weights.items():
        cost = METRICS[metric].cost
        for seed in range(len(next(iter(runs.values())))):
            costs = {name: cost(mine[seed]) for name, mine in runs.items()}
            known = [value for name in choices if (value := costs[name]) is not None]
            best = max(min(known), FLOOR * max(known)) if known else 0.0
            for name, value in costs.items():
                # What nobody has (no result ever leaves) speaks for nobody.
                scores[name][seed] += weight * (value / best if best and value is not None else 1.0)
    return scores


def _reasons(trials: Sequence[Trial], weights: Mapping[str, float]) -> list[str]:
    """What speaks for the first, in sentences."""
    choices = [trial for trial in trials if not trial.yardstick]
    first, seeds = choices[0], len(choices[0].runs)
    several = f"{seeds} seeds" if seeds > 1 else "one seed"
    said = [
        f"{first.policy} has the lowest J, {_figure(first.score)} over {several}, for {_weighed(weights)}; "
        "J = 1 would be the best of all in everything at once."
    ]
    asked = [name for name in METRICS if weights.get(name) or name in ("memory", "delay")]  # these two are never free
    prices = [price for name in asked if (price := _price(first, choices, METRICS[name]))]
    if prices:
        said.append(f"What that costs: {'; '.join(prices)}.")
    if len(choices) > 1:
        said.append(_runner_up(first, choices[1:]))
    bounds = [trial for trial in trials if trial.yardstick]
    if bounds:
        best = min(bounds, key=lambda trial: statistics.fmean(trial.scores))
        if best.score.mean is not None and first.score.mean is not None and best.score.mean < first.score.mean:
            said.append(f"{best.policy}, which knows the future and cannot be had, has {_figure(best.score)}.")
    return said


def _price(first: Trial, choices: Sequence[Trial], metric: Metric) -> str | None:
    """What the first costs in one metric, against the best in it."""
    costs = [(mean, trial.policy) for trial in choices if (mean := trial.over_seeds(metric.cost).mean) is not None]
    mine = first.over_seeds(metric.cost).mean
    if mine is None or not costs:
        return f"no {metric.said} to compare, so {metric.name} speaks for none"
    least, best = min(costs)
    if mine <= least * (1 + NEAR):
        return f"{metric.said} {mine:.4g}, as good as any"
    more = f"{mine / least - 1:.1%} above" if least else "against"
    return f"{metric.said} {mine:.4g}, {more} the {least:.4g} of {best}"


def _runner_up(first: Trial, others: Sequence[Trial]) -> str:
    """How sure it is that the first is better than the next."""
    alike = [trial.policy for trial in others if np.allclose(trial.scores, first.scores, rtol=1e-9)]
    if alike:
        return f"{', '.join(alike)} did exactly as well."
    second = others[0]
    ahead = [b - a for a, b in zip(first.scores, second.scores, strict=True)]
    mean = statistics.fmean(ahead)
    text = f"The runner-up is {second.policy} with {_figure(second.score)}, {mean:.2g} behind"
    if len(ahead) == 1:
        return f"{text}; one seed does not show whether that is chance."
    wins, spread = sum(difference > 0 for difference in ahead), statistics.stdev(ahead)
    surely = "more than the spread of that difference" if mean > spread else "less than the spread of that difference"
    verdict = "" if mean > spread else ": take either"
    return f"{text} and worse in {wins} of {len(ahead)} seeds; that is {surely} over the seeds, {spread:.2g}{verdict}."


def _figure(spread: Spread) -> str:
    mean, deviation = finite(spread.mean), spread.deviation
    return f"{mean:.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def _weighed(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items())
