"""Babcock et al., "Chain" (SIGMOD 2003): example 1; charts, envelopes and bounds (section 3); joins (section 4.3)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.schedules import ScheduleSpace, least_held
from support.strategies import DETERMINISTIC, POLICIES, YARDSTICKS, policy

import dsms
from dsms import Engine, Observer, plan_from
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


# --- bounds, run against every schedule there is


@st.composite
def unit_time(draw, convex):
    """One or two paths of operators that each take a unit of time for what is left of a tuple, in 16ths.

    Convex: each drops no more than the one before, so that the chart is its own envelope.
    """
    streams, queries = {}, {}
    names = draw(st.sampled_from(("a", "ab")))
    for name in names:
        falls = draw(st.lists(st.integers(0, 12), min_size=1, max_size=1 if len(names) > 1 else 3))
        if convex:
            falls = [fall + 1 for fall in falls]
        assume(sum(falls) < 16)
        falls = sorted([*falls, 16 - sum(falls)], reverse=True) if convex else [*falls, 16 - sum(falls)]
        left = [16 - sum(falls[:i]) for i in range(len(falls))]
        operators = [{"name": f"{name}{i}", "cost": 16 / size, "selectivity": (size - fall) / size}
                     for i, (size, fall) in enumerate(zip(left, falls, strict=True))]  # fmt: skip
        gaps = draw(st.lists(st.sampled_from((0, 1, 1, 1, 3)), min_size=2, max_size=5 if len(names) > 1 else 7))
        streams[name] = {"arrivals": {"kind": "list", "at": [sum(gaps[: i + 1]) for i in range(len(gaps))]}}
        queries[f"q{name}"] = {"from": name, "operators": operators}
    return {"streams": streams, "queries": queries, "run": {"tuples": "fractional"}}


def in_whole_units(table):
    """The plan, unless a sixteenth has been rounded on the way."""
    plan = plan_from(table)
    assume(all(piece.cost == 1 for pieces in ScheduleSpace(plan).pieces for piece in pieces))
    return plan


def held(plan, policy):
    """What is held at each whole instant."""
    return [tuples for _, tuples in dsms.simulate(plan, policy, sample=1.0).memory.samples]


@DETERMINISTIC
@given(table=unit_time(convex=False))
def test_c9_chain_holds_at_every_instant_at_most_a_tuple_a_path_more_than_any_schedule_could(table):
    plan = in_whole_units(table)
    mine = held(plan, "chain")
    least = least_held(plan, range(len(mine)))
    assert all(a <= b + len(plan.queries) + 1e-9 for a, b in zip(mine, least, strict=True))


def test_c9_fifo_keeps_no_such_bound():
    """Example 1: seven tuples come one a unit."""
    fifo, chain = held(EXAMPLE, "fifo"), held(EXAMPLE, "chain")
    least = least_held(dsms.read_plan(EXAMPLE), range(len(fifo)))
    assert max(a - b for a, b in zip(fifo, least, strict=True)) == pytest.approx(1.8)
    assert chain == pytest.approx(least)


@DETERMINISTIC
@given(table=unit_time(convex=True))
def test_c7_on_envelopes_chain_never_holds_more_than_any_schedule_could_or_any_policy_does(table):
    plan = in_whole_units(table)
    mine = held(plan, "chain")
    assert mine == pytest.approx(least_held(plan, range(len(mine))))
    for text in POLICIES:
        if text not in YARDSTICKS:
            other = held(plan, text)
            assert all(a <= b + 1e-9 for a, b in zip(mine, other, strict=False))


class Middle(Observer):
    """After each turn: for each slope the tuples that are inside a chain of that slope, not at its beginning."""

    trusted = True

    def attach(self, engine):
        self.engine, self.most = engine, 0

    def turn(self, start, segment, steps):
        inside = {}
        for other in {s.serial: s for queue in self.engine.ledger.queues for s in queue.segments}.values():
            within = [queue for queue in other.queues if queue.station is not other.stations[0]]
            pieces = inside.setdefault(other.slope, [])
            pieces += [piece for queue in within for piece in queue.payload]
        self.most = max(self.most, *map(len, inside.values()))


@DETERMINISTIC
@given(table=unit_time(convex=False))
def test_c10_among_chains_of_one_slope_at_most_one_tuple_is_in_the_middle(table):
    watch = Middle()
    Engine(plan_from(table), policy("chain"), observers=[watch]).run()
    assert watch.most <= 1


def test_c10_the_one_in_the_middle_may_wait_there_for_a_steeper_chain():
    """a0, a1 are one chain of slope 1/3; b0 has slope 1, and its tuple comes while a0 runs."""
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0]}}, "t": {"arrivals": {"kind": "list", "at": [0.5]}}},
        "queries": {"a": {"from": "s", "operators": [{"name": "a0", "cost": 1.0}, {"name": "a1", "cost": 2.0}]},
                    "b": {"from": "t", "operators": [{"name": "b0", "cost": 1.0}]}},
        "run": {"tuples": "fractional"},
    })  # fmt: skip
    assert order(plan, "chain") == ["a0", "b0", "a1"]


def order(plan, text, **options):
    """The stations as they ran, step by step."""
    ran = []

    class RunOrderObserver(Observer):
        def turn(self, start, segment, steps):
            ran.extend(step.queue.station.name for step in steps)

    Engine(plan, policy(text), observers=[RunOrderObserver()], **options).run()
    return ran


@pytest.mark.parametrize("every", [3.0, 4.5])
def test_l13_where_arrivals_are_uniform_and_within_capacity_fifo_holds_least(every):
    """A tuple takes 3 units in all; the chart is far from its envelope."""
    falls = [{"name": "o0", "cost": 1.0}, {"name": "o1", "cost": 1.0, "selectivity": 0.25}, {"name": "o2", "cost": 4.0}]
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "constant", "every": every, "count": 12}}},
        "queries": {"q": {"from": "s", "operators": falls}},
        "run": {"tuples": "fractional"},
    })  # fmt: skip
    fifo = dsms.simulate(plan, "fifo").memory.tuples
    assert fifo.max == 1
    for text in POLICIES:
        if text not in YARDSTICKS:
            other = dsms.simulate(plan, text).memory.tuples
            assert fifo.max <= other.max
            assert fifo.integral <= other.integral + 1e-9


# --- several streams


def joined(*, r=0.5, s=0.25, join=(1.0, 0.1), after=8.0, at_r=(0,), at_s=(0,), **run):
    """R passes a, S passes b, both meet in j, and z is behind."""
    return plan_from({
        "streams": {"R": {"arrivals": {"kind": "list", "at": list(at_r)}},
                    "S": {"arrivals": {"kind": "list", "at": list(at_s)}}},
        "queries": {"q": {"operators": [
            {"name": "a", "inputs": ["R"], "cost": 1.0, "selectivity": r},
            {"name": "b", "inputs": ["S"], "cost": 1.0, "selectivity": s},
            {"name": "j", "inputs": ["a", "b"], "cost": join[0], "selectivity": join[1]},
            {"name": "z", "inputs": ["j"], "cost": after},
        ]}},
        "run": {"selectivity": "spread", **run},
    })  # fmt: skip


def test_d6_every_stream_has_a_path_of_its_own_so_a_join_belongs_to_two_chains():
    """From R: (0, 1), (1, 1), (2, 0.1), (2.8, 0); from S: (0, 1), (1, 1/4), (1.25, 1/40), (1.45, 0)."""
    found = {tuple(segment.names): segment.slope for segment in policy("chain").segments(joined(r=1.0))}
    assert found == pytest.approx({("a", "j"): 0.9 / 2, ("b", "j"): 0.975 / 1.25, ("z",): 0.1 / 0.8})


@pytest.mark.parametrize(
    ("bounds", "ran"),
    [
        (False, [(0, "a"), (1, "low"), (5, "b"), (6, "j"), (7, "j")]),
        (True, [(0, "a"), (1, "j"), (2, "low"), (6, "b"), (7, "j")]),
    ],
)
def test_d6_a_chain_whose_next_operator_is_a_blocked_join_is_skipped_until_that_is_free(bounds, ran):
    """The chain (a, j) falls by 0.45 a unit, low by 0.25; what a puts out waits in j for a tuple of S, come at 5."""
    table = {
        "streams": {n: {"arrivals": {"kind": "list", "at": [at]}} for n, at in (("R", 0), ("S", 5), ("T", 0))},
        "queries": {
            "q": {"operators": [
                {"name": "a", "inputs": ["R"], "cost": 1.0},
                {"name": "b", "inputs": ["S"], "cost": 1.0},
                {"name": "j", "inputs": ["a", "b"], "cost": 1.0, "selectivity": 0.1},
                {"name": "z", "inputs": ["j"], "cost": 8.0},
            ]},
            "p": {"from": "T", "operators": [{"name": "low", "cost": 4.0}]},
        },
        "run": {"selectivity": "spread", "bounds": bounds},
    }  # fmt: skip
    times = []

    class TurnTimeObserver(Observer):
        def turn(self, start, segment, steps):
            times.append((start, steps[0].queue.station.name))

    Engine(plan_from(table), policy("chain"), observers=[TurnTimeObserver()]).run()
    assert times == ran


def test_d6_a_joins_cost_and_selectivity_are_means_by_the_rates_of_its_inputs():
    """Three of R for one of S in a window; R's tuples cost j 2, S's 6: t = (3·2 + 6)/4 = 3; s_j = outputs/inputs."""
    table = {
        "streams": {"R": {"arrivals": {"kind": "list", "at": [0, 1, 2] * 2, "cost": {"j": [2.0] * 6}}},
                    "S": {"arrivals": {"kind": "list", "at": [0, 1], "cost": {"j": [6.0] * 2}}}},
        "queries": {"q": {"operators": [{"name": "j", "inputs": ["R", "S"], "cost": 1.0, "selectivity": 0.5}]}},
        "run": {"selectivity": "spread", "statistics": "window", "window": 24.0},
    }  # fmt: skip
    table["streams"]["R"]["arrivals"]["at"].sort()
    engine = Engine(plan_from(table), policy("chain"))
    station = engine.plan.stations[0]
    assert engine.statistics.of(station).cost == 1
    engine.run()
    known = engine.statistics.of(station)
    rate_r, rate_s = known.inflows
    assert (rate_r, rate_s) == (6 / 24, 2 / 24)
    assert known.cost == (rate_r * 2 + rate_s * 6) / (rate_r + rate_s) == 3
    assert known.selectivity == 0.5
    (segment,) = {id(s): s for queue in engine.ledger.queues for s in queue.segments}.values()
    assert segment.slope == pytest.approx(1 / 3)


def test_d6_the_rate_behind_a_join_is_the_sum_of_what_comes_in_times_its_selectivity():
    """R at 3 a unit passes a (½), S at 1 a unit passes b (¼); j gives a tenth of what it gets."""
    plan = plan_from({
        "streams": {"R": {"arrivals": {"kind": "constant", "every": 1 / 3, "count": 9}},
                    "S": {"arrivals": {"kind": "constant", "every": 1.0, "count": 3}}},
        "queries": {"q": {"operators": [
            {"name": "a", "inputs": ["R"], "cost": 1.0, "selectivity": 0.5},
            {"name": "b", "inputs": ["S"], "cost": 1.0, "selectivity": 0.25},
            {"name": "j", "inputs": ["a", "b"], "cost": 1.0, "selectivity": 0.1},
            {"name": "z", "inputs": ["j"], "cost": 1.0},
        ]}},
    })  # fmt: skip
    engine = Engine(plan, policy("chain"))
    flows = {station.name: engine.statistics.of(station).inflows for station in plan.stations}
    assert flows["j"] == pytest.approx((1.5, 0.25))
    assert flows["z"] == pytest.approx((0.175,))


# --- Greedy


@st.composite
def falling(draw):
    """Paths on which each operator frees less per unit of time than the one before; all exact in binary."""
    streams, queries = {}, {}
    for name in "abc"[: draw(st.integers(1, 3))]:
        operators, slope = [], 4.0
        for i in range(draw(st.integers(1, 4))):
            cost, selectivity = (
                draw(st.sampled_from((0.25, 0.5, 1.0, 2.0, 8.0))),
                draw(st.sampled_from((0.75, 0.5, 0.25))),
            )
            assume((1 - selectivity) / cost < slope)
            slope = (1 - selectivity) / cost
            operators.append({"name": f"{name}{i}", "cost": cost, "selectivity": selectivity})
        operators.append({"name": f"{name}z", "cost": 2 / slope})  # as results leave, it frees all that it takes
        at = draw(st.lists(st.sampled_from((0.0, 0.5, 1.0, 4.0, 9.0)), min_size=1, max_size=8))
        streams[name] = {"arrivals": {"kind": "list", "at": sorted(at)}}
        queries[f"q{name}"] = {"from": name, "operators": operators}
    run = {"tuples": draw(st.sampled_from(("individual", "fractional"))), "seed": draw(st.integers(0, 9))}
    return {"streams": streams, "queries": queries, "run": run}


@DETERMINISTIC
@given(table=falling())
def test_l15_greedy_is_chain_where_slopes_fall_along_the_path(table):
    assert order(plan_from(table), "greedy") == order(plan_from(table), "chain")


def test_l15_and_not_elsewhere():
    """A weak operator before a strong one: Chain takes both as one."""
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 0]}}, "t": {"arrivals": {"kind": "list", "at": [0]}}},
        "queries": {"a": {"from": "s", "operators": [{"name": "a0", "cost": 1.0}, {"name": "a1", "cost": 1.0}]},
                    "b": {"from": "t", "operators": [{"name": "b0", "cost": 4.0}]}},
    })  # fmt: skip
    assert order(plan, "greedy")[0] == "b0"
    assert order(plan, "chain")[0] == "a0"


def test_operators_that_free_as_much_a_unit_are_equal_for_greedy_whatever_is_rounded():
    """0.05 of a tuple in 3 units, twice: by floats they differ in the 16th digit, by which the second would wait."""
    twice = [
        {"name": "o0", "cost": 3.0, "selectivity": 0.95},
        {"name": "o1", "cost": 3 / 0.95, "selectivity": 0.9 / 0.95},
    ]
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 0]}}},
        "queries": {"q": {"from": "s", "operators": [*twice, {"name": "o2", "cost": 1000.0}]}},
        "run": {"tuples": "fractional"},
    })  # fmt: skip
    assert order(plan, "greedy") == ["o0", "o1", "o0", "o1", "o2", "o2"]
