"""A join re-plans at run time: only to better plans, and with the same results."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from dsms.algebra import Window
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.dataflow import Cost, JoinTerm, Operation, StreamTerm, best_plan
from dsms.operators.joins import JoinInput, MultiJoin
from dsms.operators.joins import multijoin as module
from dsms.operators.joins.adaptive_plan import PlanChooser, choose_greedy_order

R, S, T = StreamTerm("r", "ab"), StreamTerm("s", "bc"), StreamTerm("t", "cd")
CHAIN = JoinTerm(JoinTerm(R, S, "b"), T, "c")


def join_of(keep: tuple[str, ...] | None = None) -> MultiJoin:
    window = Window("range", 1000)
    inputs = tuple(
        JoinInput(
            part.name, Schema.of(dict.fromkeys(part.attributes, "int64")), window, {a: a for a in part.attributes}
        )
        for part in (R, S, T)
    )
    return MultiJoin(inputs=inputs, expression=CHAIN, columns=("r.a", "s.b", "t.d"), emit="insertions", keep=keep)


def feed(
    join: MultiJoin, rates: tuple[int, int, int], values: tuple[int, int], blocks: int, since: int = 0
) -> list[Batch]:
    """Feed streams with the given rows per 100 us and the given numbers of distinct values of b and c."""
    rng = np.random.default_rng(3)
    answers = []
    different = {"a": 1000, "b": values[0], "c": values[1], "d": 1000}
    for block in range(since, since + blocks):
        for port, (stream, rate) in enumerate(zip((R, S, T), rates, strict=True)):
            columns = {name: rng.integers(0, different[name], rate) for name in stream.attributes}
            ts = np.sort(rng.integers(100 * block, 100 * block + 100, rate))
            answers.append(join.process(Batch(columns, rate, ts=ts, watermark=100 * block + 100), port))
    return answers


def rows(answers: list[Batch]) -> list[tuple[int, ...]]:
    pairs = [pair for batch in answers for pair in zip(batch.each("ts").tolist(), batch.records(), strict=True)]
    return sorted((ts, *row.values()) for ts, row in pairs)


@pytest.fixture(autouse=True)
def _replan_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPLAN_INTERVAL_CALLS", 6)


def test_an_intermediate_result_gets_a_window_if_its_inputs_are_slow() -> None:
    """r and s are slow, t is fast: without w_rs each item of t would probe w_s and then w_r."""
    join = join_of()
    assert "w_rs" not in str(join.plan[2])
    answers = feed(join, (2, 2, 200), (200, 2), 30)
    assert "join[c](w_rs)" in str(join.plan[2])
    assert any("(saves" in change and "w_rs" in change for change in join.changes)
    assert rows(answers) == rows(feed(join_of(keep=()), (2, 2, 200), (200, 2), 30))


def test_the_window_is_dropped_when_its_upkeep_costs_more_than_it_saves() -> None:
    join = join_of()
    feed(join, (2, 2, 200), (200, 2), 30)
    assert "w_rs" in str(join.plan)
    later = join_of()
    later.migrate(join.plan)
    feed(later, (20, 20, 1), (10, 50), 40)
    assert "w_rs" not in str(later.plan)


def test_stream_rates_alone_add_and_drop_the_window() -> None:
    """The values stay the same and there is no meter: only the rates of the streams change."""
    join, plain = join_of(), join_of(keep=())
    kept, answers, expected = [], list[Batch](), list[Batch]()
    for phase, rates in enumerate([(2, 2, 200), (20, 20, 1), (2, 2, 200)]):
        answers += feed(join, rates, (50, 10), 30, since=30 * phase)
        expected += feed(plain, rates, (50, 10), 30, since=30 * phase)
        kept.append(["->(w_rs)" in str(flow) for flow in join.plan[:2]] + ["join[c](w_rs)" in str(join.plan[2])])
    assert kept == [[True] * 3, [False] * 3, [True] * 3]
    assert ["w_rs" in change for change in join.changes] == [True, False, True]
    assert rows(answers) == rows(expected)


def test_an_item_first_probes_the_window_with_the_fewest_matches() -> None:
    """Each item of s matches many of r and few of t, or the other way round."""
    few_t, few_r = join_of(keep=()), join_of(keep=())
    feed(few_t, (50, 50, 50), (5, 5000), 30)
    feed(few_r, (50, 50, 50), (5000, 5), 30)
    assert str(few_t.plan[1]) == "s: ->(w_s), join[c](w_t), join[b](w_r), ->(w_out)"
    assert str(few_r.plan[1]) == "s: ->(w_s), join[b](w_r), join[c](w_t), ->(w_out)"


def test_the_windows_named_in_keep_are_stored() -> None:
    join = join_of(keep=("rs",))
    feed(join, (50, 50, 1), (5, 50), 30)
    assert "->(w_rs)" in str(join.plan[0])


def test_a_plan_that_is_only_slightly_better_is_not_chosen() -> None:
    adviser = PlanChooser(CHAIN, ())

    def estimate(operation: Operation) -> Cost:
        return Cost(1, 1.05 if operation.window == "w_r" else 1)

    assert adviser.better(adviser.first(), estimate, {"r": 1, "s": 1, "t": 1}) is None


def test_the_meter_measures_the_time_per_item() -> None:
    def seconds() -> Iterator[float]:
        now = 0.0
        while True:
            yield now
            now += 1.0

    join = join_of()
    clock = seconds()
    join.meter = lambda: next(clock)
    feed(join, (10, 10, 10), (4, 4), 3)
    estimate = join._cost_estimator.estimate()
    operation = join.plan[0].operations[1]
    assert estimate(operation).time == pytest.approx(1 / 10)


@pytest.mark.parametrize("times", [(1, 1, 1), (100, 1, 1), (1, 1, 100)])
def test_the_plan_chooser_finds_the_best_of_all_plans(times: tuple[float, float, float]) -> None:
    def estimate(operation: Operation) -> Cost:
        return Cost(1 + len(operation.window) % 3, 2 + len(operation.on))

    rates = dict(zip("rst", times, strict=True))
    assert PlanChooser(CHAIN, None).best(estimate, rates) == best_plan(CHAIN, estimate, rates)


def test_for_many_streams_the_greedy_order_joins_the_fewest_matches_next() -> None:
    streams = [StreamTerm(name, ("k", name)) for name in "pqrstu"]
    expression: StreamTerm | JoinTerm = streams[0]
    for other in streams[1:]:
        expression = JoinTerm(expression, other, "k")
    met = dict(zip("pqrstu", (9, 5, 4, 3, 2, 1), strict=True))

    def estimate(operation: Operation) -> Cost:
        return Cost(1, met.get(operation.window.removeprefix("w_"), 100))

    flow = choose_greedy_order(expression, streams[0], estimate)
    assert [operation.window for operation in flow.operations[1:-1]] == ["w_u", "w_t", "w_s", "w_r", "w_q"]
    best = PlanChooser(expression, None).best(estimate, dict.fromkeys("pqrstu", 1.0))
    orders = [[met[op.window[2:]] for op in flow.operations[1:-1]] for flow in best]
    assert all(earlier <= later for order in orders for earlier, later in pairwise(order))
