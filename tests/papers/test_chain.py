"""Babcock et al., "Chain" (SIGMOD 2003): example 1; progress charts and their lower envelopes (section 3)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import dsms
from dsms.charts import chains, deltas, lower_envelope, progress_chart, slopes

EXAMPLE = Path(__file__).parent.parent / "plans" / "chain-example.toml"


def sizes(policy: str) -> list[float]:
    return [held for _, held in dsms.simulate(EXAMPLE, policy, sample=1.0).memory.samples]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("greedy", [1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2]), ("fifo", [1, 1.2, 2.0, 2.2, 3.0, 3.2, 4.0])],
)
def test_k1_queue_size_over_time(policy, expected):
    """O1 takes a unit of time and leaves 0.2; O2 takes a unit for that. Arrivals at 0..6, none at 7..13."""
    assert sizes(policy)[:7] == pytest.approx(expected)


@pytest.mark.parametrize("policy", ["greedy", "fifo"])
def test_k1_both_are_empty_at_14_and_not_before(policy):
    run = dsms.simulate(EXAMPLE, policy, sample=1.0)
    assert run.elapsed == 14
    assert sizes(policy)[13] == pytest.approx(0.2)
    assert sizes(policy)[14] == 0


def test_k1_with_a_limit_of_3_greedy_is_feasible_and_fifo_is_not():
    assert dsms.simulate(EXAMPLE, "greedy").memory.tuples.max <= 3
    assert dsms.simulate(EXAMPLE, "fifo").memory.tuples.max > 3


FIFTH, HALF = Fraction(1, 5), Fraction(1, 2)


def test_c1_the_chart_of_example_1_counts_the_time_for_what_is_left_of_a_tuple():
    """O2 takes 5 for a whole tuple, 1 for the fifth that gets to it."""
    points = progress_chart([1, 5], [FIFTH, 0])
    assert points == [(0, 1), (1, FIFTH), (2, 0)]
    assert slopes(points, lower_envelope(points)) == [1 - FIFTH, FIFTH]


def test_c3_unproductive_operators_before_a_selective_one_are_one_chain_with_it():
    """Two that drop little, a fast one that drops much, a slow one: greedy would run the third before the others."""
    points = progress_chart([1, 1, HALF, 10], [Fraction(9, 10), Fraction(9, 10), Fraction(1, 10), 1])
    assert chains(points) == [range(3), range(3, 4)]
    assert slopes(points, [0, 3, 4]) == [Fraction(919, 2305), Fraction(1, 10)]


def test_c5_a_join_that_multiplies_tuples_belongs_to_the_chain_of_what_makes_up_for_it():
    points = progress_chart([1, 1, 1, 10], [Fraction(9, 10), 2, Fraction(1, 10), 1])
    assert [size for _, size in points] == [1, Fraction(9, 10), Fraction(9, 5), Fraction(9, 50), 0]
    assert chains(points) == [range(3), range(3, 4)]


def test_c9_a_delta_is_the_whole_fall_of_its_segment_at_most_where_the_paper_has_it_equal():
    """The bound of a tuple for each path stands: it needs no more."""
    points = progress_chart([1, 2, 4], [HALF, HALF, 1])
    assert deltas(points, lower_envelope(points)) == [HALF, Fraction(1, 4), Fraction(1, 4)]
    points = progress_chart([1, 1], [Fraction(9, 10), 1])
    assert lower_envelope(points) == [0, 2]
    assert deltas(points, [0, 2]) == [Fraction(9, 10)]
