"""Recommends a policy for a plan: runs all policies on its arrivals and scores them by the required QoS."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dsms.advice.explain import resolve_plan
from dsms.advice.reasons import finite_or_none, is_oracle
from dsms.config.fields import is_number
from dsms.config.qos import STATISTIC_ALIASES, Qos, find_template
from dsms.errors import DsmsError, PolicyError, existing
from dsms.plan.graph import Plan
from dsms.policies.registry import parameters, policy_named
from dsms.policies.registry import policies as registered
from dsms.simulation import Run, simulate

DEFAULT_SEEDS = 5
BALANCED_WEIGHTS = {"memory": 1 / 3, "delay": 1 / 3, "rate": 1 / 3}
MIN_RELATIVE_COST = 1e-3  # of the worst: a best near zero must not make all others infinitely bad
TIE_TOLERANCE = 0.005  # a metric this near to the best counts as equal


class CostMetric:
    """A cost that a QoS may weigh; less is better."""

    def __init__(self, name: str, said: str, cost: Callable[[Run], float | None]) -> None:
        self.name, self.said, self.cost = name, said, cost


METRICS = {
    metric.name: metric
    for metric in (
        CostMetric("memory", "queued tuples", lambda run: run.memory.tuples.mean),
        CostMetric("delay", "delay", lambda run: run.latency.mean),
        CostMetric("rate", "time per result", lambda run: 1 / run.output_rate if run.output_rate else None),
        CostMetric("freshness", "staleness", lambda run: run.staleness.mean),
    )
}


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over several seeds; None if a seed has no value."""

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
    yardstick: bool  # it knows the future: a bound, never recommended
    runs: list[Run]
    scores: list[float]  # J of each seed: 1 would be the best in every metric

    @property
    def score(self) -> Spread:
        return Spread.of(self.scores)

    def over_seeds(self, figure: Callable[[Run], float | None]) -> Spread:
        return Spread.of([figure(run) for run in self.runs])

    def to_json(self) -> dict[str, Any]:
        shown = {name: vars(self.over_seeds(figure)) for name, figure in SHOWN_FIGURES.items()}
        return {"policy": self.policy, "yardstick": self.yardstick, "score": vars(self.score), **shown}


SHOWN_FIGURES: dict[str, Callable[[Run], float | None]] = {
    "memory_mean": lambda run: run.memory.tuples.mean,
    "memory_max": lambda run: run.memory.tuples.max,
    "latency_mean": lambda run: run.latency.mean,
    "latency_p99": lambda run: run.latency.p99,
    "staleness": lambda run: run.staleness.mean,
    "output_rate": lambda run: run.output_rate,
}


@dataclass(frozen=True)
class Recommendation:
    """Every policy that was tried, the best first and oracles last, and the reasons for the first."""

    plan: str
    qos: dict[str, float]
    seeds: list[int]
    policy: str
    reasons: list[str]
    trials: list[Trial]
    left_out: dict[str, str]  # policies that cannot run the plan, and why

    def to_json(self) -> dict[str, Any]:
        """The recommendation as plain data; a figure that does not exist is None."""
        return {**vars(self), "trials": [trial.to_json() for trial in self.trials]}


def recommend(
    plan: Plan | str | Path | Mapping[str, Any],
    qos: Qos | Mapping[str, float] | str | None = None,
    *,
    policies: Sequence[str] | None = None,
    seeds: int = DEFAULT_SEEDS,
    until: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Recommendation:
    """Run policies (default: all) on a plan's arrivals with several seeds, from the plan's own on, and choose one.

    J = Σ w·c/c*, with c = (mean queued tuples, mean delay, 1/rate, staleness) and c* the best of all policies that do
    not know the future, seed by seed. `progress` is called with the next policy, the number of finished runs, and the
    number of all runs.
    """
    plan = resolve_plan(plan)
    weights = resolve_weights(plan.qos if qos is None else qos)
    if not isinstance(seeds, int) or isinstance(seeds, bool) or seeds < 1:
        raise DsmsError(f"seeds: {seeds!r} is not a whole number from 1")
    candidates = registered() if policies is None else policies
    names = list(dict.fromkeys(name if qos is None else _add_weights(name, weights) for name in candidates))
    clairvoyant = {name: is_oracle(policy_named(name)) for name in names}  # reports misspelt names before the first run
    if all(clairvoyant.values()):
        choices = sorted(name for name, policy in registered().items() if not is_oracle(policy))
        raise PolicyError(f"policies {names} all know the future: add one that does not; there are {choices}")
    drawn = [plan.settings.seed + more for more in range(seeds)]
    runs: dict[str, list[Run]] = {}
    left_out: dict[str, str] = {}
    for place, name in enumerate(names):
        try:
            runs[name] = _run_policy(plan, name, drawn, until, progress, place * seeds, len(names) * seeds)
        except PolicyError as error:
            if policies is not None:
                raise
            left_out[name] = str(error)
    if not any(run.admitted for run in next(iter(runs.values()))):
        raise DsmsError(f"{plan.name or 'the plan'}: nothing arrives, so policies cannot be compared")
    scores = _score_policies(runs, weights, [name for name in runs if not clairvoyant[name]])
    trials = [Trial(name, clairvoyant[name], runs[name], scores[name]) for name in runs]
    trials.sort(key=lambda trial: (trial.yardstick, statistics.fmean(trial.scores)))
    return Recommendation(
        plan.name, weights, drawn, trials[0].policy, _explain_choice(trials, weights), trials, left_out
    )


def resolve_weights(qos: Qos | Mapping[str, float] | str | None) -> dict[str, float]:
    """The weight of each metric, from a template's name or `memory=0.5,delay=0.3,rate=0.2`; by default equal.

    Freshness is known only at the end of a run, so a `Qos` for running plans cannot require it.
    """
    if qos is None:
        return dict(BALANCED_WEIGHTS)
    if isinstance(qos, str) and qos and "=" not in qos:
        qos = find_template(qos)
    if isinstance(qos, Qos):
        short = {statistic: name for name, (statistic, _) in STATISTIC_ALIASES.items()}
        qos = {short.get(r.statistic, r.statistic): r.weight for r in qos.requirements}
    given: dict[str, Any] = {}
    for part in qos.split(",") if isinstance(qos, str) else qos:
        name, equals, value = part.partition("=") if isinstance(qos, str) else (part, "=", qos[part])
        if not equals or name.strip() in given:
            raise PolicyError(f"qos: {part!r} in {qos!r}: each of {list(METRICS)} at most once, as in memory=0.5")
        given[name.strip()] = value
    for name, value in given.items():
        if name not in METRICS:
            raise PolicyError(f"qos: no metric {name!r}{existing(name, METRICS)}")
        try:
            given[name] = float(value)
        except (TypeError, ValueError):
            given[name] = math.nan
        if not is_number(given[name]) or given[name] < 0:
            raise PolicyError(f"qos: the weight of {name}: {value!r} is not a number from 0")
    total = math.fsum(given.values())
    if abs(total - 1) > 1e-6:
        raise PolicyError(f"qos: the weights add up to {total:.9g}, not to 1: {_format_weights(given)}")
    return given


def _add_weights(name: str, weights: Mapping[str, float]) -> str:
    """Add the weights to a policy that has parameters for them and none given."""
    mine = {key: weights.get(key, 0.0) for key in BALANCED_WEIGHTS}
    total = math.fsum(mine.values())
    if ":" in name or not total:
        return name
    known = parameters(type(policy_named(name)))
    texts = [f"{key}={weight / total:.12g}" for key, weight in mine.items() if weight]
    if "qos" in known:
        return f"{name}:qos={'+'.join(texts)}"
    return f"{name}:{','.join(texts)}" if mine.keys() <= known.keys() else name


def _run_policy(
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


def _score_policies(
    runs: Mapping[str, Sequence[Run]], weights: Mapping[str, float], choices: Sequence[str]
) -> dict[str, list[float]]:
    """J of every policy and seed."""
    scores = {name: [0.0] * len(mine) for name, mine in runs.items()}
    for metric, weight in weights.items():
        cost = METRICS[metric].cost
        for seed in range(len(next(iter(runs.values())))):
            costs = {name: cost(mine[seed]) for name, mine in runs.items()}
            known = [value for name in choices if (value := costs[name]) is not None]
            best = max(min(known), MIN_RELATIVE_COST * max(known)) if known else 0.0
            for name, value in costs.items():
                # A cost that no policy has (there are no results) favours none.
                scores[name][seed] += weight * (value / best if best and value is not None else 1.0)
    return scores


def _explain_choice(trials: Sequence[Trial], weights: Mapping[str, float]) -> list[str]:
    """The reasons for the first policy, in sentences."""
    choices = [trial for trial in trials if not trial.yardstick]
    first, seeds = choices[0], len(choices[0].runs)
    several = f"{seeds} seeds" if seeds > 1 else "one seed"
    said = [
        f"{first.policy} has the lowest J, {_format_spread(first.score)} over {several}, "
        f"for {_format_weights(weights)}; J = 1 would be the best of all in everything at once."
    ]
    shown = [name for name in METRICS if weights.get(name) or name in ("memory", "delay")]  # these two are never free
    prices = [price for name in shown if (price := _explain_price(first, choices, METRICS[name]))]
    if prices:
        said.append(f"What that costs: {'; '.join(prices)}.")
    if len(choices) > 1:
        said.append(_explain_runner_up(first, choices[1:]))
    bounds = [trial for trial in trials if trial.yardstick]
    if bounds:
        best = min(bounds, key=lambda trial: statistics.fmean(trial.scores))
        if best.score.mean is not None and first.score.mean is not None and best.score.mean < first.score.mean:
            said.append(f"{best.policy}, which knows the future and cannot be had, has {_format_spread(best.score)}.")
    return said


def _explain_price(first: Trial, choices: Sequence[Trial], metric: CostMetric) -> str | None:
    """The cost of the first policy in one metric, compared with the best."""
    costs = [(mean, trial.policy) for trial in choices if (mean := trial.over_seeds(metric.cost).mean) is not None]
    mine = first.over_seeds(metric.cost).mean
    if mine is None or not costs:
        return f"no {metric.said} to compare, so {metric.name} speaks for none"
    least, best = min(costs)
    if mine <= least * (1 + TIE_TOLERANCE):
        return f"{metric.said} {mine:.4g}, as good as any"
    more = f"{mine / least - 1:.1%} above" if least else "against"
    return f"{metric.said} {mine:.4g}, {more} the {least:.4g} of {best}"


def _explain_runner_up(first: Trial, others: Sequence[Trial]) -> str:
    """How certain it is that the first policy is better than the second."""
    alike = [trial.policy for trial in others if np.allclose(trial.scores, first.scores, rtol=1e-9)]
    if alike:
        return f"{', '.join(alike)} did exactly as well."
    second = others[0]
    ahead = [b - a for a, b in zip(first.scores, second.scores, strict=True)]
    mean = statistics.fmean(ahead)
    text = f"The runner-up is {second.policy} with {_format_spread(second.score)}, {mean:.2g} behind"
    if len(ahead) == 1:
        return f"{text}; one seed does not show whether that is chance."
    wins, spread = sum(difference > 0 for difference in ahead), statistics.stdev(ahead)
    surely = "more than the spread of that difference" if mean > spread else "less than the spread of that difference"
    verdict = "" if mean > spread else ": take either"
    return f"{text} and worse in {wins} of {len(ahead)} seeds; that is {surely} over the seeds, {spread:.2g}{verdict}."


def _format_spread(spread: Spread) -> str:
    mean, deviation = finite_or_none(spread.mean), spread.deviation
    return f"{mean:.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def _format_weights(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items())
