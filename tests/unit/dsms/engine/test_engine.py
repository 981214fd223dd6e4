"""The engine's seams: shares, coverage, pushes, rows out, swaps that fail."""

from __future__ import annotations

import time

import numpy as np
import pytest

import dsms
from dsms import Batch, DsmsError, Engine, Policy, PolicyError, Share, WallClock, plan_from
from dsms.plan.segment import Segment
from dsms.policies.registry import policy_named


def one(at, **operator):
    return plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": at}}},
        "queries": {"q": {"from": "s", "operators": [{"name": "o", **operator}]}},
    })  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "elapsed"), [("fifo", 36), ("rr:tuples=4", 36), ("rr:time=100", 36), ("mtiq:ratio=1", 36)]
)
def test_take_bounds_what_a_run_takes_whatever_the_policy_asks_for(policy, elapsed):
    """Six tuples, two a run, each run 10 + 2·1."""
    assert dsms.simulate(one([0] * 6, cost=1, startup=10, take=2), policy).elapsed == elapsed


@pytest.mark.parametrize("policy", ["rr:time=15", "rr:tuples=5"])
def test_start_up_is_paid_once_when_it_is_judged_what_fits_a_turn(policy):
    """10 + 5·1 is 15: one turn."""
    run = dsms.simulate(one([0] * 5, cost=1, startup=10), policy)
    assert (run.turns, run.elapsed) == (1, 15)


def test_a_policy_that_leaves_an_operator_out_is_refused():
    class Partial(Policy):
        name = "partial"

        def segments(self, plan):
            return plan.by_operator()[1:]

        def priority(self, segment):
            return 0.0

    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 1]}}},
        "queries": {"q": {"from": "s", "operators": [{"name": "a", "cost": 1}, {"name": "b", "cost": 1}]}},
    })  # fmt: skip
    with pytest.raises(PolicyError, match=r"'partial' leaves out operators \['a'\]"):
        Engine(plan, Partial())
    engine = Engine(plan, policy_named("fifo"))
    engine.step()
    with pytest.raises(PolicyError, match="leaves out operators"):
        engine.swap(Partial())
    assert engine.control.policy.name == "fifo"
    engine.run()  # as if nothing had been asked
    assert len(engine.journal.result_left) == 2


class Odd(Policy):
    """Whatever answers it is given."""

    name = "odd"
    dynamic = False

    def __init__(self, priority=0.0, share=None):
        self._answers = priority, share

    def segments(self, plan) -> list[Segment]:
        return plan.by_operator()

    def priority(self, segment):
        return self._answers[0]

    def share(self, segment):
        return self._answers[1]


def test_a_priority_that_is_not_a_number_is_refused():
    with pytest.raises(PolicyError, match=r"'odd' gives Segment\(o\) no priority"):
        dsms.simulate(one([0], cost=1), Odd(priority=float("nan")))


@pytest.mark.parametrize("clock", [None, WallClock()])
def test_a_share_of_nothing_is_a_share_of_one(clock):
    plan = one([], function=lambda batch: batch, cost=1)
    engine = Engine(plan, Odd(share=Share(0, 0)), clock=clock)
    engine.push("s", Batch.of({"x": [1, 2, 3]}))
    engine.run()
    assert sum(count for *_, count in engine.journal.result_runs) == 3


@pytest.mark.parametrize("pushed", [-1, 2.5, True, "x", None])
def test_only_batches_and_numbers_of_tuples_can_be_pushed(pushed):
    engine = Engine(one([0], cost=1), policy_named("fifo"))
    with pytest.raises(DsmsError, match="expected a Batch or a number of tuples"):
        engine.push("s", pushed)
    with pytest.raises(DsmsError, match=r"no stream 't'; there are \['s'\]"):
        engine.push("t", 1)


def test_an_empty_batch_is_no_work():
    engine = Engine(one([], function=lambda batch: batch), policy_named("fifo"), clock=WallClock())
    engine.push("s", Batch.of({"x": []}))
    engine.run()
    assert engine.admitted == 0


def test_the_rows_of_a_query_come_out_where_the_sink_is():
    out = []
    plan = one([], function=lambda batch: batch.columns["x"] % 2 == 1)
    engine = Engine(plan, policy_named("fifo"), clock=WallClock(), sink=lambda query, rows: out.append((query, rows)))
    engine.push("s", Batch.of({"x": np.arange(5)}))
    engine.run()
    assert [(query, rows.records()) for query, rows in out] == [("q", [{"x": 1}, {"x": 3}])]


@pytest.mark.parametrize("policy", [dsms.policies()["fifo"], None, 3])
def test_a_policy_is_a_name_or_an_object(policy):
    with pytest.raises(DsmsError, match="is not a policy"):
        dsms.simulate(one([0], cost=1), policy)


def test_a_run_may_be_cut_on_a_long_path():
    operators = [{"name": f"o{i}", "cost": 1.0} for i in range(1500)]
    plan = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 1]}}},
        "queries": {"q": {"from": "s", "operators": operators}},
    }
    assert dsms.simulate(plan, "fifo", until=100, cut=True).staleness.mean == 1.0


def test_a_wide_query_takes_time_in_proportion_to_its_width():
    def seconds(width):
        plan = plan_from({
            "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 0, 0]}}},
            "queries": {
                "q": {"operators": [{"name": f"o{i}", "cost": 1.0, "inputs": ["s"]} for i in range(width)]}
            },
        })  # fmt: skip
        start = time.process_time()
        assert dsms.simulate(plan, "rr-query").outputs == 3 * width
        return time.process_time() - start

    assert min(seconds(2000) for _ in range(3)) < 20 * min(seconds(250) for _ in range(3))


def test_greedy_counts_every_copy_that_an_operator_makes():
    """A tuple becomes two private copies: memory grows by 1; shared, it stays, and two readers share the credit."""
    figures = {}
    for buffers in ("private", "shared"):
        plan = plan_from({
            "streams": {"s": {}},
            "queries": {"q": {"from": "s", "operators": [
                {"name": "root", "cost": 1}, {"name": "a", "cost": 1}, {"name": "b", "cost": 1, "inputs": ["root"]},
            ]}},
            "run": {"buffers": buffers},
        })  # fmt: skip
        engine = Engine(plan, policy_named("greedy"))
        figures[buffers] = {queue.station.name: queue.segments[0].freed for queue in engine.ledger.queues}
    assert figures == {"private": {"root": -1, "a": 1, "b": 1}, "shared": {"root": 0, "a": 0.5, "b": 0.5}}
