"""Items in any interleaving give what the query means; with a mechanism switched off, for some seed they do not."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import EXACT

from dsms.dataflow import (
    Difference,
    Execution,
    Item,
    Join,
    Node,
    Stream,
    agrees_every,
    conflict_matrix,
    edges,
    inputs,
    is_order_invariant,
    is_order_preserving,
    is_weakly_order_preserving,
    numbered,
    plans,
    translate,
)
from dsms.errors import PlanError

R, S, T, U = Stream("r", "ab"), Stream("s", "bc"), Stream("t", "ac"), Stream("u", "cd")
RS = Join(R, S, "b")
EXPRESSIONS = {
    "two": RS,
    "three": Join(RS, T, "ac"),
    "difference": Difference(R, Stream("s", "ab"), "a"),
    "of a join": Difference(RS, U, "c"),
    "inside": Join(Difference(S, U, "c"), R, "b"),
    "of a composite": Difference(RS, Join(T, U, "c"), "ac"),
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
    if isinstance(expression, Stream):
        return window(items, expression.name, rows.get(expression.name))
    left, right = (rows_of(side, items, rows) for side in (expression.left, expression.right))
    if isinstance(expression, Difference):
        return [one for one in left if not any(equal(one, other, expression.on) for other in right)]
    return [one | other for one in left for other in right if equal(one, other, expression.on)]


def meaning(expression, items, rows=None):
    return Counter(frozenset(row.items()) for row in rows_of(expression, items, rows or {}))


def meanings(expression, items, rows=None):
    """After each item."""
    return [meaning(expression, items[: i + 1], rows) for i in range(len(items))]


# --- runs


def some_items(expression, seed, number=10, leaving=0.2):
    """Items that come, and some of them that go again."""
    chance, here = random.Random(seed), []
    streams = list(inputs(expression))
    for _ in range(number):
        if here and chance.random() < leaving:
            yield here.pop(chance.randrange(len(here)))._replace(sign=-1)
        else:
            stream = chance.choice(streams)
            here.append(Item(stream.name, {attribute: chance.randrange(2) for attribute in stream.attributes}))
            yield here[-1]


def runs(name, stored=(), rows=None, seeds=SEEDS, **settings):
    """For each seed, what a concurrent run of the same items gives and what it should."""
    expression = EXPRESSIONS[name]
    execution = Execution(translate(expression, stored), rows=rows or {}, **settings)
    for seed in seeds:
        items = list(some_items(expression, seed))
        yield execution.run(items, seed), meanings(expression, items, rows)


def no_edges(plan):
    return tuple((False,) * len(numbered(plan)) for _ in numbered(plan))


def right_in_the_end(found, serial):
    return found.final == serial[-1]


def right_always(found, serial):
    return is_order_preserving(found.states, serial)


@st.composite
def cases(draw):
    """A plan in any order of operations, windows of some streams limited, and items that come and go."""
    name, stored = draw(st.sampled_from(WITHOUT + STORED))
    expression = EXPRESSIONS[name]
    rows = {stream.name: draw(st.integers(1, 3)) for stream in inputs(expression) if draw(st.booleans())}
    items = list(some_items(expression, draw(st.integers(0, 999)), draw(st.integers(0, 10))))
    return expression, draw(st.sampled_from(list(plans(expression, stored)))), rows, items


MODES = st.sampled_from(["block", "item"])


# --- every order


@EXACT
@given(cases(), MODES, st.booleans())
def test_one_after_the_other_each_state_is_what_the_query_means(case, mode, timestamps):
    expression, plan, rows, items = case
    found = Execution(plan, "serial", rows=rows, mode=mode, timestamps=timestamps).run(items)
    assert list(found.states) == meanings(expression, items, rows)
    assert found.edges == 0
    assert [node.item for node in found.ran] == sorted(node.item for node in found.ran)


@EXACT
@given(cases(), MODES, st.integers(0, 99), st.booleans(), st.integers(0, 3))
def test_with_all_dashed_edges_every_state_is_the_serial_one(case, mode, seed, timestamps, gap):
    expression, plan, rows, items = case
    found = Execution(plan, rows=rows, mode=mode, timestamps=timestamps, gap=gap).run(items, seed)
    assert is_order_preserving(found.states, meanings(expression, items, rows))


@EXACT
@given(cases(), MODES, st.integers(0, 99), st.integers(1, 4), st.integers(0, 3))
def test_without_them_the_last_state_is_and_with_a_level_every_so_many(case, mode, seed, k, gap):
    expression, plan, rows, items = case
    serial = meanings(expression, items, rows)
    weak = Execution(plan, "weak", rows=rows, mode=mode, gap=gap).run(items, seed)
    assert weak.final == (serial[-1] if serial else {})
    assert is_weakly_order_preserving(weak.states, serial) or not items
    level = Execution(plan, k, rows=rows, mode=mode, gap=gap).run(items, seed)
    assert agrees_every(k, level.states, serial)


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


def test_where_mostly_intermediate_windows_are_read_timestamps_cost_more_edges_than_they_save():
    """They go by arrival then, so that any two recorders of inputs conflict: six pairs of four streams."""
    plan = translate(EXPRESSIONS["of a composite"], ("rs", "tu"))
    assert [edges(plan, "rstu", timestamps) for timestamps in (False, True)] == [22, 22 - 4 + 6]


@pytest.mark.parametrize("name", [name for name, _ in WITHOUT])
def test_timestamps_out_of_the_order_of_arrival_keep_the_end_but_not_every_state(name):
    loose = conflict_matrix(translate(EXPRESSIONS[name]), timestamps=True)
    found = list(runs(name, conflicts=loose))
    assert all(right_in_the_end(*each) for each in found)
    assert not all(right_always(*each) for each in found)


@pytest.mark.parametrize(("name", "stored"), STORED)
def test_what_is_late_in_an_intermediate_window_gets_a_higher_timestamp_or_results_are_lost(name, stored):
    seeds = range(150)
    assert all(right_in_the_end(*each) for each in runs(name, stored, order="weak", seeds=seeds))
    assert not all(right_in_the_end(*each) for each in runs(name, stored, order="weak", raised=False, seeds=seeds))


@pytest.mark.parametrize(("name", "stored"), WITHOUT + STORED)
def test_a_level_holds_further_items_until_the_last_result_is_out(name, stored):
    for k in (2, 3):
        assert all(agrees_every(k, run.states, serial) for run, serial in runs(name, stored, order=k))
        assert not all(agrees_every(k, run.states, serial) for run, serial in runs(name, stored, order="weak"))
    assert not all(right_always(*each) for each in runs(name, stored, order=3))


def test_a_limited_window_is_recorded_in_the_order_of_its_stream():
    rows = {"r": 2, "s": 1}
    found = list(runs("two", rows=rows, order="weak"))
    assert all(right_in_the_end(*each) for each in found)
    assert max(run.edges for run, _ in found) > 0
    none = no_edges(translate(RS))
    assert not all(right_in_the_end(*each) for each in runs("two", rows=rows, order="weak", conflicts=none))


def test_the_difference_that_looks_for_equals_needs_an_edge_that_the_printed_one_does_not():
    """Two equal items of s: both recorded, then each finds the other and neither takes away."""
    plan = translate(EXPRESSIONS["difference"])
    items = [Item("r", {"a": 1, "b": 1}), *[Item("s", {"a": 1, "b": 2})] * 2]
    ways = {}
    for checked in (True, False):
        conflicts = conflict_matrix(plan, checked=checked)
        execution = Execution(plan, timestamps=False, conflicts=conflicts)
        ways[checked] = {tuple(execution.run(items, seed).final) for seed in SEEDS}
    assert ways[True] == {()}
    assert len(ways[False]) > 1


# --- which expressions do not mind the order


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_over_unlimited_windows_every_expression_is_order_invariant(name):
    """Joins and, as what it takes back is taken back, the difference too."""
    stored = dict(STORED).get(name, ())
    for seed in range(3):
        items = list(some_items(EXPRESSIONS[name], seed, number=4, leaving=0))
        assert is_order_invariant(translate(EXPRESSIONS[name], stored), items)


ONE_R = Item("r", {"a": 1, "b": 1})
OTHER_R = Item("r", {"a": 1, "b": 2})


@pytest.mark.parametrize(("name", "item"), [
    ("two", Item("s", {"b": 1, "c": 1})),
    ("difference", Item("s", {"a": 2, "b": 2})),
])  # fmt: skip
def test_over_relocating_windows_none_is(name, item):
    """Of two items of r only the later stays in a window of one row."""
    plan, items = translate(EXPRESSIONS[name]), [ONE_R, OTHER_R, item]
    assert is_order_invariant(plan, items)
    assert not is_order_invariant(plan, items, rows={"r": 1})
    assert is_order_invariant(plan, items, rows={"r": 2})


def test_what_a_difference_has_ever_put_out_depends_on_the_order_even_over_unlimited_windows():
    serial = Execution(translate(EXPRESSIONS["difference"]), "serial")
    items, row = [ONE_R, Item("s", {"a": 1, "b": 9})], frozenset(ONE_R.values.items())
    assert serial.run(items).written == ((row, 1), (row, -1))
    assert serial.run(items[::-1]).written == ()
    assert serial.run(items).final == serial.run(items[::-1]).final == {}


def test_of_too_many_orders_some_are_tried():
    items = [Item("r", {"a": a, "b": 1}) for a in range(8)] + [Item("s", {"b": 1, "c": 1})]
    assert is_order_invariant(translate(RS), items, limit=20)
    assert not is_order_invariant(translate(RS), items, rows={"r": 1}, limit=20)


# --- what is reported


def first(ready):
    return ready[0]


def last(ready):
    return ready[-1]


ROW = frozenset({("a", 1), ("b", 1), ("c", 1)})
MET = [ONE_R, Item("s", {"b": 1, "c": 1})]


def test_a_run_by_hand():
    """r: ->(w_r), join(w_s), ->(w_out) are rows 0 to 2, those of s 3 to 5; r meets nothing, so it ends early."""
    found = Execution(translate(RS), "serial").run(MET, first)
    assert found.ran == (Node(0, 0), Node(0, 1), Node(1, 3), Node(1, 4), Node(1, 5))
    assert found.states == ({}, {ROW: 1})
    assert found.waited == (0, 2)
    weak = Execution(translate(RS), "weak").run(MET, last)
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
def test_edges_are_counted_as_they_are_drawn(order, timestamps, drawn):
    assert Execution(translate(RS), order, timestamps=timestamps).run(MET).edges == drawn


def test_items_that_come_apart_neither_wait_nor_conflict():
    found = Execution(translate(RS), timestamps=False, gap=4).run(MET * 2, last)
    assert found.edges == 0
    assert found.waited == (0, 0, 0, 0)


def test_who_may_overtake_does_not_wait():
    plan, items = translate(EXPRESSIONS["three"]), list(some_items(EXPRESSIONS["three"], 1))
    weak, serial = (Execution(plan, order).run(items, last).waited for order in ("weak", "serial"))
    assert weak[-1] == serial[0] == 0 < min(weak[0], serial[-1])


def test_in_item_mode_a_result_goes_on_before_the_others_are_there():
    """Two items of r meet one of s: block mode writes both results in one step, item mode one at a time."""
    items = [ONE_R, ONE_R._replace(values={"a": 2, "b": 1}), MET[1]]
    ran = {mode: Execution(translate(RS), "serial", mode=mode).run(items, last).ran for mode in ("block", "item")}
    assert [node.row for node in ran["block"]][-3:] == [3, 4, 5]
    assert [node.row for node in ran["item"]][-4:] == [3, 4, 5, 5]


def test_what_leaves_a_window_is_put_out_before_what_drives_it_out():
    items = [Item("r", {"a": a, "b": 1}) for a in (1, 2)]
    gone = items[0]._replace(sign=-1)  # it has left by itself
    found = Execution(translate(R), "serial", rows={"r": 1}).run([*items, gone])
    one, two = (frozenset(item.values.items()) for item in items)
    assert found.written == ((one, 1), (one, -1), (two, 1))


def test_nothing_comes_of_nothing():
    found = Execution(translate(RS)).run([])
    assert (found.states, found.final, found.edges, found.waited) == ((), {}, 0, ())


def test_edges_of_pending_items():
    plan = translate(RS)
    assert [edges(plan, pending) for pending in ("", "r", "rs", "rr", "rsr")] == [0, 0, 3, 3, 9]
    assert edges(plan, ["r", "s", "r"], timestamps=True) == 5


@pytest.mark.parametrize(("settings", "message"), [
    ({"order": "any"}, r"no order 'any'; there are \['serial', 'preserving', 'weak'\] and whole numbers"),
    ({"order": 0}, "no order 0"),
    ({"mode": "batch"}, "no mode 'batch'"),
    ({"rows": {"q": 2}}, "2 rows in the window of 'q'"),
    ({"rows": {"r": 0}}, "0 rows in the window of 'r': from 1 up"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        Execution(translate(RS), **settings)


def test_items_that_cannot_be_are_refused():
    with pytest.raises(PlanError, match="no stream 'q'"):
        Execution(translate(RS)).run([Item("q", {"a": 1})])
    with pytest.raises(PlanError, match="item 0 has the sign 2: 1 or -1"):
        Execution(translate(RS)).run([ONE_R._replace(sign=2)])
