"""Getta, Vossough: the examples of translation, of cost, of conflicts and of the scheduling graph."""

from __future__ import annotations

import pytest

from dsms.dataflow import (
    Cost,
    DataflowExecution,
    DifferenceTerm,
    JoinTerm,
    SchedulingGraph,
    StreamItem,
    StreamTerm,
    best_order,
    conflict_matrix,
    conflicting_pairs,
    count_dashed_edges,
    enumerate_orders,
    enumerate_plans,
    is_equal_every,
    is_order_invariant,
    is_order_preserving,
    is_weakly_order_preserving,
    total_time,
    translate,
)

THREE = JoinTerm(JoinTerm(StreamTerm("r", "ab"), StreamTerm("s", "bc"), "b"), StreamTerm("t", "ac"), "ac")
WITHOUT = DifferenceTerm(JoinTerm(StreamTerm("r", "ab"), StreamTerm("s", "bc"), "b"), StreamTerm("t", "cd"), "c")
DIFFERENCE = DifferenceTerm(StreamTerm("r", "x"), StreamTerm("s", "x"), "x")


def printed(flows):
    return [str(flow) for flow in flows]


def test_three_way_join_without_intermediate_window():
    """t's attributes are printed the other way round in the paper: t(ac) meets s(bc) on c, then r(ab) on a and b."""
    assert printed(translate(THREE)) == [
        "r: ->(w_r), join[b](w_s), join[a,c](w_t), ->(w_out)",
        "s: ->(w_s), join[b](w_r), join[a,c](w_t), ->(w_out)",
        "t: ->(w_t), join[c](w_s), join[a,b](w_r), ->(w_out)",
    ]


def test_three_way_join_with_intermediate_window():
    assert printed(translate(THREE, ["rs"])) == [
        "r: ->(w_r), join[b](w_s), ->(w_rs), join[a,c](w_t), ->(w_out)",
        "s: ->(w_s), join[b](w_r), ->(w_rs), join[a,c](w_t), ->(w_out)",
        "t: ->(w_t), join[a,c](w_rs), ->(w_out)",
    ]


def test_three_way_join_has_two_orders_a_stream_and_eight_plans():
    assert {stream: printed(enumerate_orders(THREE, stream)) for stream in "rst"} == {
        "r": [
            "r: ->(w_r), join[b](w_s), join[a,c](w_t), ->(w_out)",
            "r: ->(w_r), join[a](w_t), join[b,c](w_s), ->(w_out)",
        ],
        "s": [
            "s: ->(w_s), join[b](w_r), join[a,c](w_t), ->(w_out)",
            "s: ->(w_s), join[c](w_t), join[a,b](w_r), ->(w_out)",
        ],
        "t": [
            "t: ->(w_t), join[c](w_s), join[a,b](w_r), ->(w_out)",
            "t: ->(w_t), join[a](w_r), join[b,c](w_s), ->(w_out)",
        ],
    }
    assert len(set(enumerate_plans(THREE))) == 8


def test_difference():
    assert printed(translate(DIFFERENCE)) == [
        "r: ->(w_r), -left[x](w_s), ->(w_out)",
        "s: ->(w_s), -right[x](w_r), ->(w_out)",
    ]


def test_join_and_difference():
    assert printed(translate(WITHOUT)) == [
        "r: ->(w_r), join[b](w_s), -left[c](w_t), ->(w_out)",
        "s: ->(w_s), join[b](w_r), -left[c](w_t), ->(w_out)",
        "t: ->(w_t), -right[c](w_s), join[b](w_r), ->(w_out)",
    ]


@pytest.mark.parametrize("mode", ["block", "item"])
def test_the_difference_comes_first_as_it_never_puts_out_more_than_it_gets(mode):
    """Of r it cannot: r has no c."""
    costs = {"record": Cost(1), "join": Cost(2, 3), "left": Cost(2, 0.5), "right": Cost(2, 2)}
    best = [
        best_order(enumerate_orders(WITHOUT, stream), lambda operation: costs[operation.kind], mode) for stream in "rs"
    ]
    assert printed(best) == [
        "r: ->(w_r), join[b](w_s), -left[c](w_t), ->(w_out)",
        "s: ->(w_s), -left[c](w_t), join[b](w_r), ->(w_out)",
    ]


@pytest.mark.parametrize(("mode", "expected"), [("block", 23), ("item", 14.5)])
def test_time_of_an_expression(mode, expected):
    assert total_time([Cost(1, 2), Cost(2, 3), Cost(3)], mode) == expected


def test_conflicts_of_the_difference_as_printed():
    matrix = conflict_matrix(translate(DIFFERENCE), checked=False)
    assert conflicting_pairs(matrix) == [(1, 5), (2, 4), (3, 6)]
    assert all(matrix[i][i] for i in range(6))


def test_conflicts_of_the_difference_that_looks_for_equals_in_its_own_window():
    assert conflicting_pairs(conflict_matrix(translate(DIFFERENCE))) == [(1, 5), (2, 4), (3, 6), (4, 5)]


@pytest.mark.parametrize(("items", "timestamps", "checked", "expected"), [
    ("rsr", False, False, 9),
    ("rsr", False, True, 9),
    ("ss", False, False, 3),
    ("ss", False, True, 5),
    ("rsr", True, True, 5),
    ("ss", True, True, 3),
])  # fmt: skip
def test_dashed_edges_of_pending_items(items, timestamps, checked, expected):
    plan = translate(DIFFERENCE)
    graph = SchedulingGraph.of(plan, conflict_matrix(plan, timestamps=timestamps, checked=checked))
    for item in items:
        graph = graph.arrive(item)
    assert graph.waits == count_dashed_edges(plan, items, timestamps, checked) == expected
    assert len(graph.solid) == 2 * len(items)


MEET = [StreamItem("t", {"a": 1, "c": 1}), StreamItem("r", {"a": 1, "b": 1}), StreamItem("s", {"b": 1, "c": 1})]
ABC = frozenset({("a", 1), ("b", 1), ("c", 1)})


def last(ready):
    return ready[-1]


def test_correctness_of_concurrent_executions():
    """The last item runs first: without edges the items of t and s yield nothing, and r, the last, joins with all."""
    items, plan = [MEET[1], MEET[2], MEET[0], MEET[0]], translate(THREE)
    serial = DataflowExecution(plan, "serial").run(items).states
    assert serial == ({}, {}, {ABC: 1}, {ABC: 2})
    preserving, weak, second = (DataflowExecution(plan, order).run(items, last) for order in ("preserving", "weak", 2))
    assert is_order_preserving(preserving.states, serial)
    assert weak.states == ({ABC: 2},) * 4
    assert is_weakly_order_preserving(weak.states, serial)
    assert not is_equal_every(2, weak.states, serial)
    assert second.states == ({}, {}, {ABC: 2}, {ABC: 2})  # of the second two, the later t is first
    assert is_equal_every(2, second.states, serial)
    assert not is_order_preserving(second.states, serial)


@pytest.mark.parametrize(("mode", "expected"), [("block", [1, 2, 6]), ("item", [1, 1, 1, 1, 1, 1, 1, 1, 1])])
def test_a_run_tells_how_much_was_done_at_each_step(mode, expected):
    """The second r drives the first out of its window: two items, of which each meets three of s."""
    plan = translate(JoinTerm(StreamTerm("r", "ab"), StreamTerm("s", "bc"), "b"))
    items = [StreamItem("s", {"b": 1, "c": c}) for c in range(3)] + [
        StreamItem("r", {"a": a, "b": 1}) for a in range(2)
    ]
    run = DataflowExecution(plan, "serial", rows={"r": 1}, mode=mode).run(items)
    assert [taken for node, taken in zip(run.ran, run.handled, strict=True) if node.item == 4] == expected


def test_order_invariant_expressions_need_no_scheduling_graph():
    for plan in enumerate_plans(THREE):
        assert is_order_invariant(plan, MEET)
        found = DataflowExecution(plan, "weak").run(MEET, last)
        assert (found.final, found.edges) == ({ABC: 1}, 0)


@pytest.mark.parametrize(("raised", "expected"), [(True, {ABC: 1}), (False, {})])
def test_an_intermediate_result_that_comes_late_is_given_a_higher_timestamp(raised, expected):
    """r and s are recorded before t, which looks into w_rs before their result is there; that then has to see t."""
    steps = iter([1, 2, 0, 0, 1, 2, 2, 2, 2])  # of the items t, r, s: whose turn it is
    execution = DataflowExecution(translate(THREE, ["rs"]), "weak", raised=raised)

    def choose(ready):
        turn = next(steps)
        return next(node for node in ready if node.item == turn)

    assert execution.run(MEET, choose).final == expected
