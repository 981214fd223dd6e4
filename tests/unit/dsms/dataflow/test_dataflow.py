"""Dataflow expressions against the query they translate; the cost model; the scheduling graph."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC

from dsms.dataflow import (
    Cost,
    DifferenceTerm,
    JoinTerm,
    Node,
    Operation,
    SchedulingGraph,
    StreamTerm,
    WindowTradeoff,
    best_order,
    best_plan,
    conflict_matrix,
    dataflow_time,
    enumerate_orders,
    enumerate_plans,
    has_conflict,
    input_streams,
    intermediate_names,
    number_operations,
    operation_start_times,
    total_time,
    translate,
    work_rate,
)
from dsms.errors import PlanError

R, S, T, U = StreamTerm("r", "ab"), StreamTerm("s", "bc"), StreamTerm("t", "ac"), StreamTerm("u", "cd")
RS, TU = JoinTerm(R, S, "b"), JoinTerm(T, U, "c")
EXPRESSIONS = {
    "leaf": R,
    "left-deep": JoinTerm(RS, T, "ac"),
    "right-deep": JoinTerm(T, RS, "ac"),
    "bushy": JoinTerm(RS, TU, "ac"),
    "deeper": JoinTerm(JoinTerm(RS, T, "ac"), U, "c"),
    "difference": DifferenceTerm(R, StreamTerm("s", "ab"), "a"),
    "of a join": DifferenceTerm(RS, U, "c"),
    "of two streams at once": DifferenceTerm(RS, T, "ac"),
    "of what both have": DifferenceTerm(RS, StreamTerm("t", "bd"), "b"),
    "inside": JoinTerm(DifferenceTerm(S, U, "c"), R, "b"),
    "twice": DifferenceTerm(DifferenceTerm(RS, T, "a"), U, "c"),
    "joined after": JoinTerm(DifferenceTerm(RS, U, "c"), T, "ac"),
    "of a composite": DifferenceTerm(RS, TU, "ac"),
    "of a difference": DifferenceTerm(S, DifferenceTerm(T, U, "c"), "c"),
}


# --- a small interpreter: an item is a set of (attribute, value) pairs, a window counts items


def part(item, on):
    return {pair for pair in item if pair[0] in on}


def matches(window, item, on):
    """Return the items of a window that equal this one on some attributes, with duplicates."""
    return [other for other, count in window.items() for _ in range(count) if part(other, on) == part(item, on)]


def outputs(operation, windows, item, sign):
    """Return the output of an operation for one signed item, by the paper's definitions plus the check for -right."""
    window = windows.setdefault(operation.window, Counter())
    if operation.kind == "record":
        window[item] += sign
        return [(item, sign)]
    met = matches(window, item, operation.on)
    if operation.kind == "join":
        return [(item | other, sign) for other in met]
    if operation.kind == "left":
        return [] if met else [(item, sign)]
    equals = len(matches(windows[operation.own], item, operation.on))
    return [(other, -sign) for other in met] if equals == (sign > 0) else []


def process(operations, windows, item, sign):
    if operations:
        for each in outputs(operations[0], windows, item, sign):
            process(operations[1:], windows, *each)


def meaning(expression, windows):
    """Compute the result of an expression from the contents of its input windows."""
    if isinstance(expression, StreamTerm):
        return +windows.get(f"w_{expression.name}", Counter())
    left, right = meaning(expression.left, windows), meaning(expression.right, windows)
    if isinstance(expression, DifferenceTerm):
        return Counter({item: n for item, n in left.items() if not matches(right, item, expression.on)})
    result = Counter()
    for item, n in left.items():
        for other in matches(right, item, expression.on):
            result[item | other] += n
    return result


def parts(expression):
    """List an expression and all its subexpressions."""
    inside = [] if isinstance(expression, StreamTerm) else [*parts(expression.left), *parts(expression.right)]
    return [expression, *inside]


def contents(windows, name="w_out"):
    return {item: count for item, count in windows.get(name, {}).items() if count}


def an_item(chance, stream):
    return frozenset((attribute, chance.randrange(2)) for attribute in stream.attributes)


def storable(expression):
    """List the choices of stored results that have a plan."""
    inside = intermediate_names(expression)
    for stored in (some for count in range(len(inside) + 1) for some in combinations(inside, count)):
        try:
            translate(expression, stored)
        except PlanError:
            continue
        yield stored


# --- translation


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_order_and_choice_of_windows_gives_the_query_result(expression):
    """After each insertion or deletion, w_out and every stored window equal the result of their expression."""
    chance = random.Random(1)
    for stored in storable(expression):
        choices = {
            stream: list(enumerate_orders(expression, stream.name, stored)) for stream in input_streams(expression)
        }
        for turn in range(max(map(len, choices.values()))):
            plan = {stream: flows[turn % len(flows)] for stream, flows in choices.items()}
            windows = {}
            for _ in range(30):
                stream = chance.choice(list(plan))
                held = list(contents(windows, f"w_{stream.name}"))
                leaves = held and chance.random() < 0.4
                item = chance.choice(held) if leaves else an_item(chance, stream)
                process(plan[stream].operations, windows, item, -1 if leaves else 1)
                assert contents(windows) == meaning(expression, windows), [str(flow) for flow in plan.values()]
                for inner in parts(expression):
                    if inner.name in stored:
                        assert contents(windows, f"w_{inner.name}") == meaning(inner, windows)


@pytest.mark.parametrize(("name", "stored", "expected"), [
    ("right-deep", (), "t: ->(w_t), join[a](w_r), join[b,c](w_s), ->(w_out)"),
    ("bushy", ("rs", "tu"), "u: ->(w_u), join[c](w_t), ->(w_tu), join[a,c](w_rs), ->(w_out)"),
    ("bushy", ("rs",), "u: ->(w_u), join[c](w_t), join[a,c](w_rs), ->(w_out)"),
    ("bushy", (), "r: ->(w_r), join[b](w_s), join[a,c](w_t), join[c](w_u), ->(w_out)"),
    ("deeper", (), "u: ->(w_u), join[c](w_t), join[c](w_s), join[a,b](w_r), ->(w_out)"),
    ("of two streams at once", ("rs",), "t: ->(w_t), -right[a,c](w_rs), ->(w_out)"),
    ("of what both have", (), "t: ->(w_t), -right[b](w_s), join[b](w_r), ->(w_out)"),
    ("inside", (), "r: ->(w_r), join[b](w_s), -left[c](w_u), ->(w_out)"),
    ("of a composite", ("rs", "tu"), "t: ->(w_t), join[c](w_u), ->(w_tu), -right[a,c](w_rs), ->(w_out)"),
])  # fmt: skip
def test_translations(name, stored, expected):
    stream = expected[0]
    flow = next(flow for flow in translate(EXPRESSIONS[name], stored) if flow.stream == stream)
    assert str(flow) == expected


def test_an_intermediate_result_that_must_be_stored_is_named():
    assert list(storable(EXPRESSIONS["of a composite"])) == [("rs", "tu")]
    assert list(storable(EXPRESSIONS["of two streams at once"])) == [("rs",)]
    with pytest.raises(PlanError, match=r"is subtracted on \['a', 'c'\].*store one of \['rs'\]"):
        translate(EXPRESSIONS["of two streams at once"])
    with pytest.raises(PlanError, match="store 'tu'"):
        translate(EXPRESSIONS["of a composite"], ["rs"])
    with pytest.raises(PlanError, match="store 'tu'"):
        next(enumerate_orders(EXPRESSIONS["of a composite"], "t", ["rs"]))


def test_a_join_waits_until_it_shares_an_attribute():
    chain = JoinTerm(JoinTerm(R, S, "b"), U, "c")  # r and u share nothing
    assert [len(list(enumerate_orders(chain, stream))) for stream in "rsu"] == [1, 2, 1]
    assert all(
        op.on for plan in enumerate_plans(chain) for flow in plan for op in flow.operations if op.kind != "record"
    )


@pytest.mark.parametrize(("build", "message"), [
    (lambda: JoinTerm(R, U, "a"), r"r\(a,b\) and u\(c,d\) on \['a'\]: expected attributes of both: there are none"),
    (lambda: JoinTerm(R, S, ""), r"on \[\]: expected attributes of both: \['b'\]"),
    (lambda: JoinTerm(R, StreamTerm("s", "ab"), "a"), r"omits some of the shared attributes \['a', 'b'\]"),
    (lambda: JoinTerm(R, R, "ab"), r"has \['r'\] twice"),
    (lambda: JoinTerm(JoinTerm(R, S, "b"), StreamTerm("rs", "ab"), "ab"), r"has \['rs'\] twice"),
    (lambda: StreamTerm("out", "a"), "'out'"),
    (
        lambda: JoinTerm(JoinTerm(StreamTerm("o", "a"), StreamTerm("u", "a"), "a"), StreamTerm("t", "a"), "a"),
        r"has \['out'\] twice",
    ),
    (lambda: StreamTerm("r", ""), "needs attributes"),
    (lambda: translate(RS, ["sr"]), "no result 'sr' to store.*there are none"),
    (lambda: list(enumerate_orders(RS, "q")), r"no stream 'q'.*\['r', 's'\]"),
])  # fmt: skip
def test_invalid_expressions_are_refused(build, message):
    with pytest.raises(PlanError, match=message):
        build()


def test_longer_names_are_separated_by_underscores():
    orders_, items = StreamTerm("orders", ("customer", "id")), StreamTerm("items", ("id", "price"))
    paid = JoinTerm(JoinTerm(orders_, items, ["id"]), StreamTerm("x", ("customer",)), ["customer"])
    assert intermediate_names(paid) == ("orders_items",)
    assert str(translate(paid, ["orders_items"])[2]) == "x: ->(w_x), join[customer](w_orders_items), ->(w_out)"


# --- cost

COSTS = st.lists(st.builds(Cost, *[st.fractions(0, 4, max_denominator=4)] * 2), min_size=1, max_size=6)


@DETERMINISTIC
@given(COSTS)
def test_time_equals_its_definition_and_both_modes_agree_for_one_output_each(costs):
    expected = sum(cost.time * math.prod(before.outputs for before in costs[:i]) for i, cost in enumerate(costs))
    assert total_time(costs) == expected
    ones = [Cost(cost.time) for cost in costs]
    assert total_time(ones, "item") == total_time(ones, "block") == sum(cost.time for cost in costs)
    assert total_time(costs, "item") == (expected + total_time(ones)) / 2


def test_item_mode_is_a_delay_even_if_no_item_arrives():
    assert operation_start_times([Cost(1, 0), Cost(2), Cost(4)], "item") == [1, 1, 2]
    assert operation_start_times([Cost(1, 0), Cost(2), Cost(4)], "block") == [1, 0, 0]


def test_invalid_costs_and_modes_are_refused():
    for wrong in ((-1, 1), (1, -1), (float("nan"), 1), (1, float("inf"))):
        with pytest.raises(PlanError, match="must be finite, 0 or more"):
            Cost(*wrong)
    with pytest.raises(PlanError, match="no mode 'batch'"):
        total_time([Cost(1)], "batch")


def test_among_equal_orders_the_first_wins():
    flows = list(enumerate_orders(EXPRESSIONS["left-deep"], "r"))
    assert best_order(flows, lambda _: Cost(1)) == flows[0]
    assert best_order(flows[::-1], lambda _: Cost(1)) == flows[1]


@DETERMINISTIC
@given(st.randoms(use_true_random=False))
def test_the_best_order_takes_the_least_time(chance):
    prices = {}

    def estimate(operation: Operation) -> Cost:
        return prices.setdefault(operation, Cost(Fraction(chance.randint(1, 9)), Fraction(chance.randint(0, 8), 4)))

    flows = list(enumerate_orders(EXPRESSIONS["twice"], "s"))
    assert len(flows) > 1
    best = best_order(flows, estimate, "item")
    assert dataflow_time(best, estimate, "item") == min(dataflow_time(flow, estimate, "item") for flow in flows)


DETOUR = WindowTradeoff(record_s=1, record_t=1, record_rs=1, join_r=2, join_s=2, join_rs=3, outputs_s=2)


@pytest.mark.parametrize(("since", "wait", "worthwhile"), [(0, 3, False), (0.5, 2.5, True), (3, 0, True), (9, 0, True)])
def test_a_window_pays_unless_an_item_waits_too_long_for_it(since, wait, worthwhile):
    assert DETOUR.longest_wait() == 2 + 2 * 2 - 3
    assert DETOUR.wait(since) == wait
    assert DETOUR.worthwhile(since) == worthwhile == (DETOUR.with_window(since) < DETOUR.without_window())


def rates(t):
    return {"r": 1.0, "s": 1.0, "t": t}


def priced(operation):
    """Return the costs of the same detour for each operation: an item of r or s gives one of rs."""
    times = {"w_rs": 3, "w_r": 2, "w_s": 2, "w_t": 1}
    if operation.kind == "record":
        return Cost(1)
    outputs_of = {("c",): 2, ("a", "b"): 0.5}
    return Cost(times[operation.window], outputs_of.get(operation.on, 1))


@pytest.mark.parametrize(("t", "stored"), [(Fraction(1, 2), False), (Fraction(2, 3), False), (1, True), (5, True)])
def test_rates_decide_whether_a_result_is_stored(t, stored):
    """Two results per time unit cost 1 each; an item of t saves 3: the window pays from a rate of 2/3."""
    assert DETOUR.worthwhile_at(rate_t=t, results=2) == stored


def test_the_best_plan_stores_what_pays_for_its_upkeep():
    expression = EXPRESSIONS["left-deep"]
    seldom, often = (best_plan(expression, priced, rates(t)) for t in (0.01, 100))
    assert "w_rs" not in str(seldom[0]) + str(seldom[2])
    assert "w_rs" in str(often[0])
    assert str(often[2]) == "t: ->(w_t), join[a,c](w_rs), ->(w_out)"
    for t, best in ((0.01, seldom), (100, often)):
        every = [plan for stored in ((), ("rs",)) for plan in enumerate_plans(expression, stored)]
        assert work_rate(best, priced, rates(t)) == min(work_rate(plan, priced, rates(t)) for plan in every)


def test_the_best_plan_stores_required_results_and_needs_every_rate():
    best = best_plan(EXPRESSIONS["of a composite"], lambda _: Cost(1), dict.fromkeys("rstu", 1.0))
    assert "->(w_tu)" in str(best[2])
    with pytest.raises(PlanError, match=r"no arrival rate of \['s'\]; there are \['r'\]"):
        best_plan(RS, lambda _: Cost(1), {"r": 1.0})


# --- conflicts and the scheduling graph


def test_timestamps_settle_input_windows_but_not_intermediate_ones_nor_the_results():
    plan = translate(EXPRESSIONS["left-deep"], ["rs"])
    operations = [operation for _, operation in number_operations(plan)]
    with_, without = conflict_matrix(plan, timestamps=True), conflict_matrix(plan)
    gone = {
        frozenset((str(operations[i]), str(operations[j])))
        for i, row in enumerate(without)
        for j, held in enumerate(row)
        if held and not with_[i][j]
    }
    assert gone == {
        frozenset(("->(w_r)", "join[b](w_r)")),
        frozenset(("->(w_s)", "join[b](w_s)")),
        frozenset(("->(w_t)", "join[a,c](w_t)")),
    }
    rows = {str(operation): i for i, operation in enumerate(operations)}
    assert with_[rows["->(w_rs)"]][rows["join[a,c](w_rs)"]]
    assert [list(column) for column in zip(*without, strict=True)] == [list(row) for row in without]


def arrived(plan, items, matrix=None):
    graph = SchedulingGraph.of(plan, matrix)
    for stream in items:
        graph = graph.arrive(stream)
    return graph


def test_an_operation_starts_when_no_edge_enters_it():
    plan = translate(EXPRESSIONS["difference"])  # rows 0 to 2 are r's, 3 to 5 are s's
    graph = arrived(plan, "rs")
    assert graph.startable == [Node(0, 0)]  # s is not recorded before r has read w_s
    assert {edge for edge in graph.dashed if edge[0] == Node(0, 0)} == {(Node(0, 0), Node(1, 4))}
    graph = graph.complete(Node(0, 0)).complete(Node(0, 1))
    assert graph.startable == [Node(0, 2), Node(1, 3)]
    graph = graph.complete(Node(1, 3)).complete(Node(1, 4))
    assert graph.startable == [Node(0, 2)]
    assert graph.complete(Node(0, 2)).startable == [Node(1, 5)]
    with pytest.raises(PlanError, match=r"Node\(item=1, row=5\) cannot run before.*Node\(item=0, row=2\)"):
        graph.complete(Node(1, 5))
    with pytest.raises(PlanError, match="no stream 'q'"):
        graph.arrive("q")


def test_an_operation_without_output_ends_its_item():
    graph = arrived(translate(EXPRESSIONS["difference"]), "rs").complete(Node(0, 0))
    ended = graph.complete(Node(0, 1), empty=True)
    assert ended.chains == ((Node(1, 3), Node(1, 4), Node(1, 5)),)
    assert ended.waits == 0 < graph.complete(Node(0, 1)).waits
    assert [chain[0].item for chain in ended.arrive("r").arrive("r").chains] == [1, 2, 3]


def interleaved(expression, matrix_of, chance, stored=()):
    """Run items in an order that the graph allows, and the same items serially."""
    plan = translate(expression, stored)
    by_name = {stream.name: stream for stream in input_streams(expression)}
    items = [chance.choice(list(by_name)) for _ in range(8)]
    values = [an_item(chance, by_name[name]) for name in items]
    flows = {flow.stream: flow.operations for flow in plan}
    serial: dict = {}
    for name, value in zip(items, values, strict=True):
        process(flows[name], serial, value, 1)
    operations = [operation for _, operation in number_operations(plan)]
    graph, windows = arrived(plan, items, matrix_of(plan)), {}
    waiting = {i: [(value, 1)] for i, value in enumerate(values)}
    ran = []
    while graph.chains:
        node = chance.choice(graph.startable)
        given_ = waiting[node.item]
        waiting[node.item] = [out for each in given_ for out in outputs(operations[node.row], windows, *each)]
        graph = graph.complete(node, empty=not waiting[node.item])
        ran.append(node)
    return contents(windows), contents(serial), ran


@pytest.mark.parametrize(("name", "stored"), [
    ("left-deep", ()), ("left-deep", ("rs",)), ("difference", ()), ("of a join", ()), ("of a join", ("rs",)),
])  # fmt: skip
def test_any_order_that_the_graph_allows_gives_the_serial_result(name, stored):
    chance = random.Random(2)
    overtaken = 0
    for _ in range(15):
        found, serial, ran = interleaved(EXPRESSIONS[name], conflict_matrix, chance, stored)
        assert found == serial
        overtaken += any(one.item > other.item for one, other in pairwise(ran))
    assert overtaken  # or nothing ran concurrently


@pytest.mark.parametrize("name", ["left-deep", "difference", "of a join"])
def test_without_dashed_edges_results_are_lost_or_doubled(name):
    chance = random.Random(3)

    def none(plan):
        return tuple((False,) * len(number_operations(plan)) for _ in number_operations(plan))

    runs = [interleaved(EXPRESSIONS[name], none, chance) for _ in range(30)]
    assert any(found != serial for found, serial, _ in runs)


def stamped(expression, chance, honour, stored=(), matrix=None):
    """Run items concurrently under the timestamp rule, and compute the query result."""
    plan = translate(expression, stored)
    by_name = {stream.name: stream for stream in input_streams(expression)}
    items = [chance.choice(list(by_name)) for _ in range(8)]
    operations = [operation for _, operation in number_operations(plan)]
    graph = arrived(plan, items, matrix or conflict_matrix(plan, timestamps=True))
    waiting = {i: [(an_item(chance, by_name[name]), 1)] for i, name in enumerate(items)}
    stamps: dict[int, int] = {}
    past: list[dict] = []  # the windows as of each timestamp
    windows: dict = {}
    while graph.chains:
        node = chance.choice(graph.startable)
        operation = operations[node.row]
        by_stamp = operation.kind != "record" and operation.window[2:] in by_name  # not w_rs: its readers wait
        seen = past[stamps[node.item]] if by_stamp and honour else windows
        waiting[node.item] = [out for each in waiting[node.item] for out in outputs(operation, seen, *each)]
        if node.item not in stamps:
            stamps[node.item] = len(past)
            past.append({name: Counter(window) for name, window in windows.items()})
        graph = graph.complete(node, empty=not waiting[node.item])
    return contents(windows), meaning(expression, windows)


@pytest.mark.parametrize("name", ["left-deep", "difference", "of a join"])
def test_timestamps_replace_the_edges_they_remove(name):
    chance = random.Random(4)
    runs = [stamped(EXPRESSIONS[name], chance, honour=True) for _ in range(30)]
    assert all(found == wanted for found, wanted in runs)
    runs = [stamped(EXPRESSIONS[name], chance, honour=False) for _ in range(30)]
    assert any(found != wanted for found, wanted in runs)


def test_with_an_intermediate_window_timestamps_follow_the_order_of_arrival():
    """Otherwise t may be recorded before an earlier r, which then joins it in w_t although t waited for w_rs."""
    expression, chance = EXPRESSIONS["left-deep"], random.Random(5)
    plan = translate(expression, ["rs"])
    rows = [operation for _, operation in number_operations(plan)]
    runs = [stamped(expression, chance, True, ["rs"]) for _ in range(40)]
    assert all(found == wanted for found, wanted in runs)
    inputs_only = frozenset(("w_r", "w_s", "w_t"))
    loose = tuple(tuple(one == other or has_conflict(one, other, inputs_only) for other in rows) for one in rows)
    runs = [stamped(expression, chance, True, ["rs"], loose) for _ in range(40)]
    assert any(found != wanted for found, wanted in runs)
