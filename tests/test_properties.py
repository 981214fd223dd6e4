"""What every policy owes, held by being registered: results, order, nothing lost or doubled, turns."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from strategies import (
    FEW,
    POLICIES,
    History,
    cuts_pieces,
    expected,
    goods,
    may_take,
    path,
    plan_tables,
    policy,
    suits,
)

import dsms
from dsms.engine import Engine
from dsms.ledger import NOTHING, Queue
from dsms.observers import Observer
from dsms.runners import BatchRunner
from dsms.segment import Segment
from dsms.trace import Trace

RUNNERS = {"inline": None, "batches": BatchRunner}


def held_to(table: dict[str, Any], runner: Any = None) -> Iterator[tuple[dsms.Plan, str]]:
    """The plan for every policy there is: a plan costs more to draw than to run, so one serves all."""
    plan = dsms.plan_from(table)
    for text in POLICIES:
        if suits(text, plan, runner):
            note(f"policy {text}")
            yield plan, text


def run(plan: dsms.Plan, text: str, runner: Any = None) -> tuple[Engine, History]:
    history = History()
    engine = Engine(plan, policy(text), runner=runner, observers=[history])
    engine.run()
    return engine, history


def turns(plan: dsms.Plan, text: str, runner: Any = None) -> str:
    file = io.StringIO()
    Engine(plan, policy(text), runner=runner, observers=[Trace(file)]).run()
    return file.getvalue()


@pytest.mark.parametrize("runner", RUNNERS)
@FEW
@given(table=plan_tables())
def test_results_are_the_same_under_every_policy(runner: str, table: dict[str, Any]) -> None:
    wanted = expected(dsms.plan_from(table))
    for plan, text in held_to(table, RUNNERS[runner]):
        engine, history = run(plan, text, RUNNERS[runner])
        amounts = dict.fromkeys(wanted.amounts, 0.0)
        for query, record in history.results:
            amounts[query] += record.amount
        assert amounts == pytest.approx(wanted.amounts)
        if not cuts_pieces(plan):
            assert Counter((query, record.arrived) for query, record in history.results) == wanted.results
        assert {s.name: history.consumed(s) for s in plan.stations} == pytest.approx(wanted.consumed)
        assert {s.name: history.produced(s) for s in plan.stations} == pytest.approx(wanted.produced)
        assert engine.ledger.held == pytest.approx(0)
        assert all(queue.oldest == NOTHING and not goods(engine.runner, queue) for queue in engine.ledger.queues)


@FEW
@given(table=plan_tables())
def test_results_do_not_depend_on_buffers_or_on_how_much_a_turn_takes(table: dict[str, Any]) -> None:
    seen = []
    changes = ({"buffers": "shared"}, {"buffers": "private"}, {"slice": 0.75}, {"in_service": False}, {"bounds": False})
    for change in changes:
        for plan, text in held_to(table | {"run": table["run"] | change}):
            seen.append(Counter((query, record.arrived) for query, record in run(plan, text)[1].results))
    assert cuts_pieces(plan) or all(one == seen[0] for one in seen)


@pytest.mark.parametrize("runner", RUNNERS)
@FEW
@given(table=plan_tables())
def test_after_every_turn_the_ledger_says_what_the_runner_holds(runner: str, table: dict[str, Any]) -> None:
    for plan, text in held_to(table, RUNNERS[runner]):
        history = History()
        engine = Engine(plan, policy(text), runner=RUNNERS[runner], observers=[history])
        conserved(engine, history)
        while engine.step():
            conserved(engine, history)


def conserved(engine: Engine, history: History) -> None:
    """The goods, the ledger and a bookkeeping of events alone agree on every queue and on the memory of all."""
    ledger, plan = engine.ledger, engine.plan
    kept = {queue.index: goods(engine.runner, queue) for queue in ledger.queues}
    for queue in ledger.queues:
        mine, due = kept[queue.index], history.waiting(queue)
        assert [seq for seq, _, _ in mine] == [seq for seq, _, _ in due]
        assert [amount for _, amount, _ in mine] == pytest.approx([amount for _, amount, _ in due])
        assert [unit for _, _, unit in mine] == [unit for _, _, unit in due]
        assert queue.count == pytest.approx(sum(amount for _, amount, _ in mine))
        assert queue.oldest == (mine[0][0] if mine else NOTHING)
    held = held_bytes = 0.0
    for buffer in (*ledger.streams, *ledger.outlets):
        stocks = sorted((kept[queue.index] for queue in buffer.readers), key=len)
        for stock in stocks:  # every reader has the end of what the slowest has, so that one's is all there is
            assert [seq for seq, _, _ in stock] == [seq for seq, _, _ in stocks[-1][len(stocks[-1]) - len(stock) :]]
        amounts = [sum(amount for _, amount, _ in stock) for stock in stocks]
        sizes = [sum(amount * unit for _, amount, unit in stock) for stock in stocks]
        once = plan.settings.buffers == "shared"
        held += max(amounts, default=0.0) if once else sum(amounts)
        held_bytes += max(sizes, default=0.0) if once else sum(sizes)
    assert ledger.held == pytest.approx(held)
    assert pytest.approx(held_bytes) == (ledger.held_bytes if ledger.size is None else ledger.held * ledger.size)


@pytest.mark.parametrize("runner", RUNNERS)
@FEW
@given(table=plan_tables())
def test_arrival_order_is_kept_in_every_queue(runner: str, table: dict[str, Any]) -> None:
    for plan, text in held_to(table, RUNNERS[runner]):
        _, history = run(plan, text, RUNNERS[runner])
        for readings in history.read.values():
            taken = [reading.record.seq for reading in readings]
            assert taken == sorted(taken)


@FEW
@given(table=plan_tables())
def test_a_join_or_union_takes_its_inputs_in_the_order_of_arrival(table: dict[str, Any]) -> None:
    for plan, text in held_to(table):
        _, history = run(plan, text)
        for station in plan.stations:
            readings = [
                (reading.begin, reading.record.seq, port)
                for port in range(len(station.inputs))
                for reading in history.read.get((station.index, port), [])
            ]
            in_time = [(seq, port) for _, seq, port in sorted(readings)]
            assert in_time == sorted(in_time)


@FEW
@given(table=plan_tables())
def test_the_same_seed_makes_the_same_turns(table: dict[str, Any]) -> None:
    for plan, text in held_to(table):
        first = turns(plan, text)
        assert first == turns(plan, text)  # a plan can be run again
        assert first == turns(dsms.plan_from(table), text)


@FEW
@given(table=plan_tables())
def test_all_runners_take_the_same_turns_and_measure_the_same(table: dict[str, Any]) -> None:
    for plan, text in held_to(table, BatchRunner):
        assert turns(plan, text) == turns(plan, text, BatchRunner)
        assert dsms.simulate(plan, text, sample=1.0) == dsms.simulate(plan, text, sample=1.0, runner=BatchRunner)


def test_a_piece_of_more_than_a_tuple_leaves_a_share_of_less_than_one() -> None:
    """a makes pieces of 1.5; the second of b's two tuples finds half a tuple left of its share, and is taken whole."""
    plan = path({"cost": 1, "selectivity": 1.5}, {"cost": 2}, at=[0, 0], tuples="fractional")
    assert turns(plan, "rr:tuples=2") == turns(plan, "rr:tuples=2", BatchRunner)
    lines = [json.loads(line) for line in turns(plan, "rr:tuples=2").splitlines()]
    assert [(line["stations"], line["consumed"]) for line in lines] == [(["a"], 2.0), (["b"], 3.0)]


def test_a_stream_with_costs_for_one_operator_does_not_hide_those_of_another_stream() -> None:
    """u costs 1: three times that for s's tuple, which says so for u; five times for t's, which says so for all."""
    table = {
        "streams": {
            "s": {"arrivals": {"kind": "list", "at": [0], "cost": {"u": [3.0]}}},
            "t": {"arrivals": {"kind": "list", "at": [0], "cost": [5.0]}},
        },
        "queries": {"q": {"operators": [{"name": "u", "cost": 1, "inputs": ["s", "t"]}]}},
    }
    for runner in RUNNERS.values():
        assert dsms.simulate(dsms.plan_from(table), "fifo", runner=runner).elapsed == 8


class Choices(Observer):
    """Works out before every turn, from all segments, who must be chosen and where that one must begin."""

    trusted = True

    def __init__(self) -> None:
        self.wanted: tuple[Segment, Queue] | None = None
        self.waited: Counter[int] = Counter()  # of every segment with work: the turns that others had since it has any
        self.longest = 0

    def attach(self, engine: Engine) -> None:
        self.engine = engine

    def begin(self, now: float) -> None:
        segments = {segment.serial: segment for queue in self.engine.ledger.queues for segment in queue.segments}
        ready = []
        for segment in segments.values():
            stock = {queue: goods(self.engine.runner, queue) for queue in segment.queues}
            assert segment.pending == pytest.approx(sum(amount for kept in stock.values() for _, amount, _ in kept))
            if any(stock.values()):
                takes = [queue for queue in stock if stock[queue] and may_take(self.engine, queue)]
                if not takes:
                    continue  # a join or union that waits for an older tuple
                start = min(takes, key=lambda q: (q.oldest, -q.station.index))
                first = segment.stations[0]
                by_age = self.engine.policy.by_age
                place = (start.oldest, -first.depth, first.index, segment.index) if by_age else (segment.index,)
                ready.append((-self.engine.policy.priority(segment), place, segment, start))
        _, _, chosen, start = min(ready, key=lambda entry: entry[:2])
        self.wanted = (chosen, start)
        self.waited = Counter({s.serial: self.waited[s.serial] + 1 for _, _, s, _ in ready if s is not chosen})
        self.longest = max(self.longest, *self.waited.values(), 0)

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        assert self.wanted == (segment, steps[0][0])
        inside = {queue.index for queue in segment.queues}
        assert all(step[0].index in inside and step[1] > 0 for step in steps)


@pytest.mark.parametrize("runner", RUNNERS)
@FEW
@given(table=plan_tables())
def test_the_choice_is_the_best_of_all_segments_with_work(runner: str, table: dict[str, Any]) -> None:
    for plan, text in held_to(table, RUNNERS[runner]):
        Engine(plan, policy(text), runner=RUNNERS[runner], observers=[Choices()]).run()


@pytest.mark.parametrize("statistics", ["average", "window"])
@FEW
@given(table=plan_tables())
def test_the_choice_is_the_best_while_statistics_change(statistics: str, table: dict[str, Any]) -> None:
    for plan, text in held_to(table | {"run": table["run"] | {"statistics": statistics, "window": 3.0}}):
        Engine(plan, policy(text), observers=[Choices()]).run()


@FEW
@given(table=plan_tables())
def test_round_robin_leaves_nobody_out_for_more_than_a_round(table: dict[str, Any]) -> None:
    for plan, text in held_to(table):
        if text.startswith("rr"):
            choices = Choices()
            Engine(plan, policy(text), observers=[choices]).run()
            ring = len(plan.queries) if text.startswith("rr-query") else len(plan.stations)
            assert choices.longest <= ring - 1


@FEW
@given(table=plan_tables(), longest=st.sampled_from([None, 0.5, 2.0]))
def test_a_turn_takes_no_more_than_its_share(table: dict[str, Any], longest: float | None) -> None:
    run = {key: value for key, value in table["run"].items() if key != "slice"}
    for plan, text in held_to(table | {"run": run | ({"slice": longest} if longest else {})}):
        Engine(plan, policy(text), observers=[Shares()]).run()


class Shares(Observer):
    """Holds every turn to the tuples and, from the second tuple on, to the time it may take."""

    trusted = True

    def attach(self, engine: Engine) -> None:
        self.engine = engine

    def begin(self, now: float) -> None:
        policy = self.engine.policy
        self.asked = {
            segment.serial: policy.share(segment) if policy.shares() else None
            for queue in self.engine.ledger.queues
            if queue.oldest != NOTHING
            for segment in queue.segments
        }

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        settings, asked = self.engine.plan.settings, self.asked[segment.serial]
        first = steps[0][0]
        begun = [i for i, step in enumerate(steps) if step[0] is first]
        take = segment.stations[0].operator.take
        most: float = (take if take and not settings.fractional else 1) if settings.slice is None else math.inf
        if asked is not None:
            most = asked.tuples
        assert len(begun) <= most
        time = min(math.inf if asked is None else asked.time, settings.slice or math.inf)
        for i in begun[1:]:  # a tuple is begun only if, by what is known of its cost, it will be done in time
            assert sum(step[3] for step in steps[:i]) + segment.next_cost <= time * (1 + 1e-6)
