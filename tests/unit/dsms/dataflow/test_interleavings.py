"""Any interleaving of items gives the query result; with a mechanism switched off, some seed does not."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC

from dsms.dataflow import (
    DataflowExecution,
    DifferenceTerm,
    JoinTerm,
    Node,
    StreamItem,
    StreamTerm,
    conflict_matrix,
    count_dashed_edges,
    enumerate_plans,
    input_streams,
    is_equal_every,
    is_order_invariant,
    is_order_preserving,
    is_weakly_order_preserving,
    number_operations,
    translate,
)
from dsms.errors import PlanError

R, S, T, U = StreamTerm("r", "ab"), StreamTerm("s", "bc"), StreamTerm("t", "ac"), StreamTerm("u", "cd")
RS = JoinTerm(R, S, "b")
EXPRESSIONS = {
    "two": RS,
    "three": JoinTerm(RS, T, "ac"),
    "difference": DifferenceTerm(R, StreamTerm("s", "ab"), "a"),
    "of a join": DifferenceTerm(RS, U, "c"),
    "inside": JoinTerm(DifferenceTerm(S, U, "c"), R, "b"),
    "of a composite": DifferenceTerm(RS, JoinTerm(T, U, "c"), "ac"),
}
WITHOUT = [("two", ()), ("three", ()), ("difference", ()), ("of a join", ())]
STORED = [("three", ("rs",)), ("of a join", ("rs",)), ("inside", ("su",)), ("of a composite", ("rs", "tu"))]
SEEDS = range(40)


# --- what a query means, from scratch: windows are lists of items as dicts, results count rows


def window(items, stream, rows=None):
    held = []
    for item in items:
        if item.stream == stream and item.sign > 0:
            held = [*held, item.values][-(rows or 99) :]
        elif item.stream == stream and item.values in held:
            held.remove(item.values)
    return held


def equal(one, other, on):
    return all(one[attribute] == other[attribute] for attribute in on)


def rows_of(expression, items, rows):
    if isinstance(expression, StreamTerm):
        return window(items, expression.name, rows.get(expression.name))
    left, right = (rows_of(side, items, rows) for side in (expression.left, expression.right))
    if isinstance(expression, DifferenceTerm):
        return [one for one in left if not any(equal(one, other, expression.on) for other in right)]
    return [one | other for one in left for other in right if equal(one, other, expression.on)]


def meaning(expression, items, rows=None):
    return Counter(frozenset(row.items()) for row in rows_of(expression, items, rows or {}))


def meanings(expression, items, rows=None):
    """Return the query results after each item."""
    return [meaning(expression, items[: i + 1], rows) for i in range(len(items))]


# --- runs


def some_items(expression, seed, number=10, leaving=0.2):
    """Draw insertions, and deletions of some of them."""
    chance, here = random.Random(seed), []
    streams = list(input_streams(expression))
    for _ in range(number):
        if here and chance.random() < leaving:
            yield here.pop(chance.randrange(len(here)))._replace(sign=-1)
        else:
            stream = chance.choice(streams)
            here.append(StreamItem(stream.name, {attribute: chance.randrange(2) for attribute in stream.attributes}))
            yield here[-1]


def runs(name, stored=(), rows=None, seeds=SEEDS, **settings):
    """Return for each seed a concurrent run of the same items and the expected results."""
    expression = EXPRESSIONS[name]
    execution = DataflowExecution(translate(expression, stored), rows=rows or {}, **settings)
    for seed in seeds:
        items = list(some_items(expression, seed))
        yield execution.run(items, seed), meanings(expression, items, rows)


def no_edges(plan):
    return tuple((False,) * len(number_operations(plan)) for _ in number_operations(plan))


def right_in_the_end(found, serial):
    return found.final == serial[-1]


def right_always(found, serial):
    return is_order_preserving(found.states, serial)


@st.composite
def cases(draw):
    """Draw a plan in any order of operations, with some limited windows, and items."""
    name, stored = draw(st.sampled_from(WITHOUT + STORED))
    expression = EXPRESSIONS[name]
    rows = {stream.name: draw(st.integers(1, 3)) for stream in input_streams(expression) if draw(st.booleans())}
    items = list(some_items(expression, draw(st.integers(0, 999)), draw(st.integers(0, 10))))
    return expression, draw(st.sampled_from(list(enumerate_plans(expression, stored)))), rows, items


MODES = st.sampled_from(["block", "item"])


# --- every order


@DETERMINISTIC
@given(cases(), MODES, st.booleans())
def test_serially_each_state_is_the_query_result(case, mode, timestamps):
    expression, plan, rows, items = case
    found = DataflowExecution(plan, "serial", rows=rows, mode=mode, timestamps=timestamps).run(items)
    assert list(found.states) == meanings(expression, items, rows)
    assert found.edges == 0
    assert [node.item for node in found.ran] == sorted(node.item for node in found.ran)


@DETERMINISTIC
@given(cases(), MODES, st.integers(0, 99), st.booleans(), st.integers(0, 3))
def test_with_all_dashed_edges_every_state_is_the_serial_state(case, mode, seed, timestamps, gap):
    expression, plan, rows, items = case
    found = DataflowExecution(plan, rows=rows, mode=mode, timestamps=timestamps, gap=gap).run(items, seed)
    assert is_order_preserving(found.states, meanings(expression, items, rows))


@DETERMINISTIC
@given(cases(), MODES, st.integers(0, 99), st.integers(1, 4), st.integers(0, 3))
def test_without_dashed_edges_the_last_state_is_serial_and_with_level_k_every_kth(case, mode, seed, k, gap):
    expression, plan, rows, items = case
    serial = meanings(expression, items, rows)
    weak = DataflowExecution(plan, "weak", rows=rows, mode=mode, gap=gap).run(items, seed)
    assert weak.final == (serial[-1] if serial else {})
    assert is_weakly_order_preserving(weak.states, serial) or not items
    level = DataflowExecution(plan, k, rows=rows, mode=mode, gap=gap).run(items, seed)
    assert is_equal_every(k, level.states, serial)


# --- each mechanism, on and off


@pytest.mark.parametrize("timestamps", [False, True])
@pytest.mark.parametrize(("name", "stored"), WITHOUT + STORED)
def test_dashed_edges_keep_every_state(name, stored, timestamps):
    found = list(runs(name, stored, timestamps=timestamps))
    assert all(right_always(*each) for each in found)
    assert any(one.item > other.item for run, _ in found for one, other in pairwise(run.ran))  # or nothing overtook
    none = no_edges(translate(EXPRESSIONS[name], stored))
    assert not all(right_always(*each) for each in runs(name, stored, timestamps=timestamps, conflicts=none))


@pytest.mark.parametrize(("name", "stored"), WITHOUT + STORED)
def test_with_neither_edges_nor_timestamps_results_are_lost_or_doubled(name, stored):
    assert not all(right_in_the_end(*each) for each in runs(name, stored, order="weak", timestamps=False))


@pytest.mark.parametrize(("name", "stored"), WITHOUT + STORED[:3])
def test_timestamps_save_edges_and_give_the_same(name, stored):
    plan = translate(EXPRESSIONS[name], stored)
    with_, without = (list(runs(name, stored, timestamps=each)) for each in (True, False))
    assert all(right_always(*each) for each in with_ + without)
    assert sum(run.edges for run, _ in with_) < sum(run.edges for run, _ in without)
    loose = conflict_matrix(plan, timestamps=True, by_arrival=True)  # those few edges, but everything is read
    assert not all(right_always(*each) for each in runs(name, stored, timestamps=False, conflicts=loose))


def test_with_mostly_intermediate_windows_timestamps_add_more_edges_than_they_save():
    """They follow arrival then, so any two recorders of inputs conflict: six pairs of four streams."""
    plan = translate(EXPRESSIONS["of a composite"], ("rs", "tu"))
    assert [count_dashed_edges(plan, "rstu", timestamps) for timestamps in (False, True)] == [22, 22 - 4 + 6]


@pytest.mark.parametrize("name", [name for name, _ in WITHOUT])
def test_timestamps_out_of_the_order_of_arrival_keep_the_end_but_not_every_state(name):
    loose = conflict_matrix(translate(EXPRESSIONS[name]), timestamps=True)
    found = list(runs(name, conflicts=loose))
    assert all(right_in_the_end(*each) for each in found)
    assert not all(right_always(*each) for each in found)


@pytest.mark.parametrize(("name", "stored"), STORED)
def test_a_late_intermediate_result_needs_a_higher_timestamp_or_results_are_lost(name, stored):
    seeds = range(150)
    assert all(right_in_the_end(*each) for each in runs(name, stored, order="weak", seeds=seeds))
    assert not all(right_in_the_end(*each) for each in runs(name, stored, order="weak", raised=False, seeds=seeds))


@pytest.mark.parametrize(("name", "stored"), WITHOUT + STORED)
def test_a_level_delays_further_items_until_the_last_result_is_written(name, stored):
    for k in (2, 3):
        assert all(is_equal_every(k, run.states, serial) for run, serial in runs(name, stored, order=k))
        assert not all(is_equal_every(k, run.states, serial) for run, serial in runs(name, stored, order="weak"))
    assert not all(right_always(*each) for each in runs(name, stored, order=3))


def test_a_limited_window_is_recorded_in_the_order_of_its_stream():
    rows = {"r": 2, "s": 1}
    found = list(runs("two", rows=rows, order="weak"))
    assert all(right_in_the_end(*each) for each in found)
    assert max(run.edges for run, _ in found) > 0
    none = no_edges(translate(RS))
    assert not all(right_in_the_end(*each) for each in runs("two", rows=rows, order="weak", conflicts=none))


def test_the_checked_difference_needs_an_edge_that_the_printed_one_does_not():
    """Two equal items of s are both recorded; then each finds the other and neither removes a result."""
    plan = translate(EXPRESSIONS["difference"])
    items = [StreamItem("r", {"a": 1, "b": 1}), *[StreamItem("s", {"a": 1, "b": 2})] * 2]
    ways = {}
    for checked in (True, False):
        conflicts = conflict_matrix(plan, checked=checked)
        execution = DataflowExecution(plan, timestamps=False, conflicts=conflicts)
        ways[checked] = {tuple(execution.run(items, seed).final) for seed in SEEDS}
    assert ways[True] == {()}
    assert len(ways[False]) > 1


# --- which expressions do not mind the order


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_over_unlimited_windows_every_expression_is_order_invariant(name):
    """Joins are, and differences too, because they retract results."""
    stored = dict(STORED).get(name, ())
    for seed in range(3):
        items = list(some_items(EXPRESSIONS[name], seed, number=4, leaving=0))
        assert is_order_invariant(translate(EXPRESSIONS[name], stored), items)


ONE_R = StreamItem("r", {"a": 1, "b": 1})
OTHER_R = StreamItem("r", {"a": 1, "b": 2})


@pytest.mark.parametrize(("name", "item"), [
    ("two", StreamItem("s", {"b": 1, "c": 1})),
    ("difference", StreamItem("s", {"a": 2, "b": 2})),
])  # fmt: skip
def test_over_windows_of_rows_no_expression_is_order_invariant(name, item):
    """A window of one row keeps only the later of two items of r."""
    plan, items = translate(EXPRESSIONS[name]), [ONE_R, OTHER_R, item]
    assert is_order_invariant(plan, items)
    assert not is_order_invariant(plan, items, rows={"r": 1})
    assert is_order_invariant(plan, items, rows={"r": 2})


def test_the_outputs_of_a_difference_depend_on_the_order_even_over_unlimited_windows():
    serial = DataflowExecution(translate(EXPRESSIONS["difference"]), "serial")
    items, row = [ONE_R, StreamItem("s", {"a": 1, "b": 9})], frozenset(ONE_R.values.items())
    assert serial.run(items).written == ((row, 1), (row, -1))
    assert serial.run(items[::-1]).written == ()
    assert serial.run(items).final == serial.run(items[::-1]).final == {}


def test_of_too_many_orders_a_sample_is_tried():
    items = [StreamItem("r", {"a": a, "b": 1}) for a in range(8)] + [StreamItem("s", {"b": 1, "c": 1})]
    assert is_order_invariant(translate(RS), items, limit=20)
    assert not is_order_invariant(translate(RS), items, rows={"r": 1}, limit=20)


# --- what is reported


def first(ready):
    return ready[0]


def last(ready):
    return ready[-1]


ROW = frozenset({("a", 1), ("b", 1), ("c", 1)})
MET = [ONE_R, StreamItem("s", {"b": 1, "c": 1})]


def test_a_run_by_hand():
    """r: ->(w_r), join(w_s), ->(w_out) are rows 0 to 2, those of s 3 to 5; r has no match, so it ends early."""
    found = DataflowExecution(translate(RS), "serial").run(MET, first)
    assert found.ran == (Node(0, 0), Node(0, 1), Node(1, 3), Node(1, 4), Node(1, 5))
    assert found.states == ({}, {ROW: 1})
    assert found.waited == (0, 2)
    weak = DataflowExecution(translate(RS), "weak").run(MET, last)
    assert weak.ran == (Node(1, 3), Node(1, 4), Node(0, 0), Node(0, 1), Node(0, 2))
    assert weak.states == ({ROW: 1}, {ROW: 1})
    assert weak.waited == (2, 0)
    assert weak.written == ((ROW, 1),)


@pytest.mark.parametrize(("order", "timestamps", "drawn"), [
    ("serial", True, 0),
    ("weak", True, 0),
    ("preserving", True, 2),
    ("preserving", False, 3),
])  # fmt: skip
def test_edges_are_counted_when_they_are_added(order, timestamps, drawn):
    assert DataflowExecution(translate(RS), order, timestamps=timestamps).run(MET).edges == drawn


def test_items_that_arrive_far_apart_neither_wait_nor_conflict():
    found = DataflowExecution(translate(RS), timestamps=False, gap=4).run(MET * 2, last)
    assert found.edges == 0
    assert found.waited == (0, 0, 0, 0)


def test_an_item_that_may_overtake_does_not_wait():
    plan, items = translate(EXPRESSIONS["three"]), list(some_items(EXPRESSIONS["three"], 1))
    weak, serial = (DataflowExecution(plan, order).run(items, last).waited for order in ("weak", "serial"))
    assert weak[-1] == serial[0] == 0 < min(weak[0], serial[-1])


def test_in_item_mode_a_result_continues_before_the_others_exist():
    """Two items of r match one of s: block mode writes both results in one step, item mode one at a time."""
    items = [ONE_R, ONE_R._replace(values={"a": 2, "b": 1}), MET[1]]
    ran = {
        mode: DataflowExecution(translate(RS), "serial", mode=mode).run(items, last).ran for mode in ("block", "item")
    }
    assert [node.row for node in ran["block"]][-3:] == [3, 4, 5]
    assert [node.row for node in ran["item"]][-4:] == [3, 4, 5, 5]


def test_an_eviction_is_written_before_the_row_that_causes_it():
    items = [StreamItem("r", {"a": a, "b": 1}) for a in (1, 2)]
    evicted = items[0]._replace(sign=-1)  # already evicted
    found = DataflowExecution(translate(R), "serial", rows={"r": 1}).run([*items, evicted])
    one, two = (frozenset(item.values.items()) for item in items)
    assert found.written == ((one, 1), (one, -1), (two, 1))


def test_no_items_give_no_results():
    found = DataflowExecution(translate(RS)).run([])
    assert (found.states, found.final, found.edges, found.waited) == ((), {}, 0, ())


def test_edges_of_pending_items():
    plan = translate(RS)
    assert [count_dashed_edges(plan, pending) for pending in ("", "r", "rs", "rr", "rsr")] == [0, 0, 3, 3, 9]
    assert count_dashed_edges(plan, ["r", "s", "r"], timestamps=True) == 5


@pytest.mark.parametrize(("settings", "message"), [
    ({"order": "any"}, r"no order 'any'; there are \['serial', 'preserving', 'weak'\] and integers from 1"),
    ({"order": 0}, "no order 0"),
    ({"mode": "batch"}, "no mode 'batch'"),
    ({"rows": {"q": 2}}, "2 rows in the window of 'q'"),
    ({"rows": {"r": 0}}, "0 rows in the window of 'r': it must be 1 or more"),
])  # fmt: skip
def test_invalid_executions_are_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        DataflowExecution(translate(RS), **settings)


def test_invalid_items_are_refused():
    with pytest.raises(PlanError, match="no stream 'q'"):
        DataflowExecution(translate(RS)).run([StreamItem("q", {"a": 1})])
    with pytest.raises(PlanError, match="item 0 has the sign 2: it must be 1 or -1"):
        DataflowExecution(translate(RS)).run([ONE_R._replace(sign=2)])
