"""The window operator: which rows enter and leave a window, and at which instants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.queries.streams import cuts, list_rows, make_batch, run_operator, whole

from dsms.algebra import Window
from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.errors import PlanError
from dsms.operators.window import WindowOperator

RANGE = Window("range", 10)


def insertions(*ts):
    return [(instant, 1, number) for number, instant in enumerate(ts)]


def run_window(window, *ts, watermark):
    return run_operator(WindowOperator(window=window), whole(insertions(*ts), watermark))


def test_a_row_stays_until_its_timestamp_plus_the_length():
    assert run_window(RANGE, 0, 5, 11, watermark=17) == [(0, 1, 0), (5, 1, 1), (11, -1, 0), (11, 1, 2), (16, -1, 1)]


def test_a_window_of_length_zero_holds_the_current_instant():
    assert run_window(Window("range", 0), 1, 1, watermark=3) == [(1, 1, 0), (1, 1, 1), (2, -1, 0), (2, -1, 1)]


def test_rows_due_at_the_end_do_not_leave():
    assert run_window(RANGE, 0, watermark=11) == [(0, 1, 0)]


def test_a_watermark_alone_expires_rows_at_the_deadline():
    operator = WindowOperator(window=RANGE)
    assert operator.deadline() is None
    assert list_rows(operator.process(make_batch((0, 1, 7), (4, 1, 8), watermark=5))) == [(0, 1, 7), (4, 1, 8)]
    assert operator.deadline() == 11
    assert list_rows(operator.process(make_batch(watermark=11, arrived=2.5))) == []
    late = operator.process(make_batch(watermark=12, arrived=3.5, seq=9))
    assert (list_rows(late), late.watermark, late.arrived, late.seq) == ([(11, -1, 7)], 12, 3.5, 9)
    assert (operator.deadline(), operator.held) == (15, 1)


def test_a_waiting_row_counts_for_the_deadline():
    operator = WindowOperator(window=RANGE)
    assert list_rows(operator.process(make_batch((3, 1, 7)))) == []
    assert (operator.deadline(), operator.held) == (14, 1)


def test_in_a_window_of_rows_new_rows_evict_old_ones():
    assert run_window(Window("rows", 2), 1, 2, 3, 5, watermark=9) == [
        (1, 1, 0), (2, 1, 1), (3, -1, 0), (3, 1, 2), (5, -1, 1), (5, 1, 3),
    ]  # fmt: skip


def test_a_row_evicted_at_its_own_instant_is_never_emitted():
    assert run_window(Window("rows", 2), 1, 4, 4, 4, watermark=9) == [(1, 1, 0), (4, -1, 0), (4, 1, 2), (4, 1, 3)]
    assert run_window(Window("rows", 0), 1, 1, 2, watermark=9) == []


def test_an_evicted_row_has_the_arrival_of_the_evicting_row():
    operator = WindowOperator(window=Window("rows", 1))
    assert operator.process(make_batch((1, 1, 7), (2, 1, 8), watermark=3, arrived=[1.0, 2.0])).arrived.tolist() == [
        1,
        2,
        2,
    ]
    assert operator.deadline() is None


def test_an_unbounded_window_passes_rows_on():
    given_rows = make_batch((1, 1, 7), (2, 1, 8))
    operator = WindowOperator(window=Window())
    assert operator.process(given_rows) is given_rows
    assert (operator.held, operator.deadline()) == (0, None)


def test_a_tumbling_window_emits_the_rows_before_each_boundary():
    assert run_window(Window("range", 10, 10), 0, 9, 10, watermark=25) == [
        (10, 1, 0), (10, 1, 1), (20, -1, 0), (20, -1, 1), (20, 1, 2), (30, -1, 2),
    ]  # fmt: skip


def test_a_hopping_window_does_not_emit_the_rows_that_stay():
    assert run_window(Window("range", 10, 5), -3, 2, watermark=11) == [(0, 1, 0), (5, 1, 1), (10, -1, 0), (15, -1, 1)]


def test_a_slide_longer_than_the_window_samples():
    assert run_window(Window("range", 2, 10), 7, 8, 9, 10, watermark=21) == [
        (10, 1, 1),
        (10, 1, 2),
        (20, -1, 1),
        (20, -1, 2),
    ]


def test_a_window_of_rows_with_slide_changes_only_at_multiples_of_it():
    tumbling, hopping, sampling = Window("rows", 2, 2), Window("rows", 3, 2), Window("rows", 1, 3)
    assert run_window(tumbling, 1, 2, 3, 5, watermark=9) == [
        (2, 1, 0), (2, 1, 1), (5, -1, 0), (5, -1, 1), (5, 1, 2), (5, 1, 3),
    ]  # fmt: skip
    assert run_window(hopping, 1, 2, 3, 5, watermark=9) == [(2, 1, 0), (2, 1, 1), (5, -1, 0), (5, 1, 2), (5, 1, 3)]
    assert run_window(sampling, 1, 2, 3, 4, 5, 6, 7, watermark=9) == [(3, 1, 2), (6, -1, 2), (6, 1, 5), (9, -1, 5)]


def test_the_end_emits_the_last_rows_of_a_window_of_rows_with_slide():
    assert run_window(Window("rows", 2, 2), 1, 2, 3, watermark=9) == [
        (2, 1, 0),
        (2, 1, 1),
        (9, -1, 0),
        (9, -1, 1),
        (9, 1, 2),
    ]


def test_rows_between_two_windows_are_not_held():
    operator = WindowOperator(window=Window("range", 2, 10))
    operator.process(make_batch((1, 1, 7), (2, 1, 7), watermark=3))
    assert (operator.held, operator.deadline()) == (0, None)
    operator.process(make_batch((5, 1, 7), (9, 1, 8), watermark=9))
    assert (operator.held, operator.deadline()) == (1, 10)


def test_a_boundary_is_emitted_when_the_watermark_reaches_it():
    operator = WindowOperator(window=Window("range", 10, 10))
    assert list_rows(operator.process(make_batch((3, 1, 7), watermark=9))) == []
    assert operator.deadline() == 10
    shown = operator.process(make_batch(watermark=10))
    assert (list_rows(shown), shown.watermark) == ([(10, 1, 7)], 11)
    assert (operator.deadline(), operator.held) == (20, 1)


def test_the_end_advances_to_the_boundary_that_emits_the_last_rows():
    put_out = WindowOperator(window=Window("range", 10, 10)).process(
        make_batch((3, 1, 7), (13, 1, 8), watermark=14, ended=True)
    )
    assert (list_rows(put_out), put_out.watermark, put_out.ended) == ([(10, 1, 7), (20, -1, 7), (20, 1, 8)], 21, True)


def test_the_end_is_the_same_instant_for_all_windows_after_any_filter():
    put_out = WindowOperator(window=Window("range", 10, 10)).process(make_batch((3, 1, 7), watermark=14, ended=True))
    assert (list_rows(put_out), put_out.watermark) == ([(10, 1, 7), (20, -1, 7)], 21)


def test_a_long_gap_between_rows_is_cheap():
    rows = run_window(Window("range", 2, 1), -(2**60), 2**61, watermark=2**61 + 1)
    assert rows == [(1 - 2**60, 1, 0), (3 - 2**60, -1, 0), (2**61 + 1, 1, 1)]


def test_rows_with_nulls_are_retracted_unchanged():
    assert run_operator(WindowOperator(window=RANGE), [make_batch((0, 1, None), (1, 1, 3), watermark=20)]) == [
        (0, 1, None), (1, 1, 3), (11, -1, None), (12, -1, 3),
    ]  # fmt: skip


def test_a_window_over_an_input_with_retractions_is_refused():
    with pytest.raises(ValueError, match="sign -1"):
        WindowOperator(window=RANGE).process(make_batch((0, -1, 7)))


@pytest.mark.parametrize("window", [Window("range", -1), Window("unbounded", 3, 2), Window("range", 2**61)])
def test_invalid_windows_are_refused(window):
    with pytest.raises(PlanError, match="window of"):
        WindowOperator(window=window)


def test_a_fresh_copy_is_empty():
    operator = WindowOperator(window=RANGE)
    operator.process(make_batch((0, 1, 7), watermark=5))
    assert (operator.fresh(Settings()).held, operator.held) == (0, 1)


def contents(window, rows, now, last):
    """Return the rows of a window at an instant, by the definition."""
    if window.kind == "rows":
        come, step = [row for row in rows if row[0] <= now], window.slide or 1
        boundary = (-(-len(come) // step) if now == last else len(come) // step) * step
        return come[max(0, boundary - window.length) : boundary]
    if not window.slide:
        return [row for row in rows if row[0] <= now <= row[0] + window.length]
    boundary = now - now % window.slide
    return [row for row in rows if boundary - window.length <= row[0] < boundary]


def naive(window, rows, watermark):
    """Return the changes of the contents from instant to instant."""
    before, changes, end = [], [], watermark + (window.kind == "rows")
    if window.slide and window.kind == "range":
        end = ((watermark - 1) // window.slide + 1) * window.slide + 1
    for now in range(-25, end):
        after = contents(window, rows, now, watermark)
        changes += [(now, -1, row[2]) for row in before if row not in after]
        changes += [(now, 1, row[2]) for row in after if row not in before]
        before = after
    return changes


WINDOWS = st.one_of(
    st.builds(Window, st.just("range"), st.integers(0, 12), st.integers(0, 9)),
    st.builds(Window, st.just("rows"), st.integers(0, 5), st.integers(0, 4)),
)


@given(WINDOWS, st.lists(st.integers(-20, 30), max_size=12).map(sorted), st.integers(31, 40), st.data())
def test_any_batch_boundaries_give_the_contents_of_the_definition(window, ts, watermark, data):
    rows = insertions(*ts)
    expected = naive(window, rows, watermark)
    assert run_operator(WindowOperator(window=window), data.draw(cuts(rows, watermark))) == expected
    assert run_operator(WindowOperator(window=window), whole(rows, watermark)) == expected


@given(WINDOWS, st.lists(st.integers(-20, 30), min_size=1, max_size=8).map(sorted))
def test_a_watermark_before_the_deadline_emits_nothing(window, ts):
    operator = WindowOperator(window=window)
    operator.process(make_batch(*insertions(*ts), watermark=31))
    while (due := operator.deadline()) is not None:
        start = due if window.slide else due + 1
        assert not len(operator.process(make_batch(watermark=start - 1)))
        assert set(operator.process(make_batch(watermark=start)).each("ts").tolist()) == {due}
    assert window.kind == "rows" or not operator.held


@pytest.mark.parametrize("window", [Window("range", 999), Window("rows", 1000), Window("range", 900, 100)])
@pytest.mark.parametrize("size", [7, 5000])
def test_expired_rows_are_freed(window, size):
    operator, held, memory = WindowOperator(window=window), 0, 0
    for start in range(0, 200_000 if size > 7 else 20_000, size):
        ts = np.arange(start, start + size)
        operator.process(Batch.of({"x": ts.astype(float)}, ts=ts))
        held = max(held, operator.held)
        memory = max(memory, reachable(operator))
    assert held <= 1001 + size
    assert memory <= 8 * 3 * 2 * (1001 + 3 * size)  # bytes: x, ts, seq; pieces at least half in use


def reachable(operator):
    """Return the bytes of all arrays that a window operator keeps alive."""
    arrays, seen, todo = 0, set(), [operator._pending._ports[0].waiting, operator._coming, operator._inside]
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            arrays += thing.nbytes if thing.base is None else 0
            todo += [] if thing.base is None else [thing.base]
        elif isinstance(thing, Batch):
            todo += [*thing.columns.values(), thing.ts, thing.seq, thing.arrived]
        elif hasattr(thing, "_pieces"):
            todo += thing._pieces
        elif isinstance(thing, list):
            todo += thing
    return arrays
