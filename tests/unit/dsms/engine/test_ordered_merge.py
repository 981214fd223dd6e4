"""Joins and unions: the older tuple first; blocked on an empty input, or asking how old its next can be."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.strategies import POLICIES, QueueHistory, is_suitable, policy

import dsms
from dsms.engine.engine import Engine
from dsms.engine.ledger import NO_HEAD
from dsms.engine.observers import Observer
from dsms.plan.segment import Segment


class Steps(Observer):
    """When each step ended, at which station, by which input."""

    trusted = True

    def __init__(self) -> None:
        self.seen: list[tuple[float, str, int]] = []

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        for queue, _, _, cost, *_ in steps:
            start += cost
            self.seen.append((start, queue.station.name, queue.port))

    def of(self, name: str) -> list[tuple[float, int]]:
        return [(end, port) for end, station, port in self.seen if station == name]


def union(*, bounds: bool, cost: float = 1.0, **at: Any) -> dsms.Plan:
    """One operator that reads streams, with lists of arrivals or None for one that is pushed into."""
    streams = {n: {} if times is None else {"arrivals": {"kind": "list", "at": times}} for n, times in at.items()}
    operators = [{"name": "u", "inputs": list(at), "cost": cost}]
    return dsms.plan_from({"streams": streams, "queries": {"q": {"operators": operators}}, "run": {"bounds": bounds}})


def steps_of(plan: dsms.Plan, text: str = "fifo") -> Steps:
    steps = Steps()
    Engine(plan, policy(text), observers=[steps]).run()
    return steps


@pytest.mark.parametrize(("bounds", "ends"), [(False, [(6, 0), (7, 1)]), (True, [(1, 0), (6, 1)])])
def test_b4_and_b5_an_empty_input_blocks_unless_it_is_asked_how_old_its_next_can_be(
    bounds: bool, ends: list[tuple[float, int]]
) -> None:
    """R's tuple of 0 waits for the first of S, come at 5; that one waits for R until the end of both."""
    assert steps_of(union(bounds=bounds, R=[0], S=[5])).of("u") == ends


def test_b4_what_is_blocked_is_not_ready() -> None:
    engine = Engine(union(bounds=False, R=[0, 0], S=[5]), policy("mtiq"))
    assert engine.step()
    assert engine.clock.now() == 5  # it has waited rather than run
    (left, right) = engine.ledger.queues
    assert (left.count, left.merge.head(left) if left.merge else 0, right.count) == (2, NO_HEAD, 0)


@pytest.mark.parametrize("bounds", [True, False])
def test_b4_older_first_whatever_the_input(bounds: bool) -> None:
    steps = steps_of(union(bounds=bounds, cost=10.0, R=[0, 3, 4], S=[1, 2, 5]))
    assert [port for _, port in steps.of("u")] == [0, 1, 1, 0, 0, 1]


@pytest.mark.parametrize("bounds", [True, False])
def test_b4_of_one_instant_the_stream_first_in_the_plan_goes_first(bounds: bool) -> None:
    assert [port for _, port in steps_of(union(bounds=bounds, R=[0, 1], S=[0, 1])).of("u")] == [0, 1, 0, 1]


def slow_and_fast(bounds: bool, selectivity: float = 1.0) -> dsms.Plan:
    """R must pass a, which is slow and little favoured; S comes right into u."""
    return dsms.plan_from({
        "streams": {"R": {"arrivals": {"kind": "list", "at": [0]}}, "S": {"arrivals": {"kind": "list", "at": [1]}}},
        "queries": {"q": {"operators": [{"name": "a", "inputs": ["R"], "cost": 4.0, "selectivity": selectivity},
                                        {"name": "u", "inputs": ["a", "S"], "cost": 1.0}]}},
        "run": {"bounds": bounds},
    })  # fmt: skip


@pytest.mark.parametrize("bounds", [True, False])
def test_b5_a_bound_counts_what_is_still_on_its_way(bounds: bool) -> None:
    """S's tuple of 1 is younger than R's, which leaves a at 4 only; greedy would take u first."""
    assert steps_of(slow_and_fast(bounds), "greedy").seen == [(4, "a", 0), (5, "u", 0), (6, "u", 1)]


@pytest.mark.parametrize("bounds", [True, False])
def test_b5_what_was_on_its_way_and_is_dropped_blocks_no_longer(bounds: bool) -> None:
    """Without bounds it is the end of the streams that says so, at the same instant as nothing else is to come."""
    assert steps_of(slow_and_fast(bounds, selectivity=0.0), "greedy").seen == [(4, "a", 0), (5, "u", 1)]


def test_b5_a_dropped_tuple_blocks_for_as_long_as_more_may_come_where_bounds_are_not_asked_for() -> None:
    table = {
        "streams": {"R": {"arrivals": {"kind": "list", "at": [0, 20]}}, "S": {"arrivals": {"kind": "list", "at": [1]}}},
        "queries": {"q": {"operators": [{"name": "a", "inputs": ["R"], "cost": 4.0, "selectivity": 0.0},
                                        {"name": "u", "inputs": ["a", "S"], "cost": 1.0}]}},
    }  # fmt: skip
    assert steps_of(dsms.plan_from(table | {"run": {"bounds": False}})).of("u") == [(25, 1)]
    assert steps_of(dsms.plan_from(table | {"run": {"bounds": True}})).of("u") == [(5, 1)]


@pytest.mark.parametrize("bounds", [True, False])
@pytest.mark.parametrize(
    ("inputs", "seen"),
    [
        (["a", "b"], {True: [(1, "a", 0), (2, "u", 0), (7, "b", 0), (8, "u", 1)],
                      False: [(1, "a", 0), (6, "b", 0), (7, "u", 0), (8, "u", 1)]}),
        (["b", "a"], {True: [(1, "a", 0), (6, "b", 0), (7, "u", 0), (8, "u", 1)],
                      False: [(1, "a", 0), (6, "b", 0), (7, "u", 0), (8, "u", 1)]}),
    ],
)  # fmt: skip
def test_a_diamond_takes_of_one_tuple_what_came_by_its_first_input_first(
    bounds: bool, inputs: list[str], seen: dict[bool, list[tuple[float, str, int]]]
) -> None:
    """s→a→u and s→b→u, a takes 1 and b 5: what a made need not wait if b's input is the later one, and is known."""
    table = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0]}}},
        "queries": {"q": {"operators": [{"name": "a", "inputs": ["s"], "cost": 1.0},
                                        {"name": "b", "inputs": ["s"], "cost": 5.0},
                                        {"name": "u", "inputs": inputs, "cost": 1.0}]}},
        "run": {"bounds": bounds},
    }  # fmt: skip
    assert steps_of(dsms.plan_from(table)).seen == seen[bounds]


@pytest.mark.parametrize("text", POLICIES)
def test_results_are_the_same_blocked_or_not_and_none_stays_behind(text: str) -> None:
    found = []
    for bounds in (True, False):
        plan = union(bounds=bounds, cost=0.5, R=[0, 1, 1, 7], S=[0.25, 9], T=[3])
        if not is_suitable(text, plan):
            return
        history = QueueHistory()
        engine = Engine(plan, policy(text), observers=[history])
        engine.run()
        assert all(queue.oldest == NO_HEAD for queue in engine.ledger.queues)
        found.append(Counter((query, record.arrived) for query, record in history.results))
        assert sum(found[-1].values()) == 7
    assert found[0] == found[1]


# --- pushed from outside


def test_push_while_running_waits_for_the_other_input() -> None:
    """R comes at 0 and at 10. At 1, after R's first, S is pushed into: R's is free, S's waits for R's of 10."""
    steps = Steps()
    engine = Engine(union(bounds=False, R=[0, 1, 10], S=None), policy("fifo"), observers=[steps])
    assert engine.step()  # at 0 R's waits, so time goes on to 1
    assert engine.clock.now() == 1
    assert not steps.seen
    engine.push("S", 1)  # before R's of 1 is admitted
    engine.run()
    assert steps.of("u") == [(2, 0), (3, 1), (11, 0), (12, 0)]


def test_push_after_the_end_blocks_anew_until_the_end_is_known_again() -> None:
    steps = Steps()
    engine = Engine(union(bounds=False, R=None, S=None), policy("fifo"), observers=[steps])
    engine.push("R", 1)
    engine.run()
    assert steps.of("u") == [(1, 0)]  # nothing else is to come, as far as is known
    engine.push("S", 2)
    assert engine.step()
    assert len(steps.seen) == 1  # S's waited for R until it was seen, in this step, that nothing else is to come
    engine.push("R", 1)
    engine.run()
    assert steps.of("u")[1:] == [(2, 1), (3, 1), (4, 0)]


def test_push_with_bounds_leaves_at_once() -> None:
    steps = Steps()
    engine = Engine(union(bounds=True, R=[0, 10], S=None), policy("fifo"), observers=[steps])
    engine.step()
    engine.push("S", 1)
    engine.step()
    assert steps.of("u") == [(1, 0), (2, 1)]
