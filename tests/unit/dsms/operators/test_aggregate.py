"""The aggregate operator against a naive model, instant by instant."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC

from dsms.algebra import Aggregation
from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.data.schema import DTYPES, Schema
from dsms.errors import PlanError, RowError
from dsms.operators.aggregation.aggregate import AggregateOperator
from dsms.operators.aggregation.extremes import NO_RANK, lowest_rank_at

TYPES = {"k": "string", "g": "float64", "i": "int64", "f": "float64", "b": "bool", "t": "timestamp", "s": "string"}
SCHEMA = Schema.of(TYPES)
NAN, INF = float("nan"), float("inf")
VALUES = {
    "k": st.sampled_from(["x", "y"]),
    "g": st.sampled_from([0.0, NAN]),
    "i": st.integers(-3, 3) | st.sampled_from([2**58, -(2**58)]),
    "f": st.sampled_from([0.5, -0.25, 4.0, 0.0, INF, -INF, NAN]),  # sums of these are exact
    "b": st.booleans(),
    "t": st.integers(0, 5),
    "s": st.sampled_from(["", "a", "b", "aa", "z"]),
}
ALL = tuple(
    Aggregation(f"{function} {column}", function, column)
    for column, functions in {
        "i": ("count", "sum", "avg", "min", "max", "count distinct"),
        "f": ("sum", "avg", "min", "max", "count distinct"),
        "b": ("min", "max"),
        "t": ("min", "max"),
        "s": ("count", "min", "max", "count distinct"),
    }.items()
    for function in functions
)
ROWS = Aggregation("rows", "count", None)
MANY = settings(DETERMINISTIC, max_examples=DETERMINISTIC.max_examples * 2)


def batch(events, types=TYPES, **attributes):
    """Events are (ts, sign, {column: value or None})."""
    columns = {}
    for name, kind in types.items():
        values = [row[name] for _, _, row in events]
        beneath = "?" if kind == "string" else 1
        columns[name] = np.array([beneath if v is None else v for v in values], dtype=DTYPES[kind])
        columns[name + "?"] = np.array([v is None for v in values], dtype=bool)
    return Batch.of(columns, ts=[e[0] for e in events], sign=[e[1] for e in events], **attributes)


def same(row):
    """A row with nan as text, so that it equals itself."""
    return tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in row)


def run_all(operator, batches):
    rows = []
    for part in batches:
        out = operator.process(part)
        stamps = zip(out.each("ts").tolist(), out.each("sign").tolist(), strict=True)
        rows += [(*stamp, *same(r.values())) for stamp, r in zip(stamps, out.records(), strict=True)]
    return rows


def value(aggregation, rows):
    """The SQL aggregate of these rows."""
    values = [r[aggregation.column] for r in rows if r[aggregation.column] is not None] if aggregation.column else rows
    different = {same([v]): v for v in values} if aggregation.column else {}
    match aggregation.function:
        case "count":
            return len(values)
        case "count distinct":
            return len(different)
        case _ if not values:
            return None
        case "sum":
            return sum(values)
        case "avg":
            return float(sum(values)) / len(values)
    by = sorted(values, key=lambda v: (isinstance(v, float) and math.isnan(v), 0 if v != v else v))
    return by[0] if aggregation.function == "min" else by[-1]


def model(events, keys, aggregations, emit_unchanged=False):
    there, shown, out = {}, {}, []
    for ts in sorted({e[0] for e in events}):
        touched = {}
        for _, sign, row in (e for e in events if e[0] == ts):
            key = same(row[k] for k in keys)
            touched[key] = None
            counts = there.setdefault(key, Counter())
            counts[tuple((n, same([v])[0]) for n, v in row.items())] += sign
        olds, news = [], []
        for key in touched:
            rows = [
                {n: NAN if v == "nan" else v for n, v in row} for row, count in there[key].items() for _ in range(count)
            ]
            new = (*key, *same(value(a, rows) for a in aggregations)) if rows or not keys else None
            old = shown.get(key)
            if old != new or emit_unchanged:
                olds += [(ts, -1, *old)] if old is not None else []
                news += [(ts, 1, *new)] if new is not None else []
            shown[key] = new
        out += olds + news
    return out


@st.composite
def histories(draw, columns=tuple(TYPES)):
    """Draw insertions and retractions in timestamp order; at one instant, retractions come first."""
    row = st.fixed_dictionaries({c: (VALUES[c] | st.none()) if c in columns else st.none() for c in TYPES})
    there, events = [], []
    for ts in sorted(draw(st.lists(st.integers(0, 9), max_size=7, unique=True))):
        leaves = draw(st.lists(st.sampled_from(range(len(there))), unique=True, max_size=5)) if there else []
        comes = draw(st.lists(row, max_size=4))
        events += [(ts, -1, there[i]) for i in leaves] + [(ts, 1, r) for r in comes]
        there = [r for i, r in enumerate(there) if i not in leaves] + comes
    return events


def cut(events, cuts):
    return [batch(events[low:high]) for low, high in zip([0, *cuts], [*cuts, len(events)], strict=True)]


def parts(draw, events):
    """Cut the events into batches, with watermarks between some of them."""
    batches = []
    for part in cut(events, sorted(draw(st.lists(st.integers(0, len(events)), max_size=4)))):
        batches.append(part)
        if len(part) and draw(st.booleans()):
            batches.append(Batch(watermark=int(part.each("ts")[-1])))
    return [*batches, Batch(watermark=1000, ended=True)]


@pytest.mark.parametrize("keys", [(), ("k",), ("k", "g")])
@MANY
@given(events=histories(), emit_unchanged=st.booleans(), data=st.data())
def test_every_instant_equals_the_model_for_any_batch_boundaries(keys, events, emit_unchanged, data):
    aggregations = (ROWS, *data.draw(st.lists(st.sampled_from(ALL), unique=True, max_size=5)))
    operator = AggregateOperator(schema=SCHEMA, keys=keys, aggregations=aggregations, emit_unchanged=emit_unchanged)
    if not events and not keys:
        return  # the row of an empty input has a test of its own
    assert run_all(operator, parts(data.draw, events)) == model(events, keys, aggregations, emit_unchanged)


@pytest.mark.parametrize("aggregation", ALL, ids=lambda a: a.name)
@DETERMINISTIC
@given(data=st.data())
def test_each_aggregation_alone_equals_the_model(aggregation, data):
    events = data.draw(histories((aggregation.column, "k")))
    operator = AggregateOperator(schema=SCHEMA, keys=("k",), aggregations=(aggregation,))
    assert run_all(operator, parts(data.draw, events)) == model(events, ("k",), (aggregation,))


@MANY
@given(events=histories(), data=st.data())
def test_append_only_extremes_equal_retractable_ones(events, data):
    events = [event for event in events if event[1] > 0]
    extremes = tuple(a for a in ALL if a.function in ("min", "max"))
    operator = AggregateOperator(schema=SCHEMA, keys=("k",), aggregations=extremes, is_append_only=True)
    assert run_all(operator, parts(data.draw, events)) == model(events, ("k",), extremes)


@pytest.mark.parametrize("column", ["i", "s"])
@pytest.mark.parametrize("keys", [(), ("k",)])
def test_long_blocks_equal_the_model(keys, column):
    """A window of 40 rows slides over 400 rows of ten values, so that extremes leave, return and stay long."""
    draw = np.random.default_rng(3)
    numbers, groups = draw.integers(0, 10, 400).tolist(), draw.choice(["x", "y", "z"], 400, p=[0.8, 0.15, 0.05])
    rows = [
        dict.fromkeys(TYPES) | {"k": str(k), "i": n, "s": f"s{n}", "f": n / 4}
        for n, k in zip(numbers, groups, strict=True)
    ]
    events = [e for ts, r in enumerate(rows) for e in ([(ts, -1, rows[ts - 40])] if ts >= 40 else []) + [(ts, 1, r)]]
    names = ("min", "max", "count distinct")
    aggregations = (*(Aggregation(f, f, column) for f in names), Aggregation("sum", "sum", "f"))
    expected = model(events, keys, aggregations)
    for cuts in ([], [300], [*range(0, 700, 37)]):
        operator = AggregateOperator(schema=SCHEMA, keys=keys, aggregations=aggregations)
        assert run_all(operator, [*cut(events, cuts), Batch(watermark=1000, ended=True)]) == expected


def test_a_retraction_from_an_append_only_input_is_an_error():
    with pytest.raises(ValueError, match="a row is retracted at ts 2 from an input that is declared append-only"):
        aggregate("min", is_append_only=True).process(small((1, 1, 7, 2.0), (2, -1, 7, 2.0), watermark=3))


SMALL = {"k": "int64", "x": "float64"}


def small(*events, **attributes):
    return batch([(ts, sign, {"k": k, "x": x}) for ts, sign, k, x in events], SMALL, **attributes)


def aggregate(function, keys=("k",), types=SMALL, **settings):
    aggregations = (Aggregation("a", function, "x"),)
    return AggregateOperator(schema=Schema.of(types), keys=keys, aggregations=aggregations, **settings)


def test_a_group_may_disappear_and_return():
    rows = run_all(aggregate("sum"), [small((1, 1, 7, 2.0), (2, -1, 7, 2.0), (3, 1, 7, 5.0), watermark=4)])
    assert rows == [(1, 1, 7, 2.0), (2, -1, 7, 2.0), (3, 1, 7, 5.0)]


def test_without_keys_an_empty_input_gives_one_row():
    aggregations = (ROWS, Aggregation("most", "max", "x"))
    operator = AggregateOperator(schema=Schema.of(SMALL), aggregations=aggregations)
    batches = [Batch(watermark=5), small((5, 1, 0, 2.0), watermark=6), small((8, -1, 0, 2.0), watermark=9)]
    assert run_all(operator, batches) == [
        (5, 1, 1, 2.0),
        (8, -1, 1, 2.0),
        (8, 1, 0, None),
    ]
    assert run_all(operator.fresh(Settings()), [Batch(), Batch(watermark=50, ended=True)]) == [(49, 1, 0, None)]


def test_the_value_under_a_null_string_is_a_string():
    operator = AggregateOperator(schema=SCHEMA, aggregations=(Aggregation("a", "min", "s"),))
    nothing = dict.fromkeys(TYPES)
    parts = [batch([(5, 1, nothing)], watermark=6), batch([(7, 1, nothing | {"s": "b"})], watermark=8)]
    assert [operator.process(part).columns["a"].tolist() for part in parts] == [[""], ["", "b"]]


def test_an_incomplete_first_row_delays_the_row_of_an_empty_input():
    operator = AggregateOperator(schema=Schema.of(SMALL), aggregations=(ROWS,))
    assert run_all(operator, [small((5, 1, 0, 2.0)), Batch(watermark=9)]) == [(5, 1, 1)]


def test_an_instant_without_changes_is_emitted_only_with_emit_unchanged():
    events = small((1, 1, 7, 2.0), (2, -1, 7, 2.0), (2, 1, 7, 2.0), watermark=3)
    assert run_all(aggregate("max"), [events]) == [(1, 1, 7, 2.0)]
    assert run_all(aggregate("max", emit_unchanged=True), [events]) == [(1, 1, 7, 2.0), (2, -1, 7, 2.0), (2, 1, 7, 2.0)]


def test_a_sum_is_finite_again_after_its_infinite_values_are_retracted():
    events = small((1, 1, 7, 2.0), (2, 1, 7, INF), (3, 1, 7, -INF), (4, -1, 7, INF), (5, -1, 7, -INF), watermark=6)
    sums = [row[3] for row in run_all(aggregate("sum"), [events]) if row[1] > 0]
    assert sums == [2.0, INF, "nan", -INF, 2.0]


def test_a_sum_of_floats_restarts_at_exactly_zero_when_the_group_is_empty():
    events = [(1, 1, 7, 0.1), (1, 1, 7, None), (2, 1, 7, 1e300), (3, 1, 7, 0.3)]
    events += [(4, -1, 7, 0.1), (5, -1, 7, 0.3), (6, -1, 7, 1e300), (7, 1, 7, 0.7)]
    rows = run_all(aggregate("sum"), [small(*events, watermark=9)])
    assert [row[3] for row in rows if row[0] > 5] == [1e300, None, None, 0.7]


@MANY
@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-1e6, 1e6)), min_size=1, max_size=300), st.integers(1, 300))
def test_float_sums_are_bit_identical_for_any_batch_boundaries(values, size):
    events = [(i, 1, k, x) for i, (k, x) in enumerate(values)]
    pieces = [small(*events[low : low + size], watermark=low + size) for low in range(0, len(events), size)]
    rows = run_all(aggregate("sum"), [small(*events, watermark=len(events))])
    assert run_all(aggregate("sum"), pieces) == rows
    last = {key: total for _, sign, key, total in rows if sign > 0}
    for key in last:
        assert last[key] == pytest.approx(math.fsum(x for k, x in values if k == key), abs=1e-8)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_int64_overflow_is_an_error_that_names_the_group(sign):
    types = {"k": "int64", "x": "int64"}
    most = 2**63 - 1 if sign > 0 else -(2**63)
    rows = [(1, 1, {"k": 1, "x": most}), (2, 1, {"k": 2, "x": most}), (3, -1, {"k": 1, "x": most})]
    operator = aggregate("sum", types=types)
    assert len(run_all(operator, [batch(rows, types, watermark=4)])) == 3
    with pytest.raises(RowError, match=rf"the sum of 'x' of group {{'k': 2}} is {most + sign}: it does not fit"):
        operator.process(batch([(5, 1, {"k": 1, "x": most}), (6, 1, {"k": 2, "x": sign})], types, watermark=9))


def test_an_int64_overflow_is_null_and_a_dead_letter_until_the_sum_fits_again():
    types = {"k": "int64", "x": "int64"}
    operator = replace(aggregate("sum", types=types), on_error="dead-letter")
    most = 2**63 - 1
    rows = [(1, 1, {"k": 1, "x": most}), (2, 1, {"k": 1, "x": 5}), (3, 1, {"k": 2, "x": 7}), (4, -1, {"k": 1, "x": 5})]
    assert run_all(operator, [batch(rows, types, watermark=5)]) == [
        (1, 1, 1, most),
        (2, -1, 1, most),
        (2, 1, 1, None),
        (3, 1, 2, 7),
        (4, -1, 1, None),
        (4, 1, 1, most),
    ]
    (letter,) = operator.dead_letters
    assert (letter.kind, letter.batch.records(), letter.batch.first("ts")) == ("error", [{"k": 1}], 2)
    assert letter.reason == f"the sum of 'x' of group {{'k': 1}} is {most + 5}: it does not fit int64"


def test_the_sum_of_an_average_may_exceed_int64():
    types = {"k": "int64", "x": "int64"}
    operator = aggregate("avg", types=types)
    parts = [batch([(ts, 1, {"k": 1, "x": 2**62 + ts * 2**20})], types, watermark=ts + 1) for ts in range(9)]
    parts += [
        batch([(ts, -1, {"k": 1, "x": 2**62 + (ts - 9) * 2**20})], types, watermark=ts + 1) for ts in range(9, 17)
    ]
    averages = [row[3] for row in run_all(operator, parts) if row[1] > 0]
    assert averages == [2**62 + ts * 2**19 for ts in range(17)]


def test_an_output_row_arrives_with_the_last_row_of_its_instant():
    out = aggregate("sum").process(
        small((1, 1, 7, 2.0), (1, 1, 7, 2.0), (2, 1, 7, 1.0), arrived=[3.0, 1.0, 9.0], watermark=3)
    )
    assert out.each("arrived").tolist() == [3.0, 9.0, 9.0]


def test_watermarks_are_passed_on():
    out = aggregate("sum").process(Batch(watermark=8, seq=3, ended=True))
    assert (len(out), out.watermark, out.seq, out.ended) == (0, 8, 3, True)


def test_memory_is_bounded_by_the_current_groups_and_values():
    aggregations = tuple(Aggregation(f, f, "x") for f in ("sum", "min", "count distinct"))
    operator = AggregateOperator(schema=Schema.of(SMALL), keys=("k",), aggregations=aggregations)
    old = np.zeros(0, dtype=np.int64)
    for ts in range(200):
        new = np.arange(ts * 1000, ts * 1000 + 1000)
        keys, sign = np.concatenate([old, new]), np.repeat([-1, 1], [len(old), 1000])
        out = operator.process(Batch.of({"k": keys, "x": keys / 3}, ts=ts, sign=sign, watermark=ts + 1))
        assert len(out) == len(keys)
        old = new
    assert len(operator._slots) == 1000
    assert operator._slots.high < 6000


@MANY
@given(st.integers(1, 40), st.data())
def test_the_lowest_rank_at_each_position(length, data):
    ends = st.tuples(st.integers(0, length - 1), st.integers(1, length)).filter(lambda span: span[0] < span[1])
    spans = [(*sorted(span), rank) for rank, span in enumerate(data.draw(st.lists(ends, max_size=20)))]
    start, end, rank = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    lowest = [min((r for a, b, r in spans if a <= place < b), default=NO_RANK) for place in range(length)]
    assert lowest_rank_at(start, end, rank, length).tolist() == lowest


def test_invalid_aggregations_are_refused():
    with pytest.raises(PlanError, match="'sum' of 's', a string: it needs a column of numbers"):
        AggregateOperator(schema=SCHEMA, aggregations=(Aggregation("a", "sum", "s"),))
    with pytest.raises(PlanError, match="no aggregation 'median'"):
        AggregateOperator(schema=SCHEMA, aggregations=(Aggregation("a", "median", "i"),))
    with pytest.raises(PlanError, match="no column 'j'"):
        AggregateOperator(schema=SCHEMA, aggregations=(Aggregation("a", "sum", "j"),))
    with pytest.raises(PlanError, match="no column 'j'"):
        AggregateOperator(schema=SCHEMA, keys=("j",))
    with pytest.raises(PlanError, match="'min' needs a column"):
        AggregateOperator(schema=SCHEMA, aggregations=(Aggregation("a", "min", None),))
