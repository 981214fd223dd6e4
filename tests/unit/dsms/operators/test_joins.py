"""Joins and differences over windows, against a model that recomputes the query at every instant."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.queries.join_model import (
    InputChange,
    ModelInput,
    contents,
    expect_results,
    list_rows,
    make_batch,
    push_all,
)

from dsms.algebra import Window
from dsms.config.run import Settings
from dsms.data.batch import Batch, Column
from dsms.dataflow import DifferenceTerm, Expression, JoinTerm, Plan, StreamTerm, enumerate_plans, intermediate_names
from dsms.dataflow.join_orders import NotStoredError
from dsms.errors import PlanError
from dsms.operators.joins import MultiJoin

UNBOUNDED = Window("unbounded")
WINDOWS = [Window("range", 4), Window("range", 0), Window("rows", 2), Window("rows", 1), Window("unbounded"), None]
R, S, T = StreamTerm("r", "ab"), StreamTerm("s", "bc"), StreamTerm("t", "ac")
RS = JoinTerm(R, S, "b")
EXPRESSIONS: dict[str, Expression] = {
    "r join s": RS,
    "r join s join t": JoinTerm(RS, T, "ac"),
    "r - s": DifferenceTerm(R, S, "b"),
    "(r join s) - t": DifferenceTerm(RS, StreamTerm("t", "cd"), "c"),
    "(r - s) join t": JoinTerm(DifferenceTerm(R, S, "b"), StreamTerm("t", "ad"), "a"),
    "r - (s join t)": DifferenceTerm(StreamTerm("r", "abd"), JoinTerm(S, StreamTerm("t", "cd"), "c"), "bd"),
    "(r - s) - t": DifferenceTerm(DifferenceTerm(R, S, "b"), StreamTerm("t", "ad"), "a"),
    "r - (s - t)": DifferenceTerm(R, DifferenceTerm(S, StreamTerm("t", "cd"), "c"), "b"),
    "r cross s": JoinTerm(StreamTerm("r", "*"), StreamTerm("s", "*"), "*"),
}
FOUR = JoinTerm(RS, JoinTerm(StreamTerm("t", "cd"), StreamTerm("u", "de"), "d"), "c")


def leaves(expression: Expression) -> list[StreamTerm]:
    if isinstance(expression, StreamTerm):
        return [expression]
    return [*leaves(expression.left), *leaves(expression.right)]


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(0, 2) | st.sampled_from([None, -1, 2**40]),
    "string": st.sampled_from(["", "a", "b", None]),
    "float64": st.sampled_from([0.0, -0.0, 1.0, float("nan"), None]),
    "bool": st.booleans(),
}


@st.composite
def relation_changes(draw: st.DrawFn, row: st.SearchStrategy[tuple[Any, ...]]) -> list[InputChange]:
    """Draw insertions, and retractions of existing rows only."""
    living: list[tuple[Any, ...]] = []
    found: list[InputChange] = []
    for ts in sorted(draw(st.sets(st.integers(0, 12), max_size=6))):
        count = draw(st.integers(0, min(2, len(living))))
        for place in draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)):
            found += [InputChange(ts, living.pop(place % len(living)), -1)]
        new = draw(st.lists(row, max_size=3))
        living += new
        found += [InputChange(ts, one) for one in new]
    return found


@st.composite
def sources_of(draw: st.DrawFn, expression: Expression, windows: Sequence[Window | None] = WINDOWS) -> list[ModelInput]:
    """Draw an input with rows for each stream of an expression."""
    kinds: dict[str, str] = {}
    found = []
    for stream in leaves(expression):
        attributes = {name: f"k{name}" for name in stream.attributes if name != "*"}
        types = {"id": "int64"}
        for name, column in attributes.items():
            kind = kinds.setdefault(name, draw(st.sampled_from(["int64", "int64", "string", "float64"])))
            mixed = draw(st.booleans()) and kind != "string"
            types[column] = "int64" if kind == "float64" and mixed else kind
        row = st.tuples(*(st.integers(0, 3) if n == "id" else VALUES[kind] for n, kind in types.items()))
        window = draw(st.sampled_from(windows))
        stored = len(found) > 0 and draw(st.integers(0, 5)) == 0
        if window is None and not stored:
            changes = draw(relation_changes(row))
        else:
            changes = [InputChange(ts, draw(row)) for ts in sorted(draw(st.lists(st.integers(0, 12), max_size=8)))]
        found.append(ModelInput(stream.name, types, None if stored else window, attributes, changes, stored))
    return found


CUTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=20)


def columns_of(expression: Expression, sources: Sequence[ModelInput]) -> tuple[str, ...]:
    shown = leaves(expression.left) if isinstance(expression, DifferenceTerm) else leaves(expression)
    taking = {leaf.name for leaf in leaves(expression) if leaf.name not in _shown(expression)}
    names = [stream.name for stream in shown if stream.name not in taking]
    return tuple(f"{s.alias}.{column}" for s in sources if s.alias in names for column in s.types)


def _shown(expression: Expression) -> list[str]:
    if isinstance(expression, StreamTerm):
        return [expression.name]
    right = [] if isinstance(expression, DifferenceTerm) else _shown(expression.right)
    return [*_shown(expression.left), *right]


def join_of(expression: Expression, sources: Sequence[ModelInput], **options: Any) -> MultiJoin:
    inputs = tuple(source.input for source in sources)
    return MultiJoin(inputs=inputs, expression=expression, columns=columns_of(expression, sources), **options)


def check(expression: Expression, sources: Sequence[ModelInput], answers: Sequence[Any]) -> None:
    rows = list_rows(answers)
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    by_alias = {source.alias: source for source in sources}
    for now in range(20):
        assert contents(rows, now) == expect_results(expression, by_alias, columns_of(expression, sources), now), now


@pytest.mark.parametrize("name", EXPRESSIONS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_output_adds_up_to_the_expression_at_every_instant(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    sources = data.draw(sources_of(expression))
    if all(source.stored for source in sources):
        return
    join = join_of(expression, sources)
    check(expression, sources, push_all(join, sources, data.draw(CUTS)))
    assert join.dead_letters == []


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(list(EXPRESSIONS)), data=st.data())
def test_any_batch_boundaries_give_the_same_rows_in_the_same_order(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    sources = data.draw(sources_of(expression))
    whole = list_rows(push_all(join_of(expression, sources), sources, []))
    assert list_rows(push_all(join_of(expression, sources), sources, data.draw(CUTS))) == whole


def plans_of(expression: Expression) -> list[Plan]:
    """List the plans of every choice of stored results and orders."""
    inside = intermediate_names(expression)
    found: list[Plan] = []
    for stored in chain.from_iterable(combinations(inside, n) for n in range(len(inside) + 1)):
        with contextlib.suppress(NotStoredError):
            found += enumerate_plans(expression, stored)
    return found


PLANS = {name: plans_of(expression) for name, expression in {**EXPRESSIONS, "four": FOUR}.items()}


@pytest.mark.parametrize("name", [name for name in PLANS if len(PLANS[name]) > 1])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_order_and_choice_of_intermediate_windows_gives_the_same_results(name: str, data: st.DataObject) -> None:
    expression = {**EXPRESSIONS, "four": FOUR}[name]
    sources = data.draw(sources_of(expression))
    with pytest.MonkeyPatch.context() as patch:
        for module in ("column_buffer", "retractable_rows", "intermediate_results"):  # every deletion compacts at once
            patch.setattr(f"dsms.operators.joins.state.{module}.MIN_CAPACITY_ROWS", 0)
        join = join_of(expression, sources)
        join.migrate(data.draw(st.sampled_from(PLANS[name])))
        check(expression, sources, push_all(join, sources, data.draw(CUTS)))


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from([name for name in PLANS if len(PLANS[name]) > 1]), data=st.data())
def test_a_plan_may_change_at_any_time(name: str, data: st.DataObject) -> None:
    expression = {**EXPRESSIONS, "four": FOUR}[name]
    sources = data.draw(sources_of(expression))
    join = join_of(expression, sources)
    turns = data.draw(st.lists(st.sampled_from(PLANS[name]), min_size=1, max_size=4))
    process, calls = join.process, iter(range(1000))

    def changing(batch: Batch, port: int = 0) -> Batch:
        answer = process(batch, port)
        join.migrate(turns[next(calls) % len(turns)])
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "process", changing)
        check(expression, sources, push_all(join, sources, data.draw(CUTS)))


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(list(EXPRESSIONS)), data=st.data())
def test_insertions_and_deletions_can_be_emitted_alone(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    sources = data.draw(sources_of(expression))
    cuts = data.draw(CUTS)
    both = list_rows(push_all(join_of(expression, sources), sources, cuts))
    insertions = list_rows(push_all(join_of(expression, sources, emit="insertions"), sources, cuts))
    deletions = list_rows(push_all(join_of(expression, sources, emit="deletions"), sources, cuts))
    assert insertions == [row for row in both if row[1] > 0]
    assert deletions == [row for row in both if row[1] < 0]


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(list(EXPRESSIONS)), data=st.data())
def test_hash_collisions_do_not_change_results(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    sources = data.draw(sources_of(expression))

    def folded(columns: Sequence[Column]) -> NDArray[np.uint64]:
        return np.ones(len(columns[0]), dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dsms.operators.joins.state.key_codes._hash_columns", folded)
        check(expression, sources, push_all(join_of(expression, sources), sources, data.draw(CUTS)))


def bids(*rows: tuple[int, int], alias: str = "r", window: Window | None = UNBOUNDED) -> ModelInput:
    """Make an input of (timestamp, key) rows."""
    return ModelInput(alias, {"k": "int64"}, window, {"k": "k"}, [InputChange(ts, (key,)) for ts, key in rows])


PAIR = JoinTerm(StreamTerm("r", "k"), StreamTerm("s", "k"), "k")


def test_a_pair_is_inserted_with_its_later_row_and_deleted_with_the_first_deletion() -> None:
    sources = [bids((1, 7), window=Window("range", 5)), bids((4, 7), alias="s", window=Window("range", 9))]
    assert list_rows(push_all(join_of(PAIR, sources), sources, [])) == [(4, 1, ("7", "7")), (7, -1, ("7", "7"))]


def test_a_result_arrives_with_the_last_row_it_needs() -> None:
    sources = [bids((1, 7)), bids((2, 7), alias="s")]
    join = join_of(PAIR, sources)
    join.process(make_batch(sources[0], sources[0].changes, arrived=5.0, watermark=3), 0)
    answer = join.process(make_batch(sources[1], sources[1].changes, arrived=4.0, watermark=3), 1)
    assert (answer.each("arrived").tolist(), answer.watermark, answer.ended) == ([5.0], 3, False)


def test_a_watermark_alone_retracts_results() -> None:
    sources = [bids((1, 7), window=Window("range", 5)), bids((2, 7), alias="s")]
    join = join_of(PAIR, sources)
    for port, source in enumerate(sources):
        join.process(make_batch(source, source.changes, watermark=3), port)
    assert join.deadline() == 7
    join.process(Batch(watermark=8, arrived=3.0), 0)
    answer = join.process(Batch(watermark=8, arrived=4.0), 1)
    assert list_rows([answer]) == [(7, -1, ("7", "7"))]
    assert answer.each("arrived").tolist() == [4.0]
    assert join.deadline() is None


def test_a_join_that_emits_only_insertions_has_no_deadline() -> None:
    sources = [bids((1, 7), window=Window("range", 5)), bids((2, 7), alias="s")]
    join = join_of(PAIR, sources, emit="insertions")
    push_all(join, sources, [])
    assert join.deadline() is None


def test_a_retraction_of_a_missing_row_is_a_dead_letter() -> None:
    sources = [bids((1, 7), window=None), bids((0, 7), alias="s")]
    sources[0].changes = [
        InputChange(0, (7,), -1),
        InputChange(1, (7,)),
        InputChange(2, (7,), -1),
        InputChange(2, (7,), -1),
    ]
    join = join_of(PAIR, sources)
    assert list_rows(push_all(join, sources, [])) == [(1, 1, ("7", "7")), (2, -1, ("7", "7"))]
    assert [(letter.kind, len(letter.batch)) for letter in join.dead_letters] == [("error", 2)]


def test_a_fresh_copy_is_empty() -> None:
    sources = [bids((1, 7)), bids((2, 7), alias="s")]
    join = join_of(PAIR, sources)
    push_all(join, sources, [])
    fresh = join.fresh(Settings())
    assert (join.held, fresh.held) == (2, 0)
    assert list_rows(push_all(fresh, sources, [])) == [(2, 1, ("7", "7"))]


@pytest.mark.parametrize("windows", [("range", None), (None, None), ("rows", "range")])
def test_the_rows_held_are_bounded(windows: tuple[str | None, str | None]) -> None:
    """Forty thousand rows pass through windows of some hundred rows."""
    sources = [
        ModelInput(alias, {"k": "int64"}, Window(kind, 100) if kind in ("rows", "range") else None, {"k": "k"})
        for alias, kind in zip("rs", windows, strict=True)
    ]
    join = join_of(PAIR, sources)
    most = 0
    for start in range(0, 20_000, 200):
        for port, source in enumerate(sources):
            changes = [InputChange(ts, (ts % 1000,)) for ts in range(start, start + 200)]
            if source.window is None:
                old = [InputChange(ts + 100, (ts % 1000,), -1) for ts in range(start - 100, start + 100) if ts >= 0]
                changes = sorted([*changes, *old], key=lambda change: (change.ts, change.sign))
            join.process(make_batch(source, changes, watermark=start + 200), port)
        most = max(most, join.held)
    assert most < 5000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": ("r.x",)}, "no column 'r.x' in the results of"),
        ({"expression": JoinTerm(StreamTerm("r", "k"), StreamTerm("t", "k"), "k")}, "do not match the streams of"),
        (
            {"expression": JoinTerm(StreamTerm("r", "kx"), StreamTerm("s", "k"), "k")},
            "'r' has no column for attribute 'x'",
        ),
    ],
)
def test_an_invalid_join_is_refused_and_lists_what_exists(change: dict[str, Any], message: str) -> None:
    sources = [bids((1, 7)), bids((2, 7), alias="s")]
    given_ = {"inputs": tuple(source.input for source in sources), "expression": PAIR, "columns": ("r.k",)}
    with pytest.raises(PlanError, match=re.escape(message)):
        MultiJoin(**{**given_, **change})
