"""Joins that work ahead of time: the same in the end, and with k rows ahead the same as in order now and then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from join_model import END, Change, Source, batch_of, contents, pushed, told

from dsms.algebra import Window
from dsms.batch import Batch
from dsms.dataflow import Difference, Expression, Join, Stream
from dsms.errors import PlanError
from dsms.joins import MultiJoin
from dsms.joins.ahead import Ahead

R, S, T = Stream("r", "ab"), Stream("s", "bc"), Stream("t", "ac")
PURE: dict[str, Expression] = {"two": Join(R, S, "b"), "three": Join(Join(R, S, "b"), T, "ac")}
WINDOWS = [Window("range", 4), Window("range", 0), Window("unbounded")]
CUTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.booleans()), max_size=20)
KEYS = st.integers(0, 1)


@st.composite
def sources_of(draw: st.DrawFn, expression: Expression) -> list[Source]:
    found = []
    for name in expression.streams:
        keys = {"r": "ab", "s": "bc", "t": "ac"}[name]
        changes = [Change(ts, draw(st.tuples(KEYS, KEYS))) for ts in sorted(draw(st.lists(st.integers(0, 12))))]
        window = draw(st.sampled_from(WINDOWS))
        found.append(Source(name, dict.fromkeys(keys, "int64"), window, {key: key for key in keys}, changes))
    return found


def join_of(expression: Expression, sources: Sequence[Source], **options: Any) -> MultiJoin:
    columns = tuple(f"{source.alias}.{column}" for source in sources for column in source.types)
    return MultiJoin(inputs=tuple(s.input for s in sources), expression=expression, columns=columns, **options)


@pytest.mark.parametrize("name", PURE)
@settings(max_examples=60, deadline=None)
@given(ahead=st.sampled_from([1, 3, 10, math.inf]), data=st.data())
def test_rows_worked_on_ahead_give_the_same_rows_in_the_end(name: str, ahead: float, data: st.DataObject) -> None:
    sources = data.draw(sources_of(PURE[name]))
    cuts = data.draw(CUTS)
    in_order = told(pushed(join_of(PURE[name], sources), sources, cuts))
    ahead_of_time = told(pushed(join_of(PURE[name], sources, ahead=ahead), sources, cuts))
    assert sorted(ahead_of_time) == sorted(in_order)


def agreements(sources: Sequence[Source], ahead: float) -> tuple[list[int], bool]:
    """How many rows had come in at each point where both agree by their own word, and whether they did."""
    expression = PURE["two"]
    early, serial = join_of(expression, sources, ahead=ahead), join_of(expression, sources)
    early_rows: list[Any] = []
    serial_rows: list[Any] = []
    at, right, come = [], True, 0
    for number in range(max(len(source.changes) for source in sources)):
        for port, source in enumerate(sources):
            piece = batch_of(source, source.changes[number : number + 1])
            come += len(piece)
            early_rows += told([early.process(piece, port)])
            serial_rows += told([serial.process(piece, port)])
            if early.synchronised:
                at.append(come)
                right = right and contents(early_rows, END) == contents(serial_rows, END)
    return at, right


SKEWED = [
    Source("r", {"a": "int64", "b": "int64"}, Window("range", 50), {"a": "a", "b": "b"},
           [Change(3 * ts + 9, (0, 0)) for ts in range(40)]),
    Source("s", {"b": "int64", "c": "int64"}, Window("range", 50), {"b": "b", "c": "c"},
           [Change(3 * ts, (0, 0)) for ts in range(40)]),
]  # fmt: skip


def test_with_k_rows_ahead_results_agree_with_the_serial_ones_again_and_again() -> None:
    at, right = agreements(SKEWED, 4)
    assert right
    assert max(later - earlier for earlier, later in pairwise(at)) <= 16


def test_without_the_waiting_they_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """One stream is always ahead of the other, so that some of its rows never are complete."""
    at, _ = agreements(SKEWED, math.inf)
    assert at == []
    monkeypatch.setattr(Ahead, "synchronised", True)
    assert not agreements(SKEWED, math.inf)[1]


def test_a_row_ahead_of_time_meets_older_and_younger_ones_once() -> None:
    sources = [SKEWED[0], SKEWED[1]]
    join = join_of(PURE["two"], sources, ahead=math.inf, emit="births")
    first = join.process(batch_of(sources[0], [Change(5, (1, 7)), Change(90, (2, 7))]), 0)
    second = join.process(batch_of(sources[1], [Change(4, (7, 1)), Change(60, (7, 2))]), 1)
    assert told([first]) == []
    assert told([second]) == [(5, 1, ("1", "7", "7", "1")), (90, 1, ("2", "7", "7", "2"))]
    assert (second.upto, join.held) == (60, 2)


@pytest.mark.parametrize(
    ("window", "expression", "keep", "message"),
    [
        (Window("rows", 3), PURE["two"], None, "'r' is a window of rows"),
        (None, PURE["two"], None, "'r' is a relation that is taken back from"),
        (Window("range", 3), Difference(R, S, "b"), None, "a difference takes back what it let through too soon"),
        (Window("range", 3), PURE["three"], ("rs",), "the windows of ['rs'] would see results in another order"),
    ],
)
def test_what_depends_on_the_order_is_not_worked_on_ahead(
    window: Window | None, expression: Expression, keep: tuple[str, ...] | None, message: str
) -> None:
    windows = {"r": window, "s": Window(), "t": Window()}
    columns = {"r": {"a": "a", "b": "b"}, "s": {"b": "b", "c": "c"}, "t": {"a": "a", "c": "c"}}
    sources = [
        Source(name, dict.fromkeys(columns[name], "int64"), windows[name], columns[name]) for name in expression.streams
    ]
    inputs = tuple(source.input for source in sources)
    with pytest.raises(PlanError) as error:
        MultiJoin(inputs=inputs, expression=expression, columns=("r.a",), keep=keep, ahead=2)
    assert message in str(error.value)


def test_a_batch_of_time_alone_lets_the_waiting_rows_through() -> None:
    join = join_of(PURE["two"], SKEWED, ahead=1)
    join.process(batch_of(SKEWED[0], [Change(5, (1, 7)), Change(6, (2, 7))]), 0)
    join.process(batch_of(SKEWED[1], [Change(5, (7, 1))]), 1)
    assert join.held == 3
    answers = [join.process(Batch(upto=20), port) for port in (0, 1)]
    assert [row[0] for row in told(answers)] == [5, 6]
    assert join.synchronised
