"""Joins and differences over windows, against what a query means worked out anew at every instant."""

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
from join_model import Change, Source, batch_of, contents, expected, pushed, told
from numpy.typing import NDArray

from dsms.algebra import Window
from dsms.batch import Batch, Column
from dsms.dataflow import Difference, Expression, Join, Plan, Stream, intermediates, plans
from dsms.dataflow.translate import NotStoredError
from dsms.errors import PlanError
from dsms.joins import MultiJoin
from dsms.settings import Settings

UNBOUNDED = Window("unbounded")
WINDOWS = [Window("range", 4), Window("range", 0), Window("rows", 2), Window("rows", 1), Window("unbounded"), None]
R, S, T = Stream("r", "ab"), Stream("s", "bc"), Stream("t", "ac")
RS = Join(R, S, "b")
EXPRESSIONS: dict[str, Expression] = {
    "r join s": RS,
    "r join s join t": Join(RS, T, "ac"),
    "r - s": Difference(R, S, "b"),
    "(r join s) - t": Difference(RS, Stream("t", "cd"), "c"),
    "(r - s) join t": Join(Difference(R, S, "b"), Stream("t", "ad"), "a"),
    "r - (s join t)": Difference(Stream("r", "abd"), Join(S, Stream("t", "cd"), "c"), "bd"),
    "(r - s) - t": Difference(Difference(R, S, "b"), Stream("t", "ad"), "a"),
    "r - (s - t)": Difference(R, Difference(S, Stream("t", "cd"), "c"), "b"),
    "r cross s": Join(Stream("r", "*"), Stream("s", "*"), "*"),
}
FOUR = Join(RS, Join(Stream("t", "cd"), Stream("u", "de"), "d"), "c")


def leaves(expression: Expression) -> list[Stream]:
    if isinstance(expression, Stream):
        return [expression]
    return [*leaves(expression.left), *leaves(expression.right)]


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(0, 2) | st.sampled_from([None, -1, 2**40]),
    "string": st.sampled_from(["", "a", "b", None]),
    "float64": st.sampled_from([0.0, -0.0, 1.0, float("nan"), None]),
    "bool": st.booleans(),
}


@st.composite
def relation_changes(draw: st.DrawFn, row: st.SearchStrategy[tuple[Any, ...]]) -> list[Change]:
    """Rows that come and go so that nothing goes that is not there."""
    living: list[tuple[Any, ...]] = []
    found: list[Change] = []
    for ts in sorted(draw(st.sets(st.integers(0, 12), max_size=6))):
        count = draw(st.integers(0, min(2, len(living))))
        for place in draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)):
            found += [Change(ts, living.pop(place % len(living)), -1)]
        new = draw(st.lists(row, max_size=3))
        living += new
        found += [Change(ts, one) for one in new]
    return found


@st.composite
def sources_of(draw: st.DrawFn, expression: Expression, windows: Sequence[Window | None] = WINDOWS) -> list[Source]:
    """An input for each stream of an expression, with rows."""
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
            changes = [Change(ts, draw(row)) for ts in sorted(draw(st.lists(st.integers(0, 12), max_size=8)))]
        found.append(Source(stream.name, types, None if stored else window, attributes, changes, stored))
    return found


CUTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=20)


def columns_of(expression: Expression, sources: Sequence[Source]) -> tuple[str, ...]:
    shown = leaves(expression.left) if isinstance(expression, Difference) else leaves(expression)
    taking = {leaf.name for leaf in leaves(expression) if leaf.name not in _shown(expression)}
    names = [stream.name for stream in shown if stream.name not in taking]
    return tuple(f"{s.alias}.{column}" for s in sources if s.alias in names for column in s.types)


def _shown(expression: Expression) -> list[str]:
    if isinstance(expression, Stream):
        return [expression.name]
    right = [] if isinstance(expression, Difference) else _shown(expression.right)
    return [*_shown(expression.left), *right]


def join_of(expression: Expression, sources: Sequence[Source], **options: Any) -> MultiJoin:
    inputs = tuple(source.input for source in sources)
    return MultiJoin(inputs=inputs, expression=expression, columns=columns_of(expression, sources), **options)


def check(expression: Expression, sources: Sequence[Source], answers: Sequence[Any]) -> None:
    rows = told(answers)
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    by_alias = {source.alias: source for source in sources}
    for now in range(20):
        assert contents(rows, now) == expected(expression, by_alias, columns_of(expression, sources), now), now


@pytest.mark.parametrize("name", EXPRESSIONS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_put_out_adds_up_to_what_the_expression_holds_at_every_instant(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    sources = data.draw(sources_of(expression))
    if all(source.stored for source in sources):
        return
    join = join_of(expression, sources)
    check(expression, sources, pushed(join, sources, data.draw(CUTS)))
    assert join.asides == []


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(list(EXPRESSIONS)), data=st.data())
def test_any_cutting_into_batches_gives_the_same_rows_in_the_same_order(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    sources = data.draw(sources_of(expression))
    whole = told(pushed(join_of(expression, sources), sources, []))
    assert told(pushed(join_of(expression, sources), sources, data.draw(CUTS))) == whole


def plans_of(expression: Expression) -> list[Plan]:
    """Every choice of results to store and of orders."""
    inside = intermediates(expression)
    found: list[Plan] = []
    for stored in chain.from_iterable(combinations(inside, n) for n in range(len(inside) + 1)):
        with contextlib.suppress(NotStoredError):
            found += plans(expression, stored)
    return found


PLANS = {name: plans_of(expression) for name, expression in {**EXPRESSIONS, "four": FOUR}.items()}


@pytest.mark.parametrize("name", [name for name in PLANS if len(PLANS[name]) > 1])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_order_and_every_choice_of_intermediate_windows_gives_the_same(name: str, data: st.DataObject) -> None:
    expression = {**EXPRESSIONS, "four": FOUR}[name]
    sources = data.draw(sources_of(expression))
    with pytest.MonkeyPatch.context() as patch:
        for module in ("buffer", "mortal", "results"):  # so that rows that have gone are let go at once
            patch.setattr(f"dsms.joins.{module}.LEAST", 0)
        join = join_of(expression, sources)
        join.follow(data.draw(st.sampled_from(PLANS[name])))
        check(expression, sources, pushed(join, sources, data.draw(CUTS)))


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from([name for name in PLANS if len(PLANS[name]) > 1]), data=st.data())
def test_a_plan_may_be_changed_at_any_time(name: str, data: st.DataObject) -> None:
    expression = {**EXPRESSIONS, "four": FOUR}[name]
    sources = data.draw(sources_of(expression))
    join = join_of(expression, sources)
    turns = data.draw(st.lists(st.sampled_from(PLANS[name]), min_size=1, max_size=4))
    process, calls = join.process, iter(range(1000))

    def changing(batch: Batch, port: int = 0) -> Batch:
        answer = process(batch, port)
        join.follow(turns[next(calls) % len(turns)])
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "process", changing)
        check(expression, sources, pushed(join, sources, data.draw(CUTS)))


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(list(EXPRESSIONS)), data=st.data())
def test_what_comes_and_what_goes_can_be_had_alone(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    sources = data.draw(sources_of(expression))
    cuts = data.draw(CUTS)
    both = told(pushed(join_of(expression, sources), sources, cuts))
    births = told(pushed(join_of(expression, sources, emit="births"), sources, cuts))
    deaths = told(pushed(join_of(expression, sources, emit="deaths"), sources, cuts))
    assert births == [row for row in both if row[1] > 0]
    assert deaths == [row for row in both if row[1] < 0]


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(list(EXPRESSIONS)), data=st.data())
def test_codes_that_collide_change_nothing(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    sources = data.draw(sources_of(expression))

    def folded(columns: Sequence[Column]) -> NDArray[np.uint64]:
        return np.ones(len(columns[0]), dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dsms.joins.keys._folded", folded)
        check(expression, sources, pushed(join_of(expression, sources), sources, data.draw(CUTS)))


def bids(*rows: tuple[int, int], alias: str = "r", window: Window | None = UNBOUNDED) -> Source:
    """Rows of a key at a time."""
    return Source(alias, {"k": "int64"}, window, {"k": "k"}, [Change(ts, (key,)) for ts, key in rows])


PAIR = Join(Stream("r", "k"), Stream("s", "k"), "k")


def test_a_pair_comes_when_its_later_row_does_and_goes_with_the_first_to_go() -> None:
    sources = [bids((1, 7), window=Window("range", 5)), bids((4, 7), alias="s", window=Window("range", 9))]
    assert told(pushed(join_of(PAIR, sources), sources, [])) == [(4, 1, ("7", "7")), (7, -1, ("7", "7"))]


def test_a_row_arrives_with_the_last_row_it_needs() -> None:
    sources = [bids((1, 7)), bids((2, 7), alias="s")]
    join = join_of(PAIR, sources)
    join.process(batch_of(sources[0], sources[0].changes, arrived=5.0, upto=3), 0)
    answer = join.process(batch_of(sources[1], sources[1].changes, arrived=4.0, upto=3), 1)
    assert (answer.each("arrived").tolist(), answer.upto, answer.ended) == ([5.0], 3, False)


def test_time_alone_takes_results_back() -> None:
    sources = [bids((1, 7), window=Window("range", 5)), bids((2, 7), alias="s")]
    join = join_of(PAIR, sources)
    for port, source in enumerate(sources):
        join.process(batch_of(source, source.changes, upto=3), port)
    assert join.deadline() == 7
    join.process(Batch(upto=8, arrived=3.0), 0)
    answer = join.process(Batch(upto=8, arrived=4.0), 1)
    assert told([answer]) == [(7, -1, ("7", "7"))]
    assert answer.each("arrived").tolist() == [4.0]
    assert join.deadline() is None


def test_no_deadline_where_nobody_asks_what_goes() -> None:
    sources = [bids((1, 7), window=Window("range", 5)), bids((2, 7), alias="s")]
    join = join_of(PAIR, sources, emit="births")
    pushed(join, sources, [])
    assert join.deadline() is None


def test_what_is_taken_back_but_is_not_there_is_set_aside() -> None:
    sources = [bids((1, 7), window=None), bids((0, 7), alias="s")]
    sources[0].changes = [Change(0, (7,), -1), Change(1, (7,)), Change(2, (7,), -1), Change(2, (7,), -1)]
    join = join_of(PAIR, sources)
    assert told(pushed(join, sources, [])) == [(1, 1, ("7", "7")), (2, -1, ("7", "7"))]
    assert [(aside.kind, len(aside.batch)) for aside in join.asides] == [("error", 2)]


def test_a_fresh_copy_knows_nothing() -> None:
    sources = [bids((1, 7)), bids((2, 7), alias="s")]
    join = join_of(PAIR, sources)
    pushed(join, sources, [])
    fresh = join.fresh(Settings())
    assert (join.held, fresh.held) == (2, 0)
    assert told(pushed(fresh, sources, [])) == [(2, 1, ("7", "7"))]


@pytest.mark.parametrize("windows", [("range", None), (None, None), ("rows", "range")])
def test_what_is_held_is_bounded(windows: tuple[str | None, str | None]) -> None:
    """Forty thousand rows pass; some hundred are there at a time."""
    sources = [
        Source(alias, {"k": "int64"}, Window(kind, 100) if kind in ("rows", "range") else None, {"k": "k"})
        for alias, kind in zip("rs", windows, strict=True)
    ]
    join = join_of(PAIR, sources)
    most = 0
    for start in range(0, 20_000, 200):
        for port, source in enumerate(sources):
            changes = [Change(ts, (ts % 1000,)) for ts in range(start, start + 200)]
            if source.window is None:
                old = [Change(ts + 100, (ts % 1000,), -1) for ts in range(start - 100, start + 100) if ts >= 0]
                changes = sorted([*changes, *old], key=lambda change: (change.ts, change.sign))
            join.process(batch_of(source, changes, upto=start + 200), port)
        most = max(most, join.held)
    assert most < 5000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": ("r.x",)}, "no column 'r.x' in the results of"),
        ({"expression": Join(Stream("r", "k"), Stream("t", "k"), "k")}, "are not the streams of"),
        ({"expression": Join(Stream("r", "kx"), Stream("s", "k"), "k")}, "'r' has no column for attribute 'x'"),
    ],
)
def test_a_join_that_cannot_be_is_refused_with_what_there_is(change: dict[str, Any], message: str) -> None:
    sources = [bids((1, 7)), bids((2, 7), alias="s")]
    given_ = {"inputs": tuple(source.input for source in sources), "expression": PAIR, "columns": ("r.k",)}
    with pytest.raises(PlanError, match=re.escape(message)):
        MultiJoin(**{**given_, **change})
