"""Plans that change while a join runs: for the better only, and with the same results."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from dsms.algebra import Window
from dsms.batch import Batch
from dsms.dataflow import Cost, Join, Operation, Stream, best_plan
from dsms.joins import Input, MultiJoin
from dsms.joins import multijoin as module
from dsms.joins.adapt import Adviser, greedy
from dsms.schema import Schema

R, S, T = Stream("r", "ab"), Stream("s", "bc"), Stream("t", "cd")
CHAIN = Join(Join(R, S, "b"), T, "c")


def join_of(keep: tuple[str, ...] | None = None) -> MultiJoin:
    window = Window("range", 1000)
    inputs = tuple(
        Input(part.name, Schema.of(dict.fromkeys(part.attributes, "int64")), window, {a: a for a in part.attributes})
        for part in (R, S, T)
    )
    return MultiJoin(inputs=inputs, expression=CHAIN, columns=("r.a", "s.b", "t.d"), emit="births", keep=keep)


def feed(
    join: MultiJoin, rates: tuple[int, int, int], values: tuple[int, int], blocks: int, since: int = 0
) -> list[Batch]:
    """Streams with so many rows per 100 us, with so many different values of b and c."""
    rng = np.random.default_rng(3)
    answers = []
    different = {"a": 1000, "b": values[0], "c": values[1], "d": 1000}
    for block in range(since, since + blocks):
        for port, (stream, rate) in enumerate(zip((R, S, T), rates, strict=True)):
            columns = {name: rng.integers(0, different[name], rate) for name in stream.attributes}
            ts = np.sort(rng.integers(100 * block, 100 * block + 100, rate))
            answers.append(join.process(Batch(columns, rate, ts=ts, upto=100 * block + 100), port))
    return answers


def rows(answers: list[Batch]) -> list[tuple[int, ...]]:
    pairs = [pair for batch in answers for pair in zip(batch.each("ts").tolist(), batch.records(), strict=True)]
    return sorted((ts, *row.values()) for ts, row in pairs)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCKS", 6)


def test_a_result_gets_a_window_where_what_it_is_made_of_hardly_ever_comes() -> None:
    """Few of r and s, many of t: each of t would have to meet w_s and then w_r."""
    join = join_of()
    assert "w_rs" not in str(join.plan[2])
    answers = feed(join, (2, 2, 200), (200, 2), 30)
    assert "join[c](w_rs)" in str(join.plan[2])
    assert any("(saves" in change and "w_rs" in change for change in join.changes)
    assert rows(answers) == rows(feed(join_of(keep=()), (2, 2, 200), (200, 2), 30))


def test_the_window_is_forgotten_when_its_upkeep_no_longer_pays() -> None:
    join = join_of()
    feed(join, (2, 2, 200), (200, 2), 30)
    assert "w_rs" in str(join.plan)
    later = join_of()
    later.follow(join.plan)
    feed(later, (20, 20, 1), (10, 50), 40)
    assert "w_rs" not in str(later.plan)


def test_the_window_comes_and_goes_with_the_rates_of_the_streams_alone() -> None:
    """The same values all along, and no meter: what becomes of an item says nothing of how often one comes."""
    join, plain = join_of(), join_of(keep=())
    kept, answers, expected = [], list[Batch](), list[Batch]()
    for phase, rates in enumerate([(2, 2, 200), (20, 20, 1), (2, 2, 200)]):
        answers += feed(join, rates, (50, 10), 30, since=30 * phase)
        expected += feed(plain, rates, (50, 10), 30, since=30 * phase)
        kept.append(["->(w_rs)" in str(flow) for flow in join.plan[:2]] + ["join[c](w_rs)" in str(join.plan[2])])
    assert kept == [[True] * 3, [False] * 3, [True] * 3]
    assert ["w_rs" in change for change in join.changes] == [True, False, True]
    assert rows(answers) == rows(expected)


def test_an_item_goes_first_where_it_meets_the_fewest() -> None:
    """Each of s meets many of r and hardly any of t, or the other way round."""
    few_t, few_r = join_of(keep=()), join_of(keep=())
    feed(few_t, (50, 50, 50), (5, 5000), 30)
    feed(few_r, (50, 50, 50), (5000, 5), 30)
    assert str(few_t.plan[1]) == "s: ->(w_s), join[c](w_t), join[b](w_r), ->(w_out)"
    assert str(few_r.plan[1]) == "s: ->(w_s), join[b](w_r), join[c](w_t), ->(w_out)"


def test_what_is_to_be_kept_is_kept() -> None:
    join = join_of(keep=("rs",))
    feed(join, (50, 50, 1), (5, 50), 30)
    assert "->(w_rs)" in str(join.plan[0])


def test_a_plan_that_is_hardly_better_is_not_worth_the_change() -> None:
    adviser = Adviser(CHAIN, ())

    def estimate(operation: Operation) -> Cost:
        return Cost(1, 1.05 if operation.window == "w_r" else 1)

    assert adviser.better(adviser.first(), estimate, {"r": 1, "s": 1, "t": 1}) is None


def test_time_per_item_is_what_the_meter_says() -> None:
    def seconds() -> Iterator[float]:
        now = 0.0
        while True:
            yield now
            now += 1.0

    join = join_of()
    clock = seconds()
    join.meter = lambda: next(clock)
    feed(join, (10, 10, 10), (4, 4), 3)
    estimate = join._scales.estimate()
    operation = join.plan[0].operations[1]
    assert estimate(operation).time == pytest.approx(1 / 10)


@pytest.mark.parametrize("times", [(1, 1, 1), (100, 1, 1), (1, 1, 100)])
def test_the_adviser_finds_the_best_of_all_plans(times: tuple[float, float, float]) -> None:
    def estimate(operation: Operation) -> Cost:
        return Cost(1 + len(operation.window) % 3, 2 + len(operation.on))

    rates = dict(zip("rst", times, strict=True))
    assert Adviser(CHAIN, None).best(estimate, rates) == best_plan(CHAIN, estimate, rates)


def test_of_many_streams_the_next_is_always_the_one_that_is_met_least() -> None:
    streams = [Stream(name, ("k", name)) for name in "pqrstu"]
    expression = streams[0]
    for other in streams[1:]:
        expression = Join(expression, other, "k")
    met = dict(zip("pqrstu", (9, 5, 4, 3, 2, 1), strict=True))

    def estimate(operation: Operation) -> Cost:
        return Cost(1, met.get(operation.window.removeprefix("w_"), 100))

    flow = greedy(expression, streams[0], estimate)
    assert [operation.window for operation in flow.operations[1:-1]] == ["w_u", "w_t", "w_s", "w_r", "w_q"]
    best = Adviser(expression, None).best(estimate, dict.fromkeys("pqrstu", 1.0))
    orders = [[met[op.window[2:]] for op in flow.operations[1:-1]] for flow in best]
    assert all(earlier <= later for order in orders for earlier, later in pairwise(order))
