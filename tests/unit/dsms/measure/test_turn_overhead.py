"""What turns take besides their work is found from their work, their hops and their length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsms
from dsms import plan_from
from dsms.measure.turn_overhead import NO_OVERHEAD, OverheadFit, OverheadMeter, TurnOverhead

WORK = np.linspace(0.001, 0.05, 40)
HOPS = np.arange(40.0) * 7 % 4


def fit(work, hops, lasted):
    found = OverheadFit()
    found.add(work[:7], hops[:7], lasted[:7])
    found.add(work[7:], hops[7:], lasted[7:])
    return found.fit()


@given(st.floats(0, 0.01), st.floats(0, 0.005), st.floats(0.5, 3))
def test_dead_time_hops_and_stretch_are_told_apart(turn, hop, stretch):
    found = fit(WORK, HOPS, turn + hop * HOPS + stretch * WORK)
    assert found.turns == 40
    assert (found.turn, found.hop, found.stretch) == pytest.approx((turn, hop, stretch), abs=1e-6)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5), st.floats(1e-6, 2)), min_size=1, max_size=30))
def test_no_figure_is_negative_and_all_turns_together_last_as_long_as_they_did(turns):
    work, hops, lasted = np.array(turns).T
    found = OverheadFit()
    found.add(work, hops, lasted)
    figures = found.fit()
    assert min(figures.turn, figures.hop, figures.stretch) >= 0
    assert figures.turn * len(turns) + figures.hop * hops.sum() + figures.stretch * work.sum() == pytest.approx(
        lasted.sum(), rel=1e-6
    )


def test_where_hops_do_not_vary_they_are_part_of_the_turn():
    found = fit(WORK, np.full(40, 2.0), 0.002 + 0.001 * 2 + 1.25 * WORK)
    assert (found.turn, found.hop, found.stretch) == pytest.approx((0.004, 0.0, 1.25))


def test_turns_of_equal_work_have_dead_time_only():
    found = fit(np.full(40, 0.02), np.zeros(40), np.full(40, 0.023))
    assert (found.turn, found.stretch) == pytest.approx((0.003, 1.0))
    assert OverheadFit().fit() == NO_OVERHEAD == TurnOverhead(0.0, 0.0, 1.0, 0)


@pytest.mark.parametrize(("turn_cost", "hop_cost"), [(0.0, 0.0), (0.25, 0.0), (0.25, 0.125)])
def test_a_meter_measures_what_a_simulation_charges(turn_cost, hop_cost):
    """Of three operators the last two share a host, so that hops do not follow from work."""
    costs = {"a": (1.0, 0.5), "b": (2.0, 0.5), "c": (0.5, 1.0)}
    operators = [{"name": name, "cost": cost, "selectivity": share} for name, (cost, share) in costs.items()]
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0.0] * 400}}},
        "queries": {"q": {"from": "s", "operators": operators}},
        "live": {"actors": 2},
    })  # fmt: skip
    meter = OverheadMeter()

    class Placed(dsms.Observer):
        def attach(self, engine):
            engine.runner.places = {"a": 0, "b": 1, "c": 1}
            meter.attach(engine)

        def begin(self, now):
            meter.begin(now)

        def turn(self, start, segment, steps):
            meter.turn(start, segment, steps)

    dsms.simulate(plan, "rr-query", turn_cost=turn_cost, hop_cost=hop_cost, observers=[Placed()])
    assert meter.overhead() == pytest.approx((turn_cost, hop_cost, 1.0, 399), abs=1e-9)


def test_waiting_for_rows_is_no_overhead():
    table = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0.0, 0.0, 0.4]}}},
        "queries": {"q": {"from": "s", "operators": [{"name": "o", "cost": 0.1}]}},
    }
    meter = OverheadMeter()
    dsms.simulate(plan_from(table), "fifo", observers=[meter])
    assert meter.overhead() == pytest.approx((0.0, 0.0, 1.0, 1))
