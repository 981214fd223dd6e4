"""Sutherland, Raindrop thesis: tables 1.1 and 1.2, section 1.3, and the workload rule."""

from __future__ import annotations

import itertools

import pytest

import dsms
from dsms import Engine, plan_from
from dsms.engine.observers import Observer
from dsms.policies.registry import policy_named
from dsms.policies.workload_rule import tuples_per_run


def table_1(arrivals, **run):
    """O1 (1, 0.9), O2 (0.25, 0.1), O3 (0.75, 1): a run takes at most a tuple and always its full time.

    The cost of O3 follows from FIFO's cycle of two units. The tuple being processed is not counted.
    """
    operators = [("o1", 1.0, 0.9), ("o2", 0.25, 0.1), ("o3", 0.75, 1.0)]
    return plan_from({
        "streams": {"s": {"arrivals": arrivals}},
        "queries": {"q": {"from": "s", "operators": [
            {"name": name, "startup": time, "take": 1, "selectivity": s} for name, time, s in operators
        ]}},
        "run": {"tuples": "fractional", "in_service": False, **run},
    })  # fmt: skip


EVERY_UNIT = {"kind": "constant", "every": 1.0}


class Outputs(Observer):
    """When results left, and how much."""

    trusted = True

    def __init__(self):
        self.left = []

    def turn(self, start, segment, steps):
        for queue, _, made, cost, *_ in steps:
            start += cost
            if queue.station.sink and made:
                self.left.append((start, made))

    def until(self, instant):
        return sum(made for left, made in self.left if left <= instant)


@pytest.mark.parametrize(
    ("policy", "queued", "throughput"),
    [
        ("fifo", [1.0, 1.9, 2.0, 2.9, 3.0, 3.9], [0, 0, 0.09, 0.09, 0.18, 0.18]),
        ("mtiq", [1.0, 1.9, 2.8, 1.9, 1.9, 1.9], [0, 0, 0, 0, 0, 0]),
    ],
)
def test_k2_tables_1_1_and_1_2(policy, queued, throughput):
    outputs = Outputs()
    run = dsms.simulate(table_1(EVERY_UNIT), policy, until=5, cut=True, sample=1.0, observers=[outputs])
    assert [held for _, held in run.memory.samples] == pytest.approx(queued)
    assert [outputs.until(t) for t in range(6)] == pytest.approx(throughput)


def test_k3_fifo_puts_out_0_045_a_unit():
    run = dsms.simulate(table_1(EVERY_UNIT), "fifo", until=1000, cut=True)
    assert run.output_rate == pytest.approx(0.09 / 2)


def test_k4_by_its_own_rule_mtiq_never_puts_anything_out():
    """The thesis claims an output after some 14 units; O1 alone needs all the CPU, so O3 is never the fullest."""
    run = dsms.simulate(table_1(EVERY_UNIT), "mtiq", until=3000, cut=True, sample=1.0)
    assert run.outputs == 0
    held = [tuples for _, tuples in run.memory.samples]
    assert (held[-1] - held[1000]) / 2000 == pytest.approx(2 * 9 / 59 + 0.061, rel=0.02)  # q1, q2 alike, and q3


def test_k4_the_claim_holds_if_the_queue_of_o1_is_silently_held_at_one_tuple():
    """Ten runs of O2 and eleven of O1 make an output.

    O1 then gives 9.9 for the 10 that O2 takes, so that every ninth output needs one run of O1 more: 1/14.25 = 0.0702 at
    first, 0.0696 in the long run.
    """
    engine, outputs = _capped(until=4000)
    left = [instant for instant, _ in outputs.left]
    gaps = [b - a for a, b in itertools.pairwise(left)]
    assert left[0] == pytest.approx(15.25)
    assert gaps[:8] == pytest.approx([14.25] * 8)
    assert set(gaps) == {14.25, 15.25}
    assert len(gaps) / sum(gaps) == pytest.approx(0.070, abs=5e-4)
    assert engine.ledger.queues[0].count <= 1


def _capped(until):
    """An arrival every unit, turned away while a whole tuple waits before O1."""
    outputs = Outputs()
    plan = table_1({"kind": "push"})
    engine = Engine(plan, policy_named("mtiq"), observers=[outputs])
    due = 0
    while engine.clock.now() < until:
        while due <= engine.clock.now():
            # What is being processed has left the queue: an arrival during a turn finds what the turn left.
            if engine.ledger.queues[0].count < 1:
                engine.push("s", 1)
            due += 1
        if not engine.step():
            engine.clock.wait_until(due)
    return engine, outputs


@pytest.mark.parametrize(("policy", "o2_ever_runs"), [("mtiq", False), ("fifo", True)])
def test_k4b_at_two_arrivals_a_unit_mtiq_runs_only_o1_for_ever(policy, o2_ever_runs):
    """q1 grows by 1 a unit and q2 by 0.9; FIFO behaves as before with a faster growing queue."""
    ran = set()

    class StationSetObserver(Observer):
        def turn(self, start, segment, steps):
            ran.add(steps[0].queue.station.name)

    plan = table_1({"kind": "list", "at": [t for t in range(200) for _ in range(2)]})
    engine = Engine(plan, policy_named(policy), observers=[StationSetObserver()], cut=199.5)
    engine.run()
    q1, q2, _ = (queue.count for queue in engine.ledger.queues)
    assert ("o2" in ran) is o2_ever_runs
    if policy == "mtiq":
        assert q1 == pytest.approx(200, abs=1.5)
        assert q2 == pytest.approx(0.9 * 199, abs=1)
    else:
        assert q1 == pytest.approx(400 - 100, abs=2)


@pytest.mark.parametrize(
    ("queued", "ratio", "threshold", "taken"),
    [(50, 0.3, 50, 50), (200, 0.3, 50, 60), (166, 0.3, 50, 166), (167, 0.3, 50, 50), (50, 0.1, 0, 5), (1, 0.3, 0, 1)],
)
def test_k9_workload_rule(queued, ratio, threshold, taken):
    assert tuples_per_run(queued, ratio, threshold) == taken


def test_k9_the_rule_decides_how_much_a_turn_takes():
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0] * 200}}},
        "queries": {"q": {"from": "s", "operators": [{"name": "o", "cost": 1.0}]}},
    })  # fmt: skip
    taken = []

    class TurnSizeObserver(Observer):
        def turn(self, start, segment, steps):
            taken.append(sum(step.taken for step in steps))

    dsms.simulate(plan, "mtiq:ratio=0.3,threshold=50", observers=[TurnSizeObserver()])
    assert taken == [60, 140]  # 60 of 200; 30 % of 140 is 42, not above 50, so all the rest
