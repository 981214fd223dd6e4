"""Babcock et al., "Chain" (SIGMOD 2003): example 1."""

from __future__ import annotations

from pathlib import Path

import pytest

import dsms

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
