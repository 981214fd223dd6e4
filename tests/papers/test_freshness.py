"""Sharaf, Chrysanthis, Labrinidis: "Tuning QoD in Stream Processing Engines": which query is made fresh first."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.policy_checks import turns
from support.strategies import DETERMINISTIC, make_path_plan, plan_tables, policy

import dsms
from dsms import DsmsError, Engine, Observer, PlanError, PolicyError, plan_from, policy_named

BETAS = (0, 0.25, 0.5, 1)


def queries(*given, at=0.0, **run):
    """A stream and a query of one operator for each (pending, cost, selectivity[, weight]); all there at time 0."""
    entries = {name: (*entry, *(1.0, 1.0)[len(entry) - 2 :]) for name, entry in zip("abcde", given, strict=False)}
    return plan_from({
        "streams": {f"s{n}": {"arrivals": {"kind": "list", "at": [at] * pending}}
                    for n, (pending, *_) in entries.items()},
        "queries": {n: {"from": f"s{n}", "weight": weight,
                        "operators": [{"name": f"{n}1", "cost": cost, "selectivity": selectivity}]}
                    for n, (_, cost, selectivity, weight) in entries.items()},
        "run": run,
    })  # fmt: skip


class TurnStartObserver(Observer):
    """The first station of each turn, with its start."""

    trusted = True

    def __init__(self):
        self.names, self.starts = [], []

    def turn(self, start, segment, steps):
        self.names.append(steps[0].queue.station.name)
        self.starts.append(start)


def order(plan, text):
    ran = TurnStartObserver()
    Engine(plan, policy(text), observers=[ran]).run()
    return "".join(name[0] for name in ran.names)


def priorities(plan, text):
    """Of each query, once the arrivals of time 0 are there."""
    engine, seen = Engine(plan, policy(text)), {}

    class PriorityObserver(Observer):
        trusted = True

        def begin(self, now):
            for queue in engine.ledger.queues:
                (segment,) = queue.segments
                seen[queue.station.query.name] = engine.control.policy.priority(segment)

    engine.watch(PriorityObserver())
    assert engine.step()
    return seen


# --- formulas


@pytest.mark.parametrize(
    ("n", "s", "c", "beta", "v"),
    [
        (1, 0.5, 2.0, 1, 0.25),
        (2, 0.5, 2.0, 1, 0.75 / 4),
        (3, 0.5, 2.0, 1, 0.875 / 6),
        (3, 0.5, 2.0, 0, 0.25),
        (4, 0.75, 0.5, 0.5, (1 - 0.0625) / (2 * 0.5)),
        (16, 0.5, 1.0, 0.25, 0.75 / 2),
        (5, 1.0, 4.0, 1, 1 / 20),
        (5, 0.0, 4.0, 1, 0.0),
        (2, 1.5, 4.0, 1, 1 / 8),
    ],
)
def test_d10_and_d12_priority(n, s, c, beta, v):
    """V = (1 − (1 − S)^(N^β)) / (N^β·C); a selectivity above 1 counts as 1."""
    assert priorities(queries((n, c, s)), f"fas-mcq:beta={beta}") == {"a": pytest.approx(v)}


def test_d10_without_selectivity_the_least_n_times_c_goes_first():
    assert priorities(queries((3, 2.0), (2, 2.5), (7, 1.0)), "fas-mcq") == pytest.approx(
        {"a": 1 / 6, "b": 1 / 5, "c": 1 / 7}
    )


def test_d11_weighted():
    """The largest weight counts as 1."""
    plan = queries((2, 1.0, 0.5, 8.0), (2, 1.0, 0.5, 2.0), (1, 4.0, 1.0, 4.0))
    assert priorities(plan, "fas-mcq") == pytest.approx({"a": 0.375, "b": 0.375 / 4, "c": 0.25 / 2})


def test_d9_priority_is_the_results_per_unit_of_time_whatever_is_pending():
    assert priorities(queries((3, 2.0, 0.5), (1, 4.0, 0.25), (9, 1.0, 2.0)), "rb-mcq") == {
        "a": 0.25,
        "b": 0.0625,
        "c": 1,
    }


def test_d15_the_parameters_of_a_path():
    """C = 1 + 4·½ + 8·½·¼ = 4; S = ½·¼·½ = 1/16."""
    figures = ((1.0, 0.5), (4.0, 0.25), (8.0, 0.5))
    plan = make_path_plan(*({"cost": cost, "selectivity": s} for cost, s in figures), at=[0, 0])
    engine = Engine(plan, policy("fas-mcq"))
    (segment,) = engine.ledger.queues[0].segments
    segment.pending = 2
    assert engine.control.policy.priority(segment) == pytest.approx((1 - (15 / 16) ** 2) / (2 * 4))
    assert policy("rb-mcq").priority(segment) == pytest.approx(1 / 16 / 4)


@pytest.mark.parametrize(("gamma", "v"), [(0, 0.75 / 4), (0.2, 0.75 / 4 + 0.05), (3, 0.75 / 4 + 0.75)])
def test_fas_gamma_adds_the_rate(gamma, v):
    """V = (1 − (1 − S)^N)/(N·C) + γ·S/C, here with S = ½, N = 2, C = 2."""
    assert priorities(queries((2, 2.0, 0.5)), f"fas-gamma:gamma={gamma}") == {"a": pytest.approx(v)}
    assert priorities(queries((2, 2.0, 0.5, 1.0), (1, 1.0, 1.0, 4.0)), f"fas-gamma:gamma={gamma}")[
        "a"
    ] == pytest.approx(0.75 / 16 + gamma * 0.25)  # the weight is of freshness, not of rate


# --- behaviour


@pytest.mark.parametrize("given", [((2, 3.0), (3, 1.0)), ((4, 1.0), (1, 3.0)), ((2, 2.0), (1, 5.0))])
def test_g5_the_order_of_least_staleness_in_all(given):
    """Both wait from 0: L_X = N1·C1 + (N1·C1 + N2·C2), L_Y = N2·C2 + (N1·C1 + N2·C2); fas-mcq has the lesser."""
    plan = queries(*given)
    work = [n * c for n, c in given]
    run = dsms.simulate(plan, "fas-mcq")
    stale = sum(query.staleness or 0.0 for query in run.queries.values()) * run.elapsed
    assert stale == pytest.approx(min(work) + sum(work))
    shortest = work.index(min(work))
    assert order(plan, "fas-mcq").startswith("ab"[shortest] * given[shortest][0])


@given(
    given=st.tuples(
        *[st.tuples(st.integers(1, 6), st.sampled_from((0.5, 1.0, 3.0)), st.sampled_from((0.25, 0.5, 1.0)))] * 2
    )
)
@DETERMINISTIC
def test_g5_with_selectivity_the_first_is_whom_the_other_would_keep_waiting_in_vain(given):
    """L_Q1 = P1·N2·C2 is what Q1 loses by waiting; Q1 first iff that is more than L_Q2."""
    (n1, c1, s1), (n2, c2, s2) = given
    waits1, waits2 = (1 - (1 - s1) ** n1) * n2 * c2, (1 - (1 - s2) ** n2) * n1 * c1
    if not math.isclose(waits1, waits2):
        assert order(queries(*given), "fas-mcq")[0] == ("a" if waits1 > waits2 else "b")


def test_g6_equal_pending_and_selectivity_the_cheapest_first():
    assert order(queries((2, 3.0, 0.5), (2, 1.0, 0.5), (2, 2.0, 0.5)), "fas-mcq")[:1] == "b"
    assert order(queries((1, 3.0), (1, 1.0), (1, 2.0)), "fas-mcq") == "bca"


def test_g6_equal_cost_and_selectivity_the_fewest_pending_first():
    assert order(queries((3, 1.0), (1, 1.0), (2, 1.0)), "fas-mcq") == "bccaaa"
    assert order(queries((3, 1.0), (1, 1.0), (2, 1.0)), "rb-mcq") == "aaabcc"  # who takes no notice of what is pending


def test_g6_equal_cost_and_pending_the_likelier_stale_first():
    assert order(queries((2, 1.0, 0.25), (2, 1.0, 0.75), (2, 1.0, 0.5)), "fas-mcq")[0] == "b"


@pytest.mark.parametrize("s", [0.01, 0.3, 0.99, 1.0])
def test_g7_more_pending_is_never_more_urgent(s):
    seen = [priorities(queries((n, 1.0, s)), "fas-mcq")["a"] for n in (1, 2, 3, 10, 30)]
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == len(seen)


def test_d9_ties_go_to_the_oldest_tuple_or_to_the_first_query():
    """Two equal queries, two tuples each, come in turn, b, a, b, a, while x, of a higher rate, keeps them waiting."""
    table = {
        "streams": {n: {"arrivals": {"kind": "list", "at": at}}
                    for n, at in (("s", [1, 3]), ("t", [0, 2]), ("u", [0, 0, 0]))},
        "queries": {"a": {"from": "s", "operators": [{"name": "a1", "cost": 1.0, "selectivity": 0.5}]},
                    "b": {"from": "t", "operators": [{"name": "b1", "cost": 1.0, "selectivity": 0.5}]},
                    "x": {"from": "u", "operators": [{"name": "x1", "cost": 1.5, "selectivity": 4.0}]}},
    }  # fmt: skip
    assert order(plan_from(table), "rb-mcq") == "xxxbaba"
    assert order(plan_from(table), "rb-mcq:ties=query") == "xxxaabb"
    assert order(plan_from(table), "rb-mcq:ties=oldest") == "xxxbaba"


def test_d11_a_weight_changed_while_it_runs_counts_from_the_next_decision():
    plan, ran = queries((3, 1.0), (3, 1.0)), TurnStartObserver()
    engine = Engine(plan, policy("fas-mcq"), observers=[ran])
    engine.step()
    assert ran.names == ["a1"]
    engine.control.weigh("b", 4.0)
    engine.step()
    assert ran.names == ["a1", "b1"]  # b: 1/3; a: 1/4 of 1/2
    engine.control.weigh("a", 400.0)
    engine.run()
    assert ran.names == ["a1", "b1", "a1", "a1", "b1", "b1"]
    assert engine.control.weights == {"a": 400, "b": 4}


def test_d11_a_weight_that_changes_moves_those_whose_backlog_does_not():
    """c counts as 1 from now on, so b, which is older and was as urgent, as a quarter."""
    engine = Engine(queries((3, 1.0), (3, 1.0), (3, 1.0)), policy("fas-mcq"), observers=[ran := TurnStartObserver()])
    engine.step()
    engine.control.weigh("c", 4.0)
    engine.run()
    assert "".join(name[0] for name in ran.names) == "acccaabbb"


def test_d11_a_weight_that_is_changed_outlives_a_swap():
    engine = Engine(queries((3, 1.0), (3, 1.0)), policy("fifo"), observers=[ran := TurnStartObserver()])
    engine.control.weigh("b", 4.0)
    engine.swap(policy("fas-mcq"))
    engine.step()
    assert ran.names == ["b1"]


# --- equivalences


def of_weight(table, weight):
    return table | {"queries": {name: query | {"weight": weight} for name, query in table["queries"].items()}}


@DETERMINISTIC
@given(table=plan_tables())
def test_d12_beta_0_is_rate_based(table):
    plan = plan_from(of_weight(table, 1.0))
    assert turns(plan, "fas-mcq:beta=0") == turns(plan, "rb-mcq")
    assert turns(plan, "fas-mcq:beta=0,ties=query") == turns(plan, "rb-mcq:ties=query")


def test_d12_beta_0_has_the_ties_of_rate_based():
    """0.3/0.3, 0.7/0.7 and 0.9/0.9 are 1, and so they must be where 1 − (1 − S) is not S."""
    plan = queries((2, 0.9, 0.9), (2, 0.3, 0.3), (2, 0.7, 0.7))
    assert set(priorities(plan, "rb-mcq").values()) == set(priorities(plan, "fas-mcq:beta=0").values()) == {1.0}


@DETERMINISTIC
@given(table=plan_tables())
def test_gamma_0_is_fas_mcq(table):
    plan = plan_from(table)
    assert turns(plan, "fas-gamma:gamma=0") == turns(plan, "fas-mcq") == turns(plan, "fas-mcq:beta=1")


@DETERMINISTIC
@given(
    table=plan_tables(),
    weight=st.sampled_from((0.1, 1.0, 7.0)),
    text=st.sampled_from(("fas-mcq", "fas-gamma", "fas-mcq:beta=0.5")),
)
def test_weights_that_are_all_equal_change_nothing(table, weight, text):
    assert turns(plan_from(of_weight(table, weight)), text) == turns(plan_from(of_weight(table, 1.0)), text)


@pytest.mark.parametrize("s", [0.25, 0.5, 1.0])
def test_d12_between_the_limits_the_backlog_counts_by_degrees(s):
    """At every N > 1 priority falls as beta grows, from the rate to freshness in full."""
    seen = [priorities(queries((5, 2.0, s)), f"fas-mcq:beta={beta}")["a"] for beta in BETAS]
    assert seen == sorted(seen, reverse=True)
    assert seen[0] == s / 2
    assert seen[-1] == priorities(queries((5, 2.0, s)), "fas-mcq")["a"]
    once = {priorities(queries((1, 2.0, s)), f"fas-mcq:beta={beta}")["a"] for beta in BETAS}
    assert once == {s / 2}


# --- what deciding costs


@pytest.mark.parametrize(
    "text", ["rb-mcq", "rr-query", "rr", "fifo", "greedy", "chain", "partition-latency", "component"]
)
def test_g15_static_priorities_and_round_robin_cost_nothing(text):
    engine = Engine(queries((3, 1.0), (3, 2.0), scheduling_cost=0.5), policy(text))
    engine.run()
    assert engine.scheduling == 0
    assert engine.clock.now() == 9


@pytest.mark.parametrize("text", ["fas-mcq", "fas-gamma", "mtiq"])
def test_g15_a_changed_backlog_costs_an_operation_and_that_time_passes(text):
    """Two queries of two tuples: both are entered at 0, then after each turn the query that ran, if it has more."""
    ran = TurnStartObserver()
    engine = Engine(queries((2, 1.0), (2, 1.0), scheduling_cost=0.5), policy(text), observers=[ran])
    engine.run()
    assert len(ran.starts) == 4
    assert engine.scheduling == 0.5 * 4
    assert engine.clock.now() == 4 + 0.5 * 4
    assert ran.starts[0] == 1  # two entries


def test_g15_what_arrives_while_deciding_is_admitted_at_its_own_instant_and_waits_for_the_next_decision():
    """a comes at 0 and is entered until ½; b comes at ¼, is cheaper, and has its turn after a's."""
    table = {
        "streams": {n: {"arrivals": {"kind": "list", "at": at}} for n, at in (("s", [0, 0]), ("t", [0.25]))},
        "queries": {"a": {"from": "s", "operators": [{"name": "a1", "cost": 2.0}]},
                    "b": {"from": "t", "operators": [{"name": "b1", "cost": 1.0}]}},
        "run": {"scheduling_cost": 0.5},
    }  # fmt: skip
    engine = Engine(plan_from(table), policy("fas-mcq"), observers=[ran := TurnStartObserver()])
    engine.run()
    # At 2.5 both are entered, b runs from 3.5 to 4.5; nothing has changed for a, which runs until 6.5.
    assert list(zip(ran.names, ran.starts, strict=True)) == [("a1", 0.5), ("b1", 3.5), ("a1", 4.5)]
    run = dsms.simulate(plan_from(table), "fas-mcq")
    assert run.elapsed == 6.5
    assert run.latency.max == 6.5
    assert run.queries["b"].latency_mean == 4.25


def test_g15_a_run_cut_while_it_decides_has_no_turn_of_that_decision():
    """Deciding takes from 0 to 3/4, the run is cut at 1/2."""
    plan = make_path_plan({"cost": 1.0}, {"cost": 1.0}, at=[0, 0], scheduling_cost=0.75)
    run = dsms.simulate(plan, "fas-mcq", until=0.5, cut=True)
    assert (run.elapsed, run.outputs, run.memory.tuples.integral) == (0.5, 0, 1.0)
    assert run.turns == 0


# --- bad input


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fas-mcq:beta=1.5", "beta is 1.5: expected a number from 0 to 1"),
        ("fas-mcq:beta=-0.1", "beta is -0.1: expected a number from 0 to 1"),
        ("fas-mcq:beta=nan", "beta is nan: expected a number from 0 to 1"),
        ("fas-mcq:beta=much", "beta is 'much': expected a number"),
        ("fas-mcq:gamma=1", r"no parameter 'gamma'.*\['beta', 'ties'\]"),
        ("fas-gamma:gamma=-1", "gamma is -1.0: expected a number of at least 0"),
        ("fas-gamma:gamma=inf", "gamma is inf: expected a number of at least 0"),
        ("qos-chain:gamma=-1", "gamma is -1.0: expected a number of at least 0"),
        ("rb-mcq:ties=youngest", "ties is 'youngest': expected 'oldest' or 'query'"),
        ("rb-mcq:beta=0", r"no parameter 'beta'.*\['ties'\]"),
        ("qos-chain:memory=0.5,delay=0.3", r"the weights are \[0.5, 0.3\]: expected numbers of at least 0"),
        ("qos-chain:memory=1.5,delay=-0.5", r"the weights are \[1.5, -0.5\]: expected numbers of at least 0"),
        ("qos-chain:gamma=1,memory=1", "no weights with it"),
        ("tuple-greedy:goal=fame", "goal is 'fame': expected 'latency' or 'memory'"),
    ],
)
def test_a_parameter_out_of_its_range_is_refused_with_its_value(text, message):
    with pytest.raises(PolicyError, match=message):
        policy_named(text)


@pytest.mark.parametrize("weight", [0, -1.0, math.nan, math.inf, "2", True, None])
def test_a_weight_that_is_not_positive_is_refused_and_the_old_one_kept(weight):
    engine = Engine(queries((1, 1.0)), policy("fas-mcq"))
    with pytest.raises(DsmsError, match=f"weight of 'a' is {weight!r}: expected a positive number"):
        engine.control.weigh("a", weight)
    assert engine.control.weights == {"a": 1}


def test_a_weight_for_a_query_that_there_is_not_lists_those_there_are():
    with pytest.raises(PlanError, match=r"no query 'z'; there are \['a', 'b'\]"):
        Engine(queries((1, 1.0), (1, 1.0)), policy("fas-mcq")).control.weigh("z", 1.0)


@pytest.mark.parametrize("weight", [0.0, -2.0])
def test_a_plan_with_a_weight_that_is_not_positive_is_refused(weight):
    with pytest.raises(PlanError, match=f"queries.a.weight: {weight} is not a positive number"):
        queries((1, 1.0, 1.0, weight))
