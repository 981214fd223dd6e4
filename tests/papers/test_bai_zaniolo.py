"""Bai, Zaniolo (SSPS 2008), section 2: output-completion and memory-reduction charts of batches at time 0."""

from __future__ import annotations

import pytest

import dsms
from dsms import Observer, Policy, plan_from


class InOrder(Policy):
    """Components one after the other, in the plan's order or the other way round."""

    name = "in-order"
    dynamic = False

    def __init__(self, backwards: bool = False) -> None:
        self._sign = 1 if backwards else -1

    def segments(self, plan):
        return plan.by_query()

    def priority(self, segment):
        return self._sign * segment.index


class Area(Observer):
    """The area under the output-completion chart: outputs not yet delivered, over time; that is, total latency."""

    trusted = True

    def __init__(self):
        self.total = 0.0

    def read(self, journal):
        self.total += sum(journal.result_left) - sum(journal.result_arrived)


def batch(**components):
    """For each component its (time per tuple, tuples waiting at time 0, selectivity, size)."""
    return plan_from({
        "streams": {n: {"size": size, "arrivals": {"kind": "list", "at": [0] * count}}
                    for n, (_, count, _, size) in components.items()},
        "queries": {f"q{n}": {"from": n, "operators": [{"name": f"o{n}", "cost": tau, "selectivity": s}]}
                    for n, (tau, _, s, _) in components.items()},
        "run": {"selectivity": "spread"},
    })  # fmt: skip


def area(plan, **order):
    observer = Area()
    run = dsms.simulate(plan, InOrder(**order), observers=[observer])
    return observer.total, run


@pytest.mark.parametrize(("tau", "n", "sigma"), [(2.0, 300, 1.0), (0.5, 400, 0.25), (3.0, 100, 0.5)])
def test_c11_the_area_of_one_component_is_half_tau_n_squared_times_selectivity(tau, n, sigma):
    """The paper's ½·tau·N² is the continuous limit: with whole tuples it is ½·tau·N(N+1), here within 1/N + 1/(σN)."""
    total, _ = area(batch(a=(tau, n, sigma, 1.0)))
    assert total == pytest.approx(sigma * tau * n * n / 2, rel=1 / n + 1 / (sigma * n))
    if sigma == 1:
        assert total == pytest.approx(tau * n * (n + 1) / 2)


def test_c11_the_memory_reduction_chart_counts_bytes():
    """M = beta·½·tau·N², beta the bytes saved per input tuple: here all 10 of them, as the output leaves."""
    tau, n = 2.0, 300
    _, run = area(batch(a=(tau, n, 1.0, 10.0)))
    assert run.memory.bytes.integral == pytest.approx(10 * tau * n * (n + 1) / 2)


@pytest.mark.parametrize("sigma", [(1.0, 1.0), (0.5, 0.25)])
def test_c12_two_components_add_the_rectangle_that_the_second_waits(sigma):
    """S_AB = S_A + S_B + tau_A·N_A·(sigma_B·N_B), and S_BA likewise; so the steeper component goes first."""
    (tau_a, n_a), (tau_b, n_b) = (1.0, 200), (3.0, 120)
    sigma_a, sigma_b = sigma
    alone_a, _ = area(batch(a=(tau_a, n_a, sigma_a, 1.0)))
    alone_b, _ = area(batch(b=(tau_b, n_b, sigma_b, 1.0)))
    both = batch(a=(tau_a, n_a, sigma_a, 1.0), b=(tau_b, n_b, sigma_b, 1.0))
    a_first, _ = area(both)
    b_first, _ = area(both, backwards=True)
    assert a_first == pytest.approx(alone_a + alone_b + tau_a * n_a * sigma_b * n_b)
    assert b_first == pytest.approx(alone_a + alone_b + tau_b * n_b * sigma_a * n_a)
    assert (a_first < b_first) == (sigma_a / tau_a > sigma_b / tau_b)
