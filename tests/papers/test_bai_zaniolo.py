"""Bai, Zaniolo (SSPS 2008): charts of batches at time 0, run and drawn; forks cut into partitions; tuples into runs."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dsms
from dsms import Observer, Policy, charts, plan_from
from dsms.charts import Tree


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


HALF = Fraction(1, 2)


@pytest.mark.parametrize(("tau", "n", "sigma"), [(2, 300, Fraction(1)), (HALF, 400, Fraction(1, 4))])
def test_c11_the_area_drawn_is_exact_in_the_limit_and_half_a_tuple_more_with_whole_tuples(tau, n, sigma):
    assert charts.area(charts.output_chart([(tau * n, sigma * n)]), steady=True) == sigma * tau * n * n / 2
    assert charts.area(charts.output_chart([(tau, sigma)] * n)) == sigma * tau * n * (n + 1) / 2


def test_c11_the_memory_reduction_chart_drawn_starts_with_all_bytes_that_will_be_saved():
    beta, tau, n = 10, 2, 300
    assert charts.memory_chart([(tau, beta)] * 3) == [(0, 30), (2, 20), (4, 10), (6, 0)]
    assert charts.area(charts.memory_chart([(tau * n, beta * n)]), steady=True) == beta * tau * n * n / 2


@pytest.mark.parametrize("steady", [True, False])
@pytest.mark.parametrize("sigma", [(1, 1), (HALF, Fraction(1, 4))])
def test_c12_the_rectangle_drawn_is_the_same_with_whole_tuples(sigma, steady):
    """S_AB = S_A + S_B + tau_A·N_A·(sigma_B·N_B): the second starts when the first's last tuple is through."""
    (tau_a, n_a), (tau_b, n_b), (sigma_a, sigma_b) = (1, 20), (3, 12), sigma
    a = [(tau_a * n_a, sigma_a * n_a)] if steady else [(tau_a, sigma_a)] * n_a
    b = [(tau_b * n_b, sigma_b * n_b)] if steady else [(tau_b, sigma_b)] * n_b
    alone, a_first, b_first = (
        [charts.area(charts.output_chart(runs), steady=steady) for runs in orders]
        for orders in ([a, b], [a + b], [b + a])
    )
    assert a_first == [sum(alone) + tau_a * n_a * sigma_b * n_b]
    assert b_first == [sum(alone) + tau_b * n_b * sigma_a * n_a]


@pytest.mark.parametrize("tau", [(2, 1, 2), (2, 1, 3), (2, 1, 4)])
def test_c17_a_fork_is_broken_where_the_slower_branch_takes_longer_than_the_rest(tau):
    """Broken: 3/2·N²·(tau1 + tau2) + ½·N²·tau3; the paper drops the rectangle N²·(tau1 + tau2) that O3 waits."""
    n, (first, fast, slow) = 7, tau
    unbroken = charts.area(charts.output_chart([(n * sum(tau), 2 * n)]), steady=True)
    broken = charts.area(charts.output_chart([(n * (first + fast), n), (n * slow, n)]), steady=True)
    assert unbroken == n * n * sum(tau)
    assert broken == n * n * (3 * (first + fast) + slow) / 2
    pieces = charts.latency_partitions([Tree(1, first, 1, branches=[Tree(2, fast, 1), Tree(3, slow, 1)])])
    assert (len(pieces) == 1) == (unbroken < broken) == (slow < first + fast)


@pytest.mark.parametrize(
    ("tau", "partitions", "slopes"),
    [((2, 1, 2), [(1, 2, 3)], [Fraction(2, 5)]), ((2, 1, 4), [(1, 2), (3,)], [Fraction(1, 3), Fraction(1, 4)])],
)
def test_k7b_a_fork_with_either_outcome(tau, partitions, slopes):
    first, fast, slow = map(Fraction, tau)
    for branches in ([Tree(2, fast, 1), Tree(3, slow, 1)], [Tree(3, slow, 1), Tree(2, fast, 1)]):
        pieces = charts.latency_partitions([Tree(1, first, 1, branches=branches)])
        assert [piece.members for piece in pieces] == partitions
        assert [piece.slope for piece in pieces] == slopes


def test_k7b_and_c21_a_fork_of_forks():
    """E→{D, C→{A, B}, G→{H→P, O}}, all of selectivity 1."""
    c = Tree("C", Fraction(3), 1, branches=[Tree("A", Fraction(4), 1), Tree("B", Fraction(5), 1)])
    h = Tree("H", HALF, 1, branches=[Tree("P", HALF, 1)])
    g = Tree("G", Fraction(1), 1, branches=[h, Tree("O", Fraction(20), 1)])
    pieces = charts.latency_partitions([Tree("E", Fraction(2), 1, branches=[Tree("D", Fraction(1), 1), c, g])])
    assert [(set(piece.members), piece.time, piece.gain) for piece in pieces] == [
        (set("EDGHP"), 5, 2),
        (set("CAB"), 12, 2),
        (set("O"), 20, 1),
    ]


def memory_fork(factor=1):
    one = Tree("O1", Fraction(1), 1, HALF * factor, branches=[Tree("O2", Fraction(10), 1)])
    other = Tree("O3", Fraction(2), 1, Fraction(2, 5) * factor, branches=[Tree("O4", Fraction(1), 1)])
    return [one, other]


def test_k7b_and_c24_a_fork_at_the_source_for_memory():
    """The fork-segment {O1, O3} gains 1 − ½ − 2/5 in 3 units; O4 is worth taking in, O2 is not."""
    assert [(piece.members, piece.time, piece.gain) for piece in charts.memory_partitions(memory_fork())] == [
        (("O1", "O3", "O4"), 4, HALF),
        (("O2",), 10, HALF),
    ]
    fork = Tree("O0", Fraction(1), 1, branches=memory_fork())
    assert [piece.members for piece in charts.memory_partitions([fork])] == [("O0", "O1", "O3", "O4"), ("O2",)]


def test_c22_a_fork_segment_may_lose_memory_and_is_not_split():
    """Copies larger than the shared tuple: 1 − 1 − 4/5 in 3 units, made good by O4 only."""
    pieces = charts.memory_partitions(memory_fork(factor=2))
    assert [(piece.members, piece.gain) for piece in pieces] == [(("O1", "O3", "O4", "O2"), 1)]
    pieces = charts.memory_partitions([Tree("O1", 1, 1, 2, branches=[Tree("O2", 10, 1)]), Tree("O3", 2, 1)])
    assert [(piece.members, piece.gain) for piece in pieces] == [(("O1", "O3", "O2"), 1)]


def test_c26_with_a_buffer_for_each_reader_every_branch_is_a_chain_path_of_its_own():
    pieces = charts.memory_partitions(memory_fork(), shared=False)
    assert [(piece.members, piece.slope) for piece in pieces] == [
        (("O1",), HALF), (("O3", "O4"), Fraction(1, 3)), (("O2",), Fraction(1, 20)),
    ]  # fmt: skip


def test_k5_maximum_slope_segments_against_the_cheapest_head_first():
    """Queues [10, 1] and [9], an output each: greedy takes 9, 10, 1; the run 10, 1 is steeper than 9."""
    assert charts.area(charts.output_chart([(9, 1), (10, 1), (1, 1)])) == 48
    queues = [[(10, 1), (1, 1)], [(9, 1)]]
    runs = sorted(((run.slope, q, run) for q, queue in enumerate(queues) for run in charts.tuple_segments(queue)))[::-1]
    order = [entry for _, q, run in runs for entry in queues[q][run.start : run.stop]]
    assert order == [(10, 1), (1, 1), (9, 1)]
    assert charts.area(charts.output_chart(order)) == 41
