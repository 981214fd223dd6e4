"""Eager joins: the same results in the end, and with k eager rows regularly the same as the serial join."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.queries.join_model import END, InputChange, ModelInput, contents, list_rows, make_batch, push_all

from dsms.algebra import Window
from dsms.data.batch import Batch
from dsms.dataflow import DifferenceTerm, Expression, JoinTerm, StreamTerm
from dsms.errors import PlanError
from dsms.operators.joins import MultiJoin
from dsms.operators.joins.eager import EagerBarrier

R, S, T = StreamTerm("r", "ab"), StreamTerm("s", "bc"), StreamTerm("t", "ac")
PURE: dict[str, Expression] = {"two": JoinTerm(R, S, "b"), "three": JoinTerm(JoinTerm(R, S, "b"), T, "ac")}
WINDOWS = [Window("range", 4), Window("range", 0), Window("unbounded")]
CUTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.booleans()), max_size=20)
KEYS = st.integers(0, 1)


@st.composite
def sources_of(draw: st.DrawFn, expression: Expression) -> list[ModelInput]:
    found = []
    for name in expression.streams:
        keys = {"r": "ab", "s": "bc", "t": "ac"}[name]
        changes = [InputChange(ts, draw(st.tuples(KEYS, KEYS))) for ts in sorted(draw(st.lists(st.integers(0, 12))))]
        window = draw(st.sampled_from(WINDOWS))
        found.append(ModelInput(name, dict.fromkeys(keys, "int64"), window, {key: key for key in keys}, changes))
    return found


def join_of(expression: Expression, sources: Sequence[ModelInput], **options: Any) -> MultiJoin:
    columns = tuple(f"{source.alias}.{column}" for source in sources for column in source.types)
    return MultiJoin(inputs=tuple(s.input for s in sources), expression=expression, columns=columns, **options)


@pytest.mark.parametrize("name", PURE)
@settings(max_examples=60, deadline=None)
@given(eager_rows=st.sampled_from([1, 3, 10, math.inf]), data=st.data())
def test_an_eager_join_gives_the_same_rows_in_the_end(name: str, eager_rows: float, data: st.DataObject) -> None:
    sources = data.draw(sources_of(PURE[name]))
    cuts = data.draw(CUTS)
    in_order = list_rows(push_all(join_of(PURE[name], sources), sources, cuts))
    eager = list_rows(push_all(join_of(PURE[name], sources, eager_rows=eager_rows), sources, cuts))
    assert sorted(eager) == sorted(in_order)


def agreements(sources: Sequence[ModelInput], eager_rows: float) -> tuple[list[int], bool]:
    """Return the input rows at each point where the join says it is synchronised, and whether both agree there."""
    expression = PURE["two"]
    eager, serial = join_of(expression, sources, eager_rows=eager_rows), join_of(expression, sources)
    eager_results: list[Any] = []
    serial_results: list[Any] = []
    at, right, come = [], True, 0
    for number in range(max(len(source.changes) for source in sources)):
        for port, source in enumerate(sources):
            piece = make_batch(source, source.changes[number : number + 1])
            come += len(piece)
            eager_results += list_rows([eager.process(piece, port)])
            serial_results += list_rows([serial.process(piece, port)])
            if eager.is_synchronised:
                at.append(come)
                right = right and contents(eager_results, END) == contents(serial_results, END)
    return at, right


SKEWED = [
    ModelInput("r", {"a": "int64", "b": "int64"}, Window("range", 50), {"a": "a", "b": "b"},
           [InputChange(3 * ts + 9, (0, 0)) for ts in range(40)]),
    ModelInput("s", {"b": "int64", "c": "int64"}, Window("range", 50), {"b": "b", "c": "c"},
           [InputChange(3 * ts, (0, 0)) for ts in range(40)]),
]  # fmt: skip


def test_with_k_eager_rows_results_regularly_agree_with_the_serial_ones() -> None:
    at, right = agreements(SKEWED, 4)
    assert right
    assert max(later - earlier for earlier, later in pairwise(at)) <= 16


def test_without_waiting_they_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """One stream is always ahead of the other, so some of its rows are never complete."""
    at, _ = agreements(SKEWED, math.inf)
    assert at == []
    monkeypatch.setattr(EagerBarrier, "is_synchronised", True)
    assert not agreements(SKEWED, math.inf)[1]


def test_an_eager_row_joins_older_and_younger_rows_once() -> None:
    sources = [SKEWED[0], SKEWED[1]]
    join = join_of(PURE["two"], sources, eager_rows=math.inf, emit="insertions")
    first = join.process(make_batch(sources[0], [InputChange(5, (1, 7)), InputChange(90, (2, 7))]), 0)
    second = join.process(make_batch(sources[1], [InputChange(4, (7, 1)), InputChange(60, (7, 2))]), 1)
    assert list_rows([first]) == []
    assert list_rows([second]) == [(5, 1, ("1", "7", "7", "1")), (90, 1, ("2", "7", "7", "2"))]
    assert (second.watermark, join.held) == (60, 2)


@pytest.mark.parametrize(
    ("window", "expression", "keep", "message"),
    [
        (Window("rows", 3), PURE["two"], None, "'r' is a window of rows"),
        (None, PURE["two"], None, "'r' is a relation with retractions"),
        (Window("range", 3), DifferenceTerm(R, S, "b"), None, "a difference retracts results that it emitted"),
        (Window("range", 3), PURE["three"], ("rs",), "the windows of ['rs'] would receive results in another order"),
    ],
)
def test_a_join_that_depends_on_the_order_cannot_run_eagerly(
    window: Window | None, expression: Expression, keep: tuple[str, ...] | None, message: str
) -> None:
    windows = {"r": window, "s": Window(), "t": Window()}
    columns = {"r": {"a": "a", "b": "b"}, "s": {"b": "b", "c": "c"}, "t": {"a": "a", "c": "c"}}
    sources = [
        ModelInput(name, dict.fromkeys(columns[name], "int64"), windows[name], columns[name])
        for name in expression.streams
    ]
    inputs = tuple(source.input for source in sources)
    with pytest.raises(PlanError) as error:
        MultiJoin(inputs=inputs, expression=expression, columns=("r.a",), keep=keep, eager_rows=2)
    assert message in str(error.value)


def test_a_watermark_alone_releases_the_waiting_rows() -> None:
    join = join_of(PURE["two"], SKEWED, eager_rows=1)
    join.process(make_batch(SKEWED[0], [InputChange(5, (1, 7)), InputChange(6, (2, 7))]), 0)
    join.process(make_batch(SKEWED[1], [InputChange(5, (7, 1))]), 1)
    assert join.held == 3
    answers = [join.process(Batch(watermark=20), port) for port in (0, 1)]
    assert [row[0] for row in list_rows(answers)] == [5, 6]
    assert join.is_synchronised
