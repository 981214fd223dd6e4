"""Charts and partitions against their definitions, word by word, in fractions; and what they cost on long paths."""

from __future__ import annotations

import functools
import itertools
import math
import sys
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC

from dsms.charts import (
    ChartPiece,
    OperatorTree,
    TupleChart,
    area,
    chains,
    deltas,
    indices,
    latency_partitions,
    lower_envelope,
    memory_partitions,
    output_chart,
    partition,
    prepend,
    progress_chart,
    slopes,
    tuple_segments,
)

MANY = settings(DETERMINISTIC, max_examples=4 * DETERMINISTIC.max_examples)  # for what takes a millisecond
LONG = 100_000

AMOUNTS = st.sampled_from([Fraction(n, d) for n in (1, 2, 3, 5) for d in (1, 2, 3)])
SELECTIVITIES = st.sampled_from([Fraction(n, 4) for n in (1, 2, 3, 4, 4, 6)])
DROPPING = st.sampled_from([Fraction(n, 4) for n in (1, 2, 3, 4)])


# --- envelopes


@st.composite
def charts(draw: st.DrawFn) -> list[tuple[Fraction, Fraction]]:
    """Points further and further right, at any height."""
    widths = draw(st.lists(AMOUNTS, min_size=1, max_size=9))
    heights = draw(st.lists(st.sampled_from([Fraction(n, 2) for n in range(9)]), min_size=len(widths) + 1))
    return list(zip(itertools.accumulate(widths, initial=Fraction(0)), heights, strict=False))


def steepest_descent(points: Sequence[tuple[Fraction, Fraction]]) -> list[int]:
    """C2 and C3 as they stand: the derivative to every later point, the greatest, the smallest index of several."""
    found = [0]
    while (i := found[-1]) < len(points) - 1:
        t, s = points[i]
        derivative = {j: -(points[j][1] - s) / (points[j][0] - t) for j in range(i + 1, len(points))}
        found.append(min(j for j, d in derivative.items() if d == max(derivative.values())))
    return found


@MANY
@given(charts())
def test_the_envelope_goes_from_one_steepest_descent_operator_point_to_the_next(points):
    envelope = lower_envelope(points)
    assert envelope == steepest_descent(points)
    falling = slopes(points, envelope)
    assert falling == sorted(falling, reverse=True)  # proposition 1
    assert [i for chain in chains(points) for i in chain] == list(range(len(points) - 1))
    assert [chain.start for chain in chains(points)] == envelope[:-1]


def test_points_on_one_line_all_stay():
    points = progress_chart([1, 2, 4], [Fraction(1, 2), Fraction(1, 2), 1])
    assert points == [(0, 1), (1, Fraction(1, 2)), (2, Fraction(1, 4)), (3, 0)]
    assert lower_envelope(points) == [0, 1, 2, 3]
    assert slopes(points, [0, 1, 2, 3]) == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]


def test_a_chart_that_rises_all_the_way_is_a_segment_an_operator_or_less():
    assert lower_envelope([(0, 1), (1, 2), (2, 4)]) == [0, 1, 2]
    assert lower_envelope([(0, 1), (1, 3), (2, 4)]) == [0, 2]
    assert slopes([(0, 1), (1, 3), (2, 4)], [0, 2]) == [-1.5]


def test_sizes_are_those_of_what_waits_before_each_operator():
    assert progress_chart([2, 3], [0.5, 1.0], sizes=[10, 4]) == [(0, 10), (2, 2.0), (3.5, 0)]


def test_sizes_or_selectivities_that_are_too_few_are_refused():
    with pytest.raises(ValueError, match="argument"):
        progress_chart([1, 1], [1])


@pytest.mark.parametrize("number", [float, Fraction])
def test_slopes_behind_a_selectivity_of_nothing_are_those_of_the_operators_themselves(number):
    points = progress_chart([number(1), number(4), number(1)], [number(0), number(1) / 2, number(1)])
    envelope = lower_envelope(points)
    assert envelope == [0, 1, 3]
    assert slopes(points, envelope) == pytest.approx([1, 1 / 4.5], rel=1e-3)
    assert all(type(x) is number for point in points[1:-1] for x in point)


@MANY
@given(st.lists(st.tuples(AMOUNTS, DROPPING), min_size=1, max_size=9))
def test_c9_the_deltas_of_a_path_that_never_grows_are_at_most_its_falls_and_1_together(path):
    points = progress_chart(*zip(*path, strict=True))
    envelope = lower_envelope(points)
    falls = [points[a][1] - points[b][1] for a, b in itertools.pairwise(envelope)]
    above = deltas(points, envelope)
    assert all(0 < delta <= fall for delta, fall in zip(above, falls, strict=True))
    assert sum(above) <= 1
    assert all(d == f for d, f, chain in zip(above, falls, chains(points), strict=True) if len(chain) == 1)


@MANY
@given(charts())
def test_c6_a_delta_is_the_highest_the_steps_get_above_their_segment(points):
    for (a, b), found in zip(
        itertools.pairwise(lower_envelope(points)), deltas(points, lower_envelope(points)), strict=True
    ):
        (t, s), (u, r) = points[a], points[b]
        fine = [points[i][0] + (points[i + 1][0] - points[i][0]) * k / 8 for i in range(a, b) for k in range(9)]
        size = [points[i][1] for i in range(a, b) for _ in range(9)]
        line = [s + (r - s) * (at - t) / (u - t) for at in fine]
        assert found == max(held - below for below, held in zip(line, size, strict=True))


# --- partitions


@st.composite
def forests(draw: st.DrawFn, most: int = 6, grow: bool = True) -> list[OperatorTree[int]]:
    """Up to `most` operators, each reading the source or one of those before it."""
    trees: list[OperatorTree[int]] = []
    nodes: list[OperatorTree[int]] = []
    for member in range(draw(st.integers(1, most))):
        node = OperatorTree(
            member,
            draw(AMOUNTS),
            draw(SELECTIVITIES if grow else DROPPING),
            draw(st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(2)])),
            sink=draw(st.integers(0, 4)) == 4,
        )
        producer = draw(st.integers(-1, member - 1)) if member else -1
        (nodes[producer].branches if producer >= 0 else trees).append(node)
        nodes.append(node)
    return trees


def walk(
    trees: Sequence[OperatorTree[Any]], producer: Any = None, reach: Any = 1, size: Any = Fraction(1)
) -> Iterator[Any]:
    """Every operator, its producer, what reaches it, the bytes of a tuple it reads and how many read it."""
    for tree in trees:
        yield tree, producer, reach, size, len(trees)
        yield from walk(tree.branches, tree.member, reach * tree.selectivity, tree.size)


def gains(trees, memory, outputs, forks) -> dict[int, tuple[Fraction, Fraction]]:
    """Time and gain of each operator, as C13 and C19 have them."""
    found = {}
    for tree, _, reach, size, readers in walk(trees):
        credited = size if forks == "private" else size / readers
        made = tree.selectivity * tree.size * (len(tree.branches) if forks == "private" else bool(tree.branches))
        results = tree.selectivity if tree.sink or not tree.branches else 0
        found[tree.member] = (reach * tree.cost, reach * (memory * (credited - made) + outputs * results))
    return found


def units(trees, forks) -> dict[frozenset[int], set[int]]:
    """What cannot be broken up, and the producers each needs first."""
    producers = {tree.member: producer for tree, producer, *_ in walk(trees)}
    if forks != "atomic":
        return {frozenset([member]): {producers[member]} - {None} for member in producers}
    siblings: dict[Any, list[int]] = {}
    for member, producer in producers.items():
        siblings.setdefault(producer, []).append(member)
    return {frozenset(members): {producer} - {None} for producer, members in siblings.items()}


def closed_sets(units: dict[frozenset[int], set[int]], done: set[int]) -> Iterator[frozenset[int]]:
    """All sets that could run next: with a unit, whatever of its producers has not run yet."""
    left = [unit for unit in units if not unit <= done]
    for count in range(1, len(left) + 1):
        for chosen in itertools.combinations(left, count):
            members = frozenset().union(*chosen)
            if all(units[unit] <= members | done for unit in chosen):
                yield members


OBJECTIVES = [(0, 1), (1, 0), (1, Fraction(1, 2))]
FORKS = ("split", "atomic", "private")


@pytest.mark.parametrize("forks", FORKS)
@pytest.mark.parametrize(("memory", "outputs"), OBJECTIVES)
@DETERMINISTIC
@given(trees=forests())
def test_each_piece_is_the_steepest_set_that_can_run_next_and_no_larger_than_need_be(memory, outputs, forks, trees):
    """C19, C22, C25, C26 in one: the best decomposition by gain per time."""
    each, whole, done = gains(trees, memory, outputs, forks), units(trees, forks), set()

    def slope(members):
        return sum(each[m][1] for m in members) / sum(each[m][0] for m in members)

    for piece in partition(trees, size=Fraction(1), memory=memory, outputs=outputs, forks=forks):
        candidates = {members: slope(members) for members in closed_sets(whole, done)}
        members = frozenset(piece.members)
        assert candidates[members] == max(candidates.values()) == piece.slope
        assert not any(s == piece.slope for smaller, s in candidates.items() if smaller < members)
        done |= members
    assert done == set(each)


@pytest.mark.parametrize("forks", FORKS)
@DETERMINISTIC
@given(trees=forests(most=12), memory=st.integers(0, 1))
def test_c20_every_operator_is_in_one_piece_behind_its_producers_in_no_flatter_a_piece(forks, trees, memory):
    pieces = partition(trees, size=Fraction(1), memory=memory, outputs=1 - memory, forks=forks)
    order = [member for piece in pieces for member in piece.members]
    assert sorted(order) == list(range(len(order)))
    assert len(order) == sum(1 for _ in walk(trees))
    slope = {member: piece.slope for piece in pieces for member in piece.members}
    for tree, producer, *_ in walk(trees):
        if producer is not None:
            assert order.index(producer) < order.index(tree.member)
            assert slope[producer] >= slope[tree.member]
    assert [piece.slope for piece in pieces] == sorted(slope[piece.members[0]] for piece in pieces)[::-1]


def serialised(trees, each, forks) -> list[ChartPiece[int]]:
    """The paper's bottom-up procedure with plain lists: sort what is behind, put the operators in front, normalise."""

    def merged(lists):
        return sorted(itertools.chain(*lists), key=lambda piece: -piece.slope)

    def front(trees):
        return ChartPiece(tuple(t.member for t in trees), *map(sum, zip(*(each[t.member] for t in trees), strict=True)))

    if forks == "atomic":
        return prepend(front(trees), merged(serialised(t.branches, each, forks) for t in trees)) if trees else []
    return merged(prepend(front([tree]), serialised(tree.branches, each, forks)) for tree in trees)


@pytest.mark.parametrize("forks", FORKS)
@DETERMINISTIC
@given(trees=forests(most=12), objective=st.sampled_from(OBJECTIVES))
def test_it_is_the_papers_procedure_piece_by_piece_ties_and_all(forks, trees, objective):
    memory, outputs = objective
    found = partition(trees, size=Fraction(1), memory=memory, outputs=outputs, forks=forks)
    assert found == serialised(trees, gains(trees, memory, outputs, forks), forks)


@MANY
@given(st.lists(st.tuples(AMOUNTS, SELECTIVITIES), min_size=1, max_size=9))
def test_on_a_path_memory_partitions_are_chains_and_latency_never_breaks_it(path):
    tree = line(path)
    points = progress_chart(*zip(*path, strict=True))
    for shared in (True, False):
        pieces = memory_partitions([tree], shared=shared)
        assert [piece.members for piece in pieces] == [tuple(chain) for chain in chains(points)]
        assert [piece.slope for piece in pieces] == slopes(points, lower_envelope(points))
    assert [piece.members for piece in latency_partitions([tree])] == [tuple(range(len(path)))]  # C15


def line(path) -> OperatorTree[int]:
    """A tree without forks of (cost, selectivity) each."""
    tree = None
    for member, (cost, selectivity) in reversed(list(enumerate(path))):
        tree = OperatorTree(member, cost, selectivity, branches=[tree] if tree else [])
    assert tree is not None
    return tree


@pytest.mark.parametrize("batch", [1, 2, 3])
@settings(DETERMINISTIC, max_examples=8)
@given(trees=forests(most=5))
def test_latency_partitions_are_optimal_among_all_schedules_of_a_batch(batch, trees):
    """C19, C25b: every order in which operators can take shares of the source's tuples, first come first served."""
    each = gains(trees, 0, 1, "split")
    producers = {tree.member: producer for tree, producer, *_ in walk(trees)}

    @functools.cache
    def least(taken):
        left = sum(each[m][1] * (batch - done) for m, done in enumerate(taken))
        ways = [
            each[m][0] * left + least((*taken[:m], done + 1, *taken[m + 1 :]))
            for m, done in enumerate(taken)
            if done < (batch if producers[m] is None else taken[producers[m]])
        ]
        return min(ways, default=0)

    runs = [each[m] for piece in latency_partitions(trees) for _ in range(batch) for m in piece.members]
    assert area(output_chart(runs)) == least((0,) * len(each))


@MANY
@given(st.lists(st.tuples(AMOUNTS, SELECTIVITIES), min_size=1, max_size=7), st.sampled_from([0, Fraction(1, 3), 2]))
def test_an_index_on_a_path_is_the_best_of_stopping_anywhere_and_of_running_to_the_end(path, gamma):
    found = indices([line(path)], memory=1, outputs=gamma)
    for j in range(len(path)):
        spent, reach, best = Fraction(0), Fraction(1), []
        for k in range(j, len(path)):
            spent, reach = spent + reach * path[k][0], reach * path[k][1]
            best.append((1 - reach) / spent if k < len(path) - 1 else (1 + gamma * reach) / spent)
        assert found[j] == max(best)


@pytest.mark.parametrize("forks", ["split", "private"])
@pytest.mark.parametrize(("memory", "outputs"), OBJECTIVES)
@DETERMINISTIC
@given(trees=forests())
def test_an_index_is_the_steepest_slope_of_what_can_run_from_an_operator_on(memory, outputs, forks, trees):
    found = indices(trees, size=Fraction(1), memory=memory, outputs=outputs, forks=forks)
    each, whole = gains(trees, memory, outputs, forks), units(trees, forks)
    for tree, *_ in walk(trees):
        behind = {below.member for below, *_ in walk([tree])}
        sets = [s for s in closed_sets(whole, set(each) - behind) if tree.member in s]
        assert found[tree.member] == max(sum(each[m][1] for m in s) / sum(each[m][0] for m in s) for s in sets)


def test_nothing_is_cut_into_nothing_and_an_unknown_way_to_fork_is_refused():
    assert all(partition([], outputs=1, forks=forks) == [] for forks in FORKS)
    with pytest.raises(ValueError, match=r"'both'; there are \['split', 'atomic', 'shared', 'private'\]"):
        partition([], forks="both")
    with pytest.raises(ValueError, match="use 'shared'"):
        indices([], forks="atomic")


def test_an_operator_that_costs_nothing_goes_with_its_producer():
    pieces = partition(
        [
            OperatorTree(
                "a", 2.0, 1.0, branches=[OperatorTree("b", 0.0, 1.0, sink=True, branches=[OperatorTree("c", 9.0, 1.0)])]
            )
        ],
        outputs=1,
    )
    assert [piece.members for piece in pieces] == [("a", "b"), ("c",)]


@pytest.mark.parametrize("selectivity", [0.0, 0.5, 2.0])
def test_operators_further_away_than_a_float_can_count_still_have_slopes(selectivity):
    tree = line([(4.0, selectivity)] * 2000)
    pieces = partition([tree], memory=1.0)
    assert all(-0.25 <= piece.slope <= 0.25 for piece in pieces)
    assert all(-0.25 <= index <= 0.25 for index in indices([tree], memory=1.0).values())
    assert [member for piece in pieces for member in piece.members] == list(range(2000))


# --- tuples of a queue

TUPLES = st.tuples(AMOUNTS, st.integers(0, 3).map(Fraction))


@MANY
@given(st.lists(TUPLES, max_size=12))
def test_segments_of_tuples_are_the_steepest_runs_the_shortest_of_several(tuples):
    start, expected = 0, []
    while start < len(tuples):
        ends = {
            n: sum(g for _, g in tuples[start:n]) / sum(t for t, _ in tuples[start:n])
            for n in range(start + 1, len(tuples) + 1)
        }
        stop = min(n for n, slope in ends.items() if slope == max(ends.values()))
        expected.append((start, stop, ends[stop]))
        start = stop
    assert [(run.start, run.stop, run.slope) for run in tuple_segments(tuples)] == expected


@MANY
@given(st.lists(st.tuples(st.lists(TUPLES, max_size=7), st.integers(0, 6)), max_size=8))
def test_a_chart_kept_up_to_date_is_one_drawn_anew(phases):
    """Some tuples come in, some leave; only then is it looked at, as looking must not be what keeps it right."""
    chart, queue = TupleChart(), []
    for coming, leaving in phases:
        for entry in coming:
            chart.push(*entry)
        queue += coming
        for _ in range(min(leaving, len(queue))):
            chart.pop()
        del queue[:leaving]
        assert len(chart) == len(queue)
        if queue:
            assert chart.slope == tuple_segments(queue)[0].slope


def test_an_empty_queue_has_neither_a_slope_nor_a_tuple_to_leave():
    with pytest.raises(IndexError, match="no slope"):
        _ = TupleChart().slope
    with pytest.raises(IndexError, match="no tuple"):
        TupleChart().pop()


def test_tuples_that_take_no_time_come_at_once_unless_they_lose_something():
    assert [run.slope for run in tuple_segments([(0, 1), (2, 1), (0, -1)])] == [math.inf, 0.5, -math.inf]
    assert [run.slope for run in tuple_segments([(1, 1), (0, 0)])] == [1]


@settings(DETERMINISTIC, max_examples=40)
@given(st.lists(st.lists(TUPLES, min_size=1, max_size=3), min_size=2, max_size=3))
def test_c28_maximum_slope_segments_are_optimal_among_all_schedules_of_a_batch(queues):
    @functools.cache
    def least(taken):
        left = sum(g for queue, n in zip(queues, taken, strict=True) for _, g in queue[n:])
        ways = [
            queue[n][0] * left + least((*taken[:q], n + 1, *taken[q + 1 :]))
            for q, (queue, n) in enumerate(zip(queues, taken, strict=True))
            if n < len(queue)
        ]
        return min(ways, default=0)

    runs = [(run, queue) for queue in queues for run in tuple_segments(queue)]
    order = sorted(runs, key=lambda pair: -pair[0].slope)
    assert area(output_chart(t for run, queue in order for t in queue[run.start : run.stop])) == least(
        (0,) * len(queues)
    )


# --- what it costs


def long_chart(operators: int) -> None:
    points = progress_chart(
        [1.0 + i % 7 for i in range(operators)], [1.0 - (i % 3) / operators for i in range(operators)]
    )
    assert sum(map(len, chains(points))) == operators


def path(operators: int) -> list[OperatorTree[int]]:
    return [line([(1.0 + i % 7, (1.0, 0.5, 1.5, 0.0)[i % 4]) for i in range(operators)])]


def one_piece(operators: int) -> list[OperatorTree[int]]:
    return [line([(1.0, 1.0)] * operators)]


def fork(operators: int) -> list[OperatorTree[int]]:
    return [OperatorTree(i, 1.0 + i * 7919 % operators, 1.0) for i in range(operators)]


def comb(operators: int) -> list[OperatorTree[int]]:
    """A path of which every output is read by one more, slower operator."""
    tree = OperatorTree(0, 1.0, 1.0)
    for i in range(1, operators // 2):
        tree = OperatorTree(2 * i, 1.0, 1.0, branches=[OperatorTree(2 * i + 1, operators + i % 50, 1.0), tree])
    return [tree]


def cut(trees: list[OperatorTree[int]]) -> None:
    assert partition(trees, memory=1.0, forks="atomic")
    assert partition(trees, outputs=1.0)


def long_queue(tuples: int) -> None:
    """Falling costs make one run, which stays the same when its head leaves: the worst case for cutting it again."""
    chart = TupleChart()
    for cost in range(tuples, 0, -1):
        chart.push(float(cost), 1.0)
        chart.push(cost - 0.5, 1.0)
        assert chart.slope > 0
        chart.pop()
    while chart:
        chart.pop()
        assert not chart or chart.slope > 0


WORK = [
    pytest.param(long_chart, id="envelope"),
    *(pytest.param(lambda n, shape=shape: cut(shape(n)), id=shape.__name__) for shape in (path, one_piece, fork, comb)),
    pytest.param(long_queue, id="tuples"),
]


@pytest.mark.parametrize("work", WORK)
def test_twice_the_operators_are_little_more_than_twice_the_work(work):
    def bytecodes(operators: int) -> int:
        executed = 0

        def count(frame: Any, event: str, argument: Any) -> Any:
            nonlocal executed
            frame.f_trace_opcodes = True
            executed += event == "opcode"
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            work(operators)
        finally:
            sys.settrace(before)
        return executed

    assert bytecodes(800) <= 2.4 * bytecodes(400)


def test_a_path_of_100000_operators_takes_seconds_and_no_recursion():
    """What C code does is not counted in bytecodes: quadratic there would be minutes here."""
    started = time.process_time()
    long_chart(LONG)
    for shape in (path, one_piece, comb):
        assert sum(len(piece.members) for piece in latency_partitions(shape(LONG))) >= LONG - 1
    assert time.process_time() - started < 30


def test_readers_of_a_shared_tuple_go_together_unless_one_does_better_alone():
    """A and B free the tuple when both have read it: (1 − 0.3)/3; what is behind B is too slow to be taken in."""
    a, b = (
        OperatorTree("A", 1, Fraction(1, 10)),
        OperatorTree("B", 2, Fraction(3, 10), branches=[OperatorTree("C", 20, 1)]),
    )
    found = indices([a, b], memory=1, forks="shared")
    assert found == {"A": Fraction(7, 30), "B": Fraction(7, 30), "C": Fraction(1, 20)}
    # With results worth much, A alone yields 0.1 a unit of time, more than both together: it frees nothing and leaves.
    worth = indices([a, b], memory=1, outputs=1000, forks="shared")
    assert worth["A"] == 1000 * Fraction(1, 10)
    assert worth["A"] > worth["B"]


def test_an_operator_reached_by_two_ways_goes_by_the_one_most_of_its_tuples_come():
    j = OperatorTree("J", 1, Fraction(1, 2))
    thin, wide = (
        OperatorTree("thin", 1, Fraction(1, 4), branches=[j]),
        OperatorTree("wide", 1, 1, branches=[j, OperatorTree("C", 4, 1)]),
    )
    apart = [indices([tree], memory=1, forks="shared")["J"] for tree in (thin, wide)]
    assert apart[0] != apart[1]
    for trees in ([thin, wide], [wide, thin]):
        assert indices(trees, memory=1, forks="shared")["J"] == apart[1]
