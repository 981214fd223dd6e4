"""Policies that cut a plan by its statistics: they cut it again when a window of statistics ends, and only then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.policy_checks import Choices
from support.strategies import FEW, QueueHistory, expect_results, make_path_plan, plan_tables, policy

import dsms
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.statistics import Statistics
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment
from dsms.policies.chain import Chain


@dataclass
class LoggingChain(Chain):
    """Chain, with a note of when it cut and what it knew."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.known: list[tuple[float, ...]] = []

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        self.known.append(tuple(statistics.of(station).selectivity for station in plan.stations))
        return super().cut(plan, statistics)


class Cuts(Observer):
    """The segments that there are before each turn, with its start, whenever they have changed."""

    trusted = True

    def __init__(self) -> None:
        self.seen: list[tuple[float, list[str]]] = []

    def attach(self, engine: Engine) -> None:
        self.engine = engine

    def begin(self, now: float) -> None:
        segments = {s.serial: s for queue in self.engine.ledger.queues for s in queue.segments}
        names = sorted("+".join(segment.names) for segment in segments.values())
        if not self.seen or self.seen[-1][1] != names:
            self.seen.append((now, names))


def drifting(**run: Any) -> dsms.Plan:
    """a keeps every second row before 32, and all after; a row arrives every 4 units, four in a window.

    Slopes of 1/2 and 4/9 at first, so two chains; then a leaves all, so one.
    """

    def half(batch: dsms.Batch) -> Any:
        arrived = batch.each("arrived")
        return (arrived >= 32) | (arrived % 8 == 0)

    at = np.arange(0, 96, 4.0).tolist()
    return make_path_plan(
        {"cost": 1.0, "selectivity": 0.5, "function": half},
        {"cost": 2.25, "function": lambda batch: batch},
        at=at,
        **run,
    )


def test_chain_is_cut_anew_when_a_selectivity_has_really_changed() -> None:
    """In the window from 32 a passes all; it is known to be over when the turn of 48 is done, at 49."""
    cuts, counted = Cuts(), LoggingChain()
    Engine(drifting(statistics="window", window=16.0), counted, observers=[cuts]).run()
    assert [names for _, names in cuts.seen] == [["a", "b"], ["a+b"]]
    assert cuts.seen[1][0] == 49
    assert {known[0] for known in counted.known} == {0.5, 1.0}


def test_declared_figures_are_cut_by_once() -> None:
    counted = LoggingChain()
    Engine(drifting(), counted).run()
    assert len(counted.known) == 1


@pytest.mark.parametrize("statistics", ["window", "average"])
def test_it_is_asked_once_a_window_and_not_on_every_turn(statistics: str) -> None:
    """Six windows; where the cut differs it is made a second time, to be used."""
    counted, turns = LoggingChain(), []

    class TurnCountObserver(Observer):
        def turn(self, start: float, segment: Segment, steps: Any) -> None:
            turns.append(start)

    Engine(drifting(statistics=statistics, window=16.0), counted, observers=[TurnCountObserver()]).run()
    assert len(turns) == 24 + 20
    assert 5 <= len(counted.known) - 1 <= 6 + 2


def test_an_average_moves_with_every_run_and_the_cut_with_every_window() -> None:
    counted, cuts = LoggingChain(), Cuts()
    engine = Engine(drifting(statistics="average", window=16.0, history=0.5), counted, observers=[cuts])
    engine.run()
    assert cuts.seen[-1][1] == ["a+b"]
    windows = [start // 16 for start, _ in cuts.seen]
    assert windows == sorted(set(windows))  # never twice in one
    assert len(set(counted.known)) > 4  # though a's average moves with each of its runs


@FEW
@given(
    table=plan_tables(tuples=("individual",)),
    text=st.sampled_from(("chain", "partition-latency", "partition-memory", "qos-chain")),
)
def test_a_new_cut_keeps_backlog_order_and_results(table: dict[str, Any], text: str) -> None:
    """Windows shorter than most turns: cut at nearly every turn, and still the best is chosen and nothing lost."""
    plan = dsms.plan_from(table | {"run": table["run"] | {"statistics": "window", "window": 0.75}})
    history = QueueHistory()
    Engine(plan, policy(text), observers=[Choices(), history]).run()
    wanted = expect_results(plan)
    assert {s.name: history.consumed(s) for s in plan.stations} == pytest.approx(wanted.consumed)
    for readings in history.reads.values():
        taken = [reading.record.seq for reading in readings]
        assert taken == sorted(taken)


@FEW
@given(table=plan_tables())
def test_in_every_segment_a_producer_comes_before_its_readers(table: dict[str, Any]) -> None:
    plan = dsms.plan_from(table)
    for text in ("chain", "partition-latency", "partition-memory", "component", "fas-mcq", "qos-chain"):
        for segment in policy(text).segments(plan):
            place = {station: at for at, station in enumerate(segment.stations)}
            assert all(place[p] < place[s] for s in segment.stations for p in s.inputs if p in place)
