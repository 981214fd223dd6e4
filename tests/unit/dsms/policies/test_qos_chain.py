"""QoS-Chain: the index of issue 3, its limits, and what the weights make of gamma."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC, make_path_plan, policy

import dsms
from dsms.charts import lower_envelope, progress_chart, slopes
from dsms.engine.engine import Engine
from dsms.engine.statistics import Statistics
from dsms.policies.qos_chain import GAMMA_LIMIT, QosChain

operators = st.lists(
    st.tuples(st.sampled_from((0.25, 1.0, 2.0, 7.0)), st.sampled_from((0.1, 0.5, 0.9, 1.0, 1.5))),
    min_size=1,
    max_size=6,
)


def plan_of(figures: list[tuple[float, float]], **run: Any) -> dsms.Plan:
    return make_path_plan(*({"cost": cost, "selectivity": s} for cost, s in figures), at=[0], **run)


def indices(figures: list[tuple[float, float]], text: str) -> list[float]:
    return [segment.slope for segment in policy(text).segments(plan_of(figures[:8]))]


def index(figures: list[tuple[float, float]], gamma: float) -> float:
    """I = max( max_{k<m} (1 − s_1⋯s_k)/T_k , (1 + γ·P)/T_m ), T_k = c_1 + s_1·c_2 + … up to k."""
    best, time, reach = -math.inf, 0.0, 1.0
    for k, (cost, selectivity) in enumerate(figures):
        time += reach * cost
        reach *= selectivity
        gain = 1 - reach if k < len(figures) - 1 else 1 + gamma * reach
        best = max(best, gain / time)
    return best


@DETERMINISTIC
@given(figures=operators, gamma=st.sampled_from((0.0, 0.3, 2.0, 50.0)))
def test_the_index_is_that_of_the_issue(figures: list[tuple[float, float]], gamma: float) -> None:
    wanted = [index(figures[j:], gamma) for j in range(len(figures))]
    assert indices(figures, f"qos-chain:gamma={gamma}") == pytest.approx(wanted)


@DETERMINISTIC
@given(figures=operators)
def test_gamma_0_is_chain_on_what_remains(figures: list[tuple[float, float]]) -> None:
    wanted = []
    for j in range(len(figures)):
        chart = progress_chart([c for c, _ in figures[j:]], [s for _, s in figures[j:]])
        wanted.append(slopes(chart, lower_envelope(chart))[0])
    assert indices(figures, "qos-chain:gamma=0") == pytest.approx(wanted)


@DETERMINISTIC
@given(figures=operators)
def test_a_vast_gamma_ranks_by_the_results_to_come_per_unit_of_time(figures: list[tuple[float, float]]) -> None:
    seen = indices(figures, "qos-chain:gamma=1e12")
    for j, mine in enumerate(seen):
        time = sum(c * math.prod(s for _, s in figures[j : j + k]) for k, (c, _) in enumerate(figures[j:]))
        assert mine / 1e12 == pytest.approx(math.prod(s for _, s in figures[j:]) / time, rel=1e-3)


def test_a_segment_is_one_operator_and_all_are_there() -> None:
    assert [s.names for s in policy("qos-chain:gamma=1").segments(plan_of([(1, 0.5), (1, 0.5), (4, 1)]))] == [
        ["a"],
        ["b"],
        ["c"],
    ]


@pytest.mark.parametrize(
    ("text", "gamma"),
    [
        ("qos-chain:memory=1", 0.0),
        ("qos-chain:delay=1", GAMMA_LIMIT),
        ("qos-chain:delay=0.5,rate=0.5", GAMMA_LIMIT),
        ("qos-chain:memory=0.5,delay=0.5", 1 / 0.25),
        ("qos-chain:memory=0.2,delay=0.3,rate=0.5", 1.5 / 0.25),
        ("qos-chain", 1 / 0.25),
        ("qos-chain:gamma=3", 3.0),
    ],
)
def test_gamma_by_the_weights(text: str, gamma: float) -> None:
    """γ = (w_D/Q)/(w_M/M); before anything is seen a tuple that has just come is P = ½·½ of a result."""
    plan, chosen = plan_of([(1, 0.5), (1, 0.5)]), policy(text)
    assert isinstance(chosen, QosChain)
    assert chosen.compute_gamma(plan, Statistics(plan)) == pytest.approx(gamma)


def test_gamma_follows_what_is_held() -> None:
    """At its best for memory, and for results, all that waits has passed a: every tuple held is a result to be."""
    plan = make_path_plan({"cost": 0.25, "selectivity": 0.5}, {"cost": 100.0}, at=[0] * 400, selectivity="spread")
    chosen = QosChain(memory=0.5, delay=0.5)
    engine = Engine(plan, chosen)
    assert chosen.compute_gamma(plan, engine.statistics) == pytest.approx(2)
    for _ in range(500):
        engine.step()
    a, b = (queue.count for queue in engine.ledger.queues)
    assert (a, b) == (0, 100)
    assert chosen.compute_gamma(plan, engine.statistics) == pytest.approx(1, abs=0.05)


def test_it_stops_watching_when_another_takes_over_and_when_it_is_put_in_charge_again() -> None:
    engine = Engine(plan_of([(1, 0.5), (1, 0.5)]), chosen := QosChain(), observers=[])
    watching = len(list(engine.observers))
    engine.swap(chosen)
    assert len(list(engine.observers)) == watching
    engine.swap(policy("fifo"))
    assert len(list(engine.observers)) == watching - 1


def test_an_operator_that_takes_no_time_but_to_start_has_a_priority_too() -> None:
    """Its start-up is then what a tuple takes, and nothing is left to put it off for."""
    plan = make_path_plan({"cost": 0.0, "startup": 2.0}, {"cost": 2.0}, at=[0, 0])
    engine = Engine(plan, policy("qos-chain:gamma=0"))
    first, _ = (queue.segments[0] for queue in engine.ledger.queues)
    first.pending = 2
    assert engine.control.policy.priority(first) == first.slope == pytest.approx(1 / 4)


def test_the_index_of_a_join_does_not_depend_on_the_order_of_its_streams() -> None:
    arrivals = {"kind": "poisson", "rate": 1.0, "count": 5}
    queries = {
        "q": {"operators": [{"name": "J", "cost": 1, "selectivity": 0.5, "inputs": ["a", "b"]}]},
        "p": {"from": "a", "operators": [{"name": "C", "cost": 4}]},
    }
    found = []
    for names in ("ab", "ba"):
        plan = dsms.plan_from({"streams": {name: {"arrivals": arrivals} for name in names}, "queries": queries})
        found.append({segment.names[0]: segment.slope for segment in QosChain(gamma=0).segments(plan)})
    assert found[0] == found[1]


def test_a_plan_with_too_many_ways_through_it_is_refused() -> None:
    operators: list[dict[str, object]] = [{"name": "o0", "cost": 1, "inputs": ["s"]}]
    for i in range(20):
        before = operators[-1]["name"]
        operators += [{"name": f"{side}{i}", "cost": 1, "selectivity": 0.5, "inputs": [before]} for side in "lr"]
        operators.append({"name": f"u{i}", "cost": 1, "inputs": [f"l{i}", f"r{i}"]})
    plan = dsms.plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0]}}}, "queries": {"q": {"operators": operators}}
    })  # fmt: skip
    for text in ("qos-chain", "chain", "partition-memory"):
        with pytest.raises(dsms.PolicyError, match="draws every path of the plan"):
            Engine(plan, policy(text))
    assert dsms.simulate(plan, "partition-latency").admitted == 1
