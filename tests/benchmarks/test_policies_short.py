"""The short form of what `make bench` shows of our own policies: a few cases of its kind, exact in virtual time."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.policies.beside_paper_policies import FOUR, GAIN_MIN, PLAIN, PREDICTIVE, Bench, Contender, Gain, compare
from benchmarks.policies.cases import PlanCase, Weights, make_cases
from benchmarks.policies.freshness import curve, make_plan, measure, relative, staleness_saved
from benchmarks.policies.wrong_statistics import MisledPolicy

from dsms.engine.engine import Engine
from dsms.policies.registry import policy_named
from dsms.simulation import simulate

FEW = list(make_cases(seed=11, plans=4, arrivals=1500))  # each pattern once, with one to four queries


@pytest.fixture(scope="module")
def gains() -> list[Gain]:
    """Of qos-chain on all weightings."""
    return compare({"ours": PLAIN["qos-chain"]}, FEW)["ours"]


def test_qos_chain_is_better_than_the_best_of_the_four_and_hardly_ever_worse(gains: list[Gain]) -> None:
    several = [gain.gain for gain in gains if gain.case.queries > 1 and gain.weights.delay]
    assert np.mean([gain > GAIN_MIN for gain in several]) > 0.65
    assert np.mean([gain.gain for gain in gains]) > 0.05
    assert min(gain.gain for gain in gains) > -0.03


def test_no_memory_is_spent_on_a_rate_that_cannot_be_had(gains: list[Gain]) -> None:
    """Drained runs of policies that are never idle have one rate; a weight on it must not cost anything."""
    assert all(gain.gain > -0.02 for gain in gains if gain.weights == Weights(0.5, 0, 0.5))
    assert all(gain.gain == pytest.approx(0) for gain in gains if gain.weights == Weights(0, 0, 1))


def test_the_four_are_no_better_than_the_best_of_them() -> None:
    found = compare({name: PLAIN[name] for name in FOUR}, FEW[2:3])
    best = np.max([[gain.gain for gain in mine] for mine in found.values()], axis=0)
    assert best == pytest.approx(np.zeros(len(best)))


@pytest.mark.parametrize("case", FEW[1:3], ids=lambda case: case.pattern)
def test_looking_ahead_finds_the_best_of_the_four_and_roulette_does_not(case: PlanCase) -> None:
    bench, weights = Bench(case), Weights(0.5, 0.5, 0)
    ahead = bench.gain(PREDICTIVE["predictive over the four"], weights).gain
    assert ahead > -0.03
    assert bench.gain(PLAIN["roulette over the four"], weights).gain < ahead


def test_the_policy_gets_wrong_statistics_while_the_plan_runs_with_the_true_ones() -> None:
    plan = FEW[2].plan()
    engine = Engine(plan, MisledPolicy(policy_named("qos-chain"), error=0.3))
    factors = [engine.statistics.of(station).cost / station.operator.cost for station in plan.stations]
    assert all(0.7 <= factor <= 1.3 for factor in factors)
    assert len(set(factors)) == len(factors)
    asked_nothing = simulate(plan, MisledPolicy(policy_named("fifo"), error=0.3))
    assert asked_nothing.latency == simulate(plan, "fifo").latency
    assert Bench(FEW[2]).gain(Contender("qos-chain", error=0.3), Weights(0, 1, 0)).gain > 0


def test_fas_gamma_is_less_stale_than_fas_mcq_at_equal_response() -> None:
    plans = [make_plan(seed=1, tuples=80)]
    names = ["rb-mcq", *(f"fas-mcq:beta={beta}" for beta in (0.25, 0.5, 0.75)), "fas-gamma:gamma=0.2"]
    points = relative({name: measure(name, plans) for name in names})
    assert staleness_saved(points["fas-gamma:gamma=0.2"], curve(points)) > 0.02
    assert staleness_saved(points["fas-mcq:beta=0.5"], curve(points)) == 0  # it is on the curve
