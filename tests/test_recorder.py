"""Windows: what comes to count and what ceases to, at which instants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import batch, cuts, listed, through, whole

from dsms.algebra import Window
from dsms.batch import Batch
from dsms.errors import PlanError
from dsms.operators.recorder import Recorder
from dsms.settings import Settings

RANGE = Window("range", 10)


def appended(*ts):
    return [(instant, 1, number) for number, instant in enumerate(ts)]


def recorded(window, *ts, upto):
    return through(Recorder(window=window), whole(appended(*ts), upto))


def test_a_row_counts_to_its_timestamp_plus_the_length_and_leaves_just_after():
    assert recorded(RANGE, 0, 5, 11, upto=17) == [(0, 1, 0), (5, 1, 1), (11, -1, 0), (11, 1, 2), (16, -1, 1)]


def test_a_window_of_no_length_holds_the_present_instant():
    assert recorded(Window("range", 0), 1, 1, upto=3) == [(1, 1, 0), (1, 1, 1), (2, -1, 0), (2, -1, 1)]


def test_time_stops_at_the_end_so_nothing_leaves_that_is_due_then():
    assert recorded(RANGE, 0, upto=11) == [(0, 1, 0)]


def test_time_alone_lets_rows_leave_and_the_deadline_says_when():
    recorder = Recorder(window=RANGE)
    assert recorder.deadline() is None
    assert listed(recorder.process(batch((0, 1, 7), (4, 1, 8), upto=5))) == [(0, 1, 7), (4, 1, 8)]
    assert recorder.deadline() == 11
    assert listed(recorder.process(batch(upto=11, arrived=2.5))) == []
    late = recorder.process(batch(upto=12, arrived=3.5, seq=9))
    assert (listed(late), late.upto, late.arrived, late.seq) == ([(11, -1, 7)], 12, 3.5, 9)
    assert (recorder.deadline(), recorder.held) == (15, 1)


def test_a_row_that_waits_for_its_instant_counts_for_the_deadline():
    recorder = Recorder(window=RANGE)
    assert listed(recorder.process(batch((3, 1, 7)))) == []
    assert (recorder.deadline(), recorder.held) == (14, 1)


def test_the_last_rows_push_out_the_ones_before_them():
    assert recorded(Window("rows", 2), 1, 2, 3, 5, upto=9) == [
        (1, 1, 0), (2, 1, 1), (3, -1, 0), (3, 1, 2), (5, -1, 1), (5, 1, 3),
    ]  # fmt: skip


def test_a_row_that_would_leave_at_the_instant_it_came_is_never_put_out():
    assert recorded(Window("rows", 2), 1, 4, 4, 4, upto=9) == [(1, 1, 0), (4, -1, 0), (4, 1, 2), (4, 1, 3)]
    assert recorded(Window("rows", 0), 1, 1, 2, upto=9) == []


def test_what_leaves_a_window_of_rows_arrived_with_what_pushed_it_out():
    recorder = Recorder(window=Window("rows", 1))
    assert recorder.process(batch((1, 1, 7), (2, 1, 8), upto=3, arrived=[1.0, 2.0])).arrived.tolist() == [1, 2, 2]
    assert recorder.deadline() is None


def test_an_unbounded_window_passes_rows_on():
    given_rows = batch((1, 1, 7), (2, 1, 8))
    recorder = Recorder(window=Window())
    assert recorder.process(given_rows) is given_rows
    assert (recorder.held, recorder.deadline()) == (0, None)


def test_a_tumbling_window_shows_at_each_boundary_the_rows_before_it():
    assert recorded(Window("range", 10, 10), 0, 9, 10, upto=25) == [
        (10, 1, 0), (10, 1, 1), (20, -1, 0), (20, -1, 1), (20, 1, 2), (30, -1, 2),
    ]  # fmt: skip


def test_a_hopping_window_does_not_touch_the_rows_that_stay():
    assert recorded(Window("range", 10, 5), -3, 2, upto=11) == [(0, 1, 0), (5, 1, 1), (10, -1, 0), (15, -1, 1)]


def test_a_slide_longer_than_the_window_samples():
    assert recorded(Window("range", 2, 10), 7, 8, 9, 10, upto=21) == [(10, 1, 1), (10, 1, 2), (20, -1, 1), (20, -1, 2)]


def test_a_window_of_rows_may_change_at_every_so_many_th_row_only():
    tumbling, hopping, sampling = Window("rows", 2, 2), Window("rows", 3, 2), Window("rows", 1, 3)
    assert recorded(tumbling, 1, 2, 3, 5, upto=9) == [
        (2, 1, 0), (2, 1, 1), (5, -1, 0), (5, -1, 1), (5, 1, 2), (5, 1, 3),
    ]  # fmt: skip
    assert recorded(hopping, 1, 2, 3, 5, upto=9) == [(2, 1, 0), (2, 1, 1), (5, -1, 0), (5, 1, 2), (5, 1, 3)]
    assert recorded(sampling, 1, 2, 3, 4, 5, 6, 7, upto=9) == [(3, 1, 2), (6, -1, 2), (6, 1, 5), (9, -1, 5)]


def test_the_last_rows_of_a_window_by_rows_are_shown_at_the_end():
    assert recorded(Window("rows", 2, 2), 1, 2, 3, upto=9) == [(2, 1, 0), (2, 1, 1), (9, -1, 0), (9, -1, 1), (9, 1, 2)]


def test_rows_between_two_windows_are_not_held():
    recorder = Recorder(window=Window("range", 2, 10))
    recorder.process(batch((1, 1, 7), (2, 1, 7), upto=3))
    assert (recorder.held, recorder.deadline()) == (0, None)
    recorder.process(batch((5, 1, 7), (9, 1, 8), upto=9))
    assert (recorder.held, recorder.deadline()) == (1, 10)


def test_a_boundary_is_due_as_soon_as_time_has_come_to_it():
    recorder = Recorder(window=Window("range", 10, 10))
    assert listed(recorder.process(batch((3, 1, 7), upto=9))) == []
    assert recorder.deadline() == 10
    shown = recorder.process(batch(upto=10))
    assert (listed(shown), shown.upto) == ([(10, 1, 7)], 11)
    assert (recorder.deadline(), recorder.held) == (20, 1)


def test_at_the_end_time_goes_on_to_the_boundary_that_shows_the_last_rows():
    put_out = Recorder(window=Window("range", 10, 10)).process(batch((3, 1, 7), (13, 1, 8), upto=14, ended=True))
    assert (listed(put_out), put_out.upto, put_out.ended) == ([(10, 1, 7), (20, -1, 7), (20, 1, 8)], 21, True)


def test_at_the_end_time_stops_at_one_instant_whatever_conditions_let_through_to_the_window():
    put_out = Recorder(window=Window("range", 10, 10)).process(batch((3, 1, 7), upto=14, ended=True))
    assert (listed(put_out), put_out.upto) == ([(10, 1, 7), (20, -1, 7)], 21)


def test_a_long_silence_costs_nothing():
    rows = recorded(Window("range", 2, 1), -(2**60), 2**61, upto=2**61 + 1)
    assert rows == [(1 - 2**60, 1, 0), (3 - 2**60, -1, 0), (2**61 + 1, 1, 1)]


def test_rows_with_nulls_leave_as_they_came():
    assert through(Recorder(window=RANGE), [batch((0, 1, None), (1, 1, 3), upto=20)]) == [
        (0, 1, None), (1, 1, 3), (11, -1, None), (12, -1, 3),
    ]  # fmt: skip


def test_a_window_on_something_that_takes_rows_back_is_refused():
    with pytest.raises(ValueError, match="sign -1"):
        Recorder(window=RANGE).process(batch((0, -1, 7)))


@pytest.mark.parametrize("window", [Window("range", -1), Window("unbounded", 3, 2), Window("range", 2**61)])
def test_windows_that_make_no_sense_are_refused(window):
    with pytest.raises(PlanError, match="window of"):
        Recorder(window=window)


def test_a_fresh_recorder_is_empty():
    recorder = Recorder(window=RANGE)
    recorder.process(batch((0, 1, 7), upto=5))
    assert (recorder.fresh(Settings()).held, recorder.held) == (0, 1)


def contents(window, rows, now, last):
    """Which rows count at an instant, by the definition."""
    if window.kind == "rows":
        come, step = [row for row in rows if row[0] <= now], window.slide or 1
        boundary = (-(-len(come) // step) if now == last else len(come) // step) * step
        return come[max(0, boundary - window.length) : boundary]
    if not window.slide:
        return [row for row in rows if row[0] <= now <= row[0] + window.length]
    boundary = now - now % window.slide
    return [row for row in rows if boundary - window.length <= row[0] < boundary]


def naive(window, rows, upto):
    """The differences of the contents from instant to instant."""
    before, changes, end = [], [], upto + (window.kind == "rows")
    if window.slide and window.kind == "range":
        end = ((upto - 1) // window.slide + 1) * window.slide + 1
    for now in range(-25, end):
        after = contents(window, rows, now, upto)
        changes += [(now, -1, row[2]) for row in before if row not in after]
        changes += [(now, 1, row[2]) for row in after if row not in before]
        before = after
    return changes


WINDOWS = st.one_of(
    st.builds(Window, st.just("range"), st.integers(0, 12), st.integers(0, 9)),
    st.builds(Window, st.just("rows"), st.integers(0, 5), st.integers(0, 4)),
)


@given(WINDOWS, st.lists(st.integers(-20, 30), max_size=12).map(sorted), st.integers(31, 40), st.data())
def test_however_the_rows_are_cut_the_window_is_the_one_defined(window, ts, upto, data):
    rows = appended(*ts)
    expected = naive(window, rows, upto)
    assert through(Recorder(window=window), data.draw(cuts(rows, upto))) == expected
    assert through(Recorder(window=window), whole(rows, upto)) == expected


@given(WINDOWS, st.lists(st.integers(-20, 30), min_size=1, max_size=8).map(sorted))
def test_time_that_does_not_pass_the_deadline_puts_nothing_out(window, ts):
    recorder = Recorder(window=window)
    recorder.process(batch(*appended(*ts), upto=31))
    while (due := recorder.deadline()) is not None:
        start = due if window.slide else due + 1
        assert not len(recorder.process(batch(upto=start - 1)))
        assert set(recorder.process(batch(upto=start)).each("ts").tolist()) == {due}
    assert window.kind == "rows" or not recorder.held


@pytest.mark.parametrize("window", [Window("range", 999), Window("rows", 1000), Window("range", 900, 100)])
@pytest.mark.parametrize("size", [7, 5000])
def test_what_has_left_the_window_is_let_go(window, size):
    recorder, held, memory = Recorder(window=window), 0, 0
    for start in range(0, 200_000 if size > 7 else 20_000, size):
        ts = np.arange(start, start + size)
        recorder.process(Batch.of({"x": ts.astype(float)}, ts=ts))
        held = max(held, recorder.held)
        memory = max(memory, reachable(recorder))
    assert held <= 1001 + size
    assert memory <= 8 * 3 * 2 * (1001 + 3 * size)  # bytes: x, ts, seq; pieces at least half in use


def reachable(recorder):
    """The bytes of all arrays that a recorder keeps alive."""
    arrays, seen, todo = 0, set(), [recorder._pending._ports[0].waiting, recorder._coming, recorder._inside]
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
