"""The fused operator: filters and projections in one pass."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.queries.naive_expressions import call
from support.strategies import DETERMINISTIC, EXAMPLES

from dsms.config.run import Settings
from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.schema import DTYPES, Schema
from dsms.errors import PlanError, RowError
from dsms.expressions.functions import UserFunction
from dsms.expressions.tree import Column, Expression, Literal
from dsms.operators.fused import FilterStep, FusedOperator, ProjectStep

SCHEMA = Schema.of({"a": "int64", "b": "int64", "s": "string"})
A, B, S = map(Column, SCHEMA)


def batch(rows: list[tuple[Any, ...]], schema: Schema = SCHEMA, **attributes: Any) -> Batch:
    """A batch of these rows, None as null."""
    columns = {}
    for place, (name, kind) in enumerate(schema.fields):
        given = [row[place] for row in rows]
        empty = "" if kind == "string" else 0
        columns[name] = np.array([empty if value is None else value for value in given], dtype=DTYPES[kind])
        if None in given:
            columns[name + NULLS_SUFFIX] = np.array([value is None for value in given])
    return Batch.of(columns, rows=len(rows), **attributes)


def fused(*steps: FilterStep | ProjectStep, **options: Any) -> FusedOperator:
    return FusedOperator(schema=SCHEMA, steps=steps, **options)


def rows(batch: Batch) -> list[tuple[Any, ...]]:
    return [tuple(record.values()) for record in batch.records()]


ROWS = [(1, 10, "x"), (2, 20, "y"), (3, 30, "z"), (4, 40, "x")]


def test_a_row_is_kept_if_every_condition_holds() -> None:
    kept = fused(FilterStep(call(">", A, 1)), FilterStep(call("<", B, 40))).process(batch(ROWS))
    assert rows(kept) == [(2, 20, "y"), (3, 30, "z")]


def test_a_row_is_not_kept_if_a_condition_is_unknown() -> None:
    nulls = [(1, None, "x"), (None, 20, "y"), (3, 30, None)]
    assert rows(fused(FilterStep(call(">", A, 0))).process(batch(nulls))) == [(1, None, "x"), (3, 30, None)]
    assert rows(fused(FilterStep(Literal(None))).process(batch(nulls))) == []


def test_new_columns_replace_the_old_ones() -> None:
    made = fused(ProjectStep((("s", S), ("double", call("*", A, 2)), ("one", Literal(1)))))
    assert made.process(batch(ROWS)).records()[1] == {"s": "y", "double": 4, "one": 1}
    assert made.output == Schema.of({"s": "string", "double": "int64", "one": "int64"})


def test_conditions_after_a_projection_read_the_new_columns() -> None:
    steps = (
        FilterStep(call(">", A, 1)),
        ProjectStep((("c", call("+", A, B)), ("s", S))),
        FilterStep(call(">", Column("c"), 22)),
    )
    assert rows(fused(*steps, ProjectStep((("t", S),))).process(batch(ROWS))) == [("z",), ("x",)]


def test_null_masks_follow_their_columns() -> None:
    nulls = batch([(1, None, "x"), (2, 20, None), (3, 30, "z")])
    renamed = fused(ProjectStep((("x", B), ("y", S))))
    assert rows(renamed.process(nulls)) == [(None, "x"), (20, None), (30, "z")]
    made = fused(FilterStep(call("<", A, 3)), ProjectStep((("x", call("+", B, 1)), ("y", S))))
    assert rows(made.process(nulls)) == [(None, "x"), (21, None)]


def test_row_attributes_stay_with_their_rows() -> None:
    given = batch(
        ROWS, ts=[1, 2, 3, 4], sign=[1, -1, 1, -1], arrived=[0.1, 0.2, 0.3, 0.4], seq=7, watermark=9, ended=True
    )
    kept = fused(FilterStep(call("=", S, "x")), ProjectStep((("c", call("+", A, 0)),))).process(given)
    assert rows(kept) == [(1,), (4,)]
    assert (kept.each("ts").tolist(), kept.each("sign").tolist()) == ([1, 4], [1, -1])
    assert (kept.each("arrived").tolist(), kept.seq, kept.watermark, kept.ended) == ([0.1, 0.4], 7, 9, True)


def test_a_batch_with_all_rows_filtered_out_still_advances_time() -> None:
    steps = FilterStep(call(">", A, 9)), ProjectStep((("c", call("/", A, 0)),))
    for rows_in in (batch(ROWS, ts=[1, 2, 3, 4], watermark=9, ended=True), Batch(watermark=9, ended=True)):
        out = fused(*steps).process(rows_in)
        assert (len(out), out.watermark, out.ended) == (0, 9, True)
    assert fused(*steps).process(batch(ROWS, ts=[1, 2, 3, 4])).watermark == 4  # of the last row, filtered out or not


def test_nothing_is_copied_if_everything_passes() -> None:
    given = batch(ROWS, ts=[1, 2, 3, 4])
    assert fused(FilterStep(call(">", A, 0)), FilterStep(call(">", B, 0))).process(given) is given
    renamed = fused(FilterStep(call(">", A, 0)), ProjectStep((("x", B),))).process(given)
    assert renamed.columns["x"] is given.columns["b"]
    mixed = fused(ProjectStep((("x", B), ("y", call("*", A, 1.5))))).process(given)
    assert mixed.columns["x"] is given.columns["b"]
    assert mixed.ts is given.ts


def test_a_bad_row_ends_the_run_and_is_shown() -> None:
    failing = fused(FilterStep(call(">", B, 10)), FilterStep(call(">", call("/", 10, call("-", A, 3)), 0)))
    with pytest.raises(RowError) as error:
        failing.process(batch(ROWS))
    assert str(error.value) == ("division by zero in (10 / (a - 3)) > 0; the row is {'a': 3, 'b': 30, 's': 'z'}")


def test_bad_rows_become_dead_letters_unchanged_and_no_other_row_is_lost() -> None:
    steps = (
        FilterStep(call(">", A, 1)),
        ProjectStep((("c", call("/", B, call("-", A, 2))), ("d", call("/", 6, call("-", A, 3))))),
    )
    careful = fused(*steps, on_error="dead-letter")
    assert rows(careful.process(batch(ROWS, ts=[1, 2, 3, 4]))) == [(20.0, 6.0)]
    assert [(letter.kind, rows(letter.batch), letter.batch.each("ts").tolist()) for letter in careful.dead_letters] == [
        ("error", [(2, 20, "y")], [2]),
        ("error", [(3, 30, "z")], [3]),
    ]
    assert [letter.reason for letter in careful.dead_letters] == [
        "division by zero in b / (a - 2)",
        "division by zero in 6 / (a - 3)",
    ]


def test_a_row_with_two_errors_is_rejected_once() -> None:
    made = ProjectStep((("c", call("+", call("/", 1, A), call("sqrt", B))), ("d", call("/", 2, A))))
    careful = fused(made, on_error="dead-letter")
    assert rows(careful.process(batch([(0, -1, "x"), (1, -1, "y"), (1, 1, "z")]))) == [(2.0, 2.0)]
    assert [rows(letter.batch) for letter in careful.dead_letters] == [[(0, -1, "x")], [(1, -1, "y")]]


def test_a_fused_operator_can_be_pickled() -> None:
    sent = pickle.loads(pickle.dumps(fused(FilterStep(call(">", A, 2)), ProjectStep((("b", B),)))))
    assert rows(sent.process(batch(ROWS))) == [(30,), (40,)]


def test_a_condition_may_call_a_user_function() -> None:
    functions = {"odd": UserFunction(lambda values: values % 2 == 1, "bool")}
    assert rows(fused(FilterStep(call("odd", A)), functions=functions).process(batch(ROWS))) == [ROWS[0], ROWS[2]]


def test_a_fresh_copy_has_no_dead_letters() -> None:
    careful = fused(FilterStep(call("=", call("/", 1, A), 1)), on_error="dead-letter")
    careful.process(batch([(0, 0, "")]))
    fresh = careful.fresh(Settings())
    assert (len(careful.dead_letters), fresh.dead_letters) == (1, [])
    assert rows(fresh.process(batch(ROWS))) == [ROWS[0]]


@pytest.mark.parametrize(
    ("steps", "options", "message"),
    [
        ((FilterStep(A),), {}, "condition a is int64: it must be bool"),
        ((ProjectStep((("x", Literal(None)),)),), {}, "column 'x' is null in every row: cast it to a type"),
        ((ProjectStep((("x", A),)), FilterStep(call("=", A, 1))), {}, "no column 'a'; there are ['x']"),
        ((), {"on_error": "ignore"}, "on_error: on_error is 'ignore'; there are ['dead-letter', 'fail']"),
    ],
)
def test_invalid_steps_are_refused_with_the_reason(
    steps: tuple[FilterStep | ProjectStep, ...], options: Any, message: str
) -> None:
    with pytest.raises(PlanError) as error:
        fused(*steps, **options)
    assert str(error.value).startswith(message)


VALUES = st.one_of(st.integers(-3, 3), st.none())
CONDITIONS: list[tuple[Expression, Any]] = [
    (call(">", A, 0), lambda a, b: a is not None and a > 0),
    (call("<>", B, 1), lambda a, b: b is not None and b != 1),
    (call("is null", A), lambda a, b: a is None),
    (call("<=", A, B), lambda a, b: a is not None and b is not None and a <= b),
    (call("=", call("//", 6, B), 3), lambda a, b: b is not None and (6 // b if b > 0 else -(6 // -b)) == 3),
]


@settings(DETERMINISTIC, max_examples=EXAMPLES or 150)
@given(st.lists(st.tuples(VALUES, VALUES)), st.lists(st.sampled_from(CONDITIONS), max_size=4), st.integers(0, 4))
def test_fused_steps_equal_a_row_by_row_model(pairs: Any, chosen: Any, place: int) -> None:
    """Columns are renamed and one is computed between the conditions; a zero in b may be an error."""
    swap = ProjectStep((("a", B), ("b", A), ("s", S)))
    back = ProjectStep((("a", B), ("b", A), ("s", S), ("n", call("+", A, 1))))
    keeps = [FilterStep(condition) for condition, _ in chosen]
    steps = (*keeps[:place], swap, back, *keeps[place:])
    given = batch([(a, b, str(row)) for row, (a, b) in enumerate(pairs)], ts=np.arange(len(pairs)))
    careful = fused(*steps, on_error="dead-letter")
    out = careful.process(given)
    expected, faulty = [], []
    for row, (a, b) in enumerate(pairs):
        try:
            if all(holds(a, b) for _, holds in chosen):
                expected.append((a, b, str(row), None if b is None else b + 1))
        except ZeroDivisionError:
            faulty.append((a, b, str(row)))
    assert rows(out) == expected
    assert [int(row[2]) for row in rows(out)] == out.each("ts").tolist()
    assert (
        sorted((row for letter in careful.dead_letters for row in rows(letter.batch)), key=lambda row: int(row[2]))
        == faulty
    )
