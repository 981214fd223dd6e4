"""What policies are told of costs and selectivities: declared, averaged over runs, or of the window before."""

from __future__ import annotations

from typing import Any

import pytest
from support.strategies import make_path_plan, policy

import dsms
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.statistics import MeasuredStatistics, StationCounters
from dsms.plan.segment import Segment


def engine_of(plan: dsms.Plan, text: str = "fifo") -> Engine:
    return Engine(plan, policy(text))


def costing(*factors: float, at: list[float] | None = None) -> dict[str, Any]:
    """A stream whose tuples cost these multiples of the declared cost."""
    return {"arrivals": {"kind": "list", "at": at or [0.0] * len(factors), "cost": list(factors)}}


def known(engine: Engine, station: int = 0) -> tuple[float, float]:
    estimate = engine.statistics.of(engine.plan.stations[station])
    return estimate.cost, estimate.selectivity


class SegmentNameObserver(Observer):
    """Which station ran in each turn."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        self.names += segment.names


def segment_of(engine: Engine, station: int = 0) -> Segment:
    return engine.ledger.inputs[station][0].segments[0]


def test_declared_figures_do_not_change_whatever_happens() -> None:
    engine = engine_of(make_path_plan({"cost": 8, "selectivity": 0.5}, at=[], stream=costing(2.0, 3.0)))
    engine.run()
    assert known(engine) == (8, 0.5)


def test_declared_startup_is_spread_over_what_a_run_takes() -> None:
    assert known(engine_of(make_path_plan({"cost": 2, "startup": 6, "take": 3}, at=[0]))) == (4, 1)


def test_the_average_of_old_8_and_new_16_is_9() -> None:
    engine = engine_of(make_path_plan({"cost": 8}, at=[], stream=costing(2.0), statistics="average"))
    engine.step()
    assert known(engine) == (0.875 * 8 + 0.125 * 16, 1) == (9, 1)
    assert segment_of(engine).mean_cost == 9


def test_the_average_selectivity_follows_what_came_out() -> None:
    """Every second passes: 0.875·0.5 = 0.4375 after the first, 0.875·0.4375 + 0.125 after the second."""
    plan = make_path_plan({"cost": 1, "selectivity": 0.5}, at=[0, 0], selectivity="spread", statistics="average")
    engine = engine_of(plan)
    engine.step()
    assert known(engine) == (1, 0.4375)
    engine.step()
    assert known(engine) == (1, 0.875 * 0.4375 + 0.125)


def test_the_weight_of_history_is_a_setting() -> None:
    engine = engine_of(make_path_plan({"cost": 8}, at=[], stream=costing(2.0), statistics="average", history=0.5))
    engine.step()
    assert known(engine)[0] == 12


def test_a_run_of_several_tuples_is_averaged_as_one() -> None:
    """Start-up 4 and 2 a tuple: a run of two costs 8, 4 a tuple; declared as 6. 0.875·6 + 0.125·4 = 5.75."""
    plan = make_path_plan({"cost": 2, "startup": 4}, at=[0, 0], statistics="average")
    engine = engine_of(plan, "rr:tuples=2")
    engine.step()
    assert known(engine)[0] == 5.75


def test_an_average_changes_the_order_at_the_next_decision() -> None:
    """Greedy takes a (1/8 a unit) before b (1/9) until a has cost 24 once: (0.875·8 + 0.125·24) = 10."""
    table = {
        "streams": {"s": costing(3.0, 1.0, 1.0), "t": {"arrivals": {"kind": "list", "at": [0, 0]}}},
        "queries": {
            "a": {"from": "s", "operators": [{"name": "a1", "cost": 8}]},
            "b": {"from": "t", "operators": [{"name": "b1", "cost": 9}]},
        },
        "run": {"statistics": "average"},
    }
    turns = SegmentNameObserver()
    Engine(dsms.plan_from(table), policy("greedy"), observers=[turns]).run()
    assert turns.names == ["a1", "b1", "b1", "a1", "a1"]


def test_what_one_window_measures_serves_in_the_next() -> None:
    """Windows of 10. In the first, two tuples of 4 and one that ends it; then 4 a tuple is known, before that 2."""
    plan = make_path_plan({"cost": 2}, at=[], stream=costing(2, 2, 2, 1, 1, 1), statistics="window", window=10)
    engine = engine_of(plan)
    costs = []
    while engine.step():
        costs.append((engine.clock.now(), known(engine)[0], segment_of(engine).mean_cost))
    assert costs == [(4, 2, 2), (8, 2, 2), (12, 4, 4), (14, 4, 4), (16, 4, 4), (18, 4, 4)]


def test_a_station_that_got_nothing_in_a_window_keeps_what_was_known_of_it() -> None:
    first, second = {"cost": 5, "selectivity": 0.1}, {"cost": 7, "selectivity": 0.3}
    plan = make_path_plan(first, second, at=[0, 0, 0], selectivity="spread", statistics="window", window=4)
    engine = engine_of(plan)
    engine.run()
    assert known(engine, 0) == (5, 0)
    assert known(engine, 1) == (7, 0.3)


@pytest.mark.parametrize("kind", ["average", "window"])
def test_totals_are_from_the_beginning_of_execution(kind: str) -> None:
    """a: four tuples in 4, two out. b: two in 6, two out."""
    plan = make_path_plan(
        {"cost": 1, "selectivity": 0.5}, {"cost": 3}, at=[0, 0, 0, 10], selectivity="spread", statistics=kind
    )
    engine = engine_of(plan)
    engine.run()
    assert isinstance(engine.statistics, MeasuredStatistics)
    a, b = engine.statistics.totals
    assert (a.consumed, a.produced, a.busy) == (4, 2, 4)
    assert (a.selectivity(), a.cost(), a.output_rate()) == (0.5, 1, 0.5)
    assert (b.selectivity(), b.cost(), b.output_rate()) == (1, 3, 1 / 3)
    assert engine.clock.now() == 14
    assert (a.input_rate(14), b.input_rate(14)) == (4 / 14, 2 / 14)


def test_rates_of_nothing_do_not_exist() -> None:
    nothing = StationCounters(since=3.0)
    assert nothing.selectivity() is nothing.cost() is nothing.output_rate() is nothing.input_rate(3.0) is None
    assert nothing.input_rate(4.0) == 0


# --- what a segment makes of its stations' figures


def query(*operators: dict[str, Any]) -> Segment:
    table = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0]}, "size": 10}},
        "queries": {"q": {"from": "s", "operators": list(operators)}},
    }
    return segment_of(engine_of(dsms.plan_from(table), "rr-query"))


A, B, C = ({"name": n, "cost": c, "selectivity": s} for n, c, s in (("a", 1, 0.5), ("b", 4, 0.25), ("c", 8, 0.5)))


def test_a_path_costs_what_reaches_each_of_its_operators() -> None:
    """SH: C = 1 + 0.5·4 + 0.125·8 = 4, S = 0.5·0.25·0.5."""
    segment = query(A, B, C)
    assert (segment.mean_cost, segment.selectivity, segment.freed) == (4, 0.0625, 10)


def test_a_fork_costs_both_its_branches() -> None:
    segment = query(A, B, C | {"inputs": ["a"]})
    assert (segment.mean_cost, segment.selectivity) == (1 + 0.5 * 4 + 0.5 * 8, 0.5 * 0.25 + 0.5 * 0.5)


def test_the_order_in_which_operators_are_written_does_not_matter() -> None:
    written, backwards = query(A, B, C), query(C | {"inputs": ["b"]}, B | {"inputs": ["a"]}, A | {"inputs": ["s"]})
    for figure in ("mean_cost", "selectivity", "freed"):
        assert getattr(backwards, figure) == getattr(written, figure)
    assert backwards.stations[0].name == "a"
