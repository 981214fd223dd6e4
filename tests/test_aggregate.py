"""Groups and what they come to, instant by instant, as a naive model says."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import EXACT

from dsms.algebra import Aggregation
from dsms.batch import Batch
from dsms.errors import PlanError, RowError
from dsms.operators.aggregation.aggregate import Aggregate
from dsms.operators.aggregation.extremes import NONE, stabbed
from dsms.schema import DTYPES, Schema
from dsms.settings import Settings

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
MANY = settings(EXACT, max_examples=EXACT.max_examples * 2)


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


def put_out(operator, batches):
    rows = []
    for part in batches:
        out = operator.process(part)
        stamps = zip(out.each("ts").tolist(), out.each("sign").tolist(), strict=True)
        rows += [(*stamp, *same(r.values())) for stamp, r in zip(stamps, out.records(), strict=True)]
    return rows


def value(aggregation, rows):
    """What SQL makes of these rows."""
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


def model(events, keys, aggregations, every=False):
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
            if old != new or every:
                olds += [(ts, -1, *old)] if old is not None else []
                news += [(ts, 1, *new)] if new is not None else []
            shown[key] = new
        out += olds + news
    return out


@st.composite
def histories(draw, columns=tuple(TYPES)):
    """Rows that come and go in the order of time; at one instant, what goes goes first."""
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
    """The events in some batches, time told in between."""
    batches = []
    for part in cut(events, sorted(draw(st.lists(st.integers(0, len(events)), max_size=4)))):
        batches.append(part)
        if len(part) and draw(st.booleans()):
            batches.append(Batch(upto=int(part.each("ts")[-1])))
    return [*batches, Batch(upto=1000, ended=True)]


@pytest.mark.parametrize("keys", [(), ("k",), ("k", "g")])
@MANY
@given(events=histories(), every=st.booleans(), data=st.data())
def test_every_instant_is_as_the_model_says_however_the_input_is_cut(keys, events, every, data):
    aggregations = (ROWS, *data.draw(st.lists(st.sampled_from(ALL), unique=True, max_size=5)))
    operator = Aggregate(schema=SCHEMA, keys=keys, aggregations=aggregations, every=every)
    if not events and not keys:
        return  # the row of nothing has a test of its own
    assert put_out(operator, parts(data.draw, events)) == model(events, keys, aggregations, every)


@pytest.mark.parametrize("aggregation", ALL, ids=lambda a: a.name)
@EXACT
@given(data=st.data())
def test_each_aggregation_by_itself(aggregation, data):
    events = data.draw(histories((aggregation.column, "k")))
    operator = Aggregate(schema=SCHEMA, keys=("k",), aggregations=(aggregation,))
    assert put_out(operator, parts(data.draw, events)) == model(events, ("k",), (aggregation,))


@MANY
@given(events=histories(), data=st.data())
def test_where_nothing_is_taken_back_extremes_are_the_same_without_remembering(events, data):
    events = [event for event in events if event[1] > 0]
    extremes = tuple(a for a in ALL if a.function in ("min", "max"))
    operator = Aggregate(schema=SCHEMA, keys=("k",), aggregations=extremes, appends=True)
    assert put_out(operator, parts(data.draw, events)) == model(events, ("k",), extremes)


@pytest.mark.parametrize("column", ["i", "s"])
@pytest.mark.parametrize("keys", [(), ("k",)])
def test_long_blocks_are_as_the_model_says(keys, column):
    """A window of 40 rows slides over 400, ten values, so that extremes leave, return and stand long."""
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
        operator = Aggregate(schema=SCHEMA, keys=keys, aggregations=aggregations)
        assert put_out(operator, [*cut(events, cuts), Batch(upto=1000, ended=True)]) == expected


def test_a_row_taken_back_from_what_only_appends_is_a_fault():
    with pytest.raises(ValueError, match="a row is taken back at ts 2 from an input that was said only to append"):
        aggregate("min", appends=True).process(small((1, 1, 7, 2.0), (2, -1, 7, 2.0), upto=3))


SMALL = {"k": "int64", "x": "float64"}


def small(*events, **attributes):
    return batch([(ts, sign, {"k": k, "x": x}) for ts, sign, k, x in events], SMALL, **attributes)


def aggregate(function, keys=("k",), types=SMALL, **settings):
    aggregations = (Aggregation("a", function, "x"),)
    return Aggregate(schema=Schema.of(types), keys=keys, aggregations=aggregations, **settings)


def test_a_group_that_vanishes_may_return():
    rows = put_out(aggregate("sum"), [small((1, 1, 7, 2.0), (2, -1, 7, 2.0), (3, 1, 7, 5.0), upto=4)])
    assert rows == [(1, 1, 7, 2.0), (2, -1, 7, 2.0), (3, 1, 7, 5.0)]


def test_without_keys_there_is_a_row_even_of_nothing():
    aggregations = (ROWS, Aggregation("most", "max", "x"))
    operator = Aggregate(schema=Schema.of(SMALL), aggregations=aggregations)
    batches = [Batch(upto=5), small((5, 1, 0, 2.0), upto=6), small((8, -1, 0, 2.0), upto=9)]
    assert put_out(operator, batches) == [
        (5, 1, 1, 2.0),
        (8, -1, 1, 2.0),
        (8, 1, 0, None),
    ]
    assert put_out(operator.fresh(Settings()), [Batch(), Batch(upto=50, ended=True)]) == [(49, 1, 0, None)]


def test_beneath_a_null_string_lies_a_string():
    operator = Aggregate(schema=SCHEMA, aggregations=(Aggregation("a", "min", "s"),))
    nothing = dict.fromkeys(TYPES)
    parts = [batch([(5, 1, nothing)], upto=6), batch([(7, 1, nothing | {"s": "b"})], upto=8)]
    assert [operator.process(part).columns["a"].tolist() for part in parts] == [[""], ["", "b"]]


def test_a_first_row_that_is_not_complete_yet_holds_the_row_of_nothing_back():
    operator = Aggregate(schema=Schema.of(SMALL), aggregations=(ROWS,))
    assert put_out(operator, [small((5, 1, 0, 2.0)), Batch(upto=9)]) == [(5, 1, 1)]


def test_an_instant_that_changes_nothing_is_put_out_only_if_every_one_is_wanted():
    events = small((1, 1, 7, 2.0), (2, -1, 7, 2.0), (2, 1, 7, 2.0), upto=3)
    assert put_out(aggregate("max"), [events]) == [(1, 1, 7, 2.0)]
    assert put_out(aggregate("max", every=True), [events]) == [(1, 1, 7, 2.0), (2, -1, 7, 2.0), (2, 1, 7, 2.0)]


def test_a_value_that_is_not_finite_does_not_spoil_the_sum_when_it_has_left():
    events = small((1, 1, 7, 2.0), (2, 1, 7, INF), (3, 1, 7, -INF), (4, -1, 7, INF), (5, -1, 7, -INF), upto=6)
    sums = [row[3] for row in put_out(aggregate("sum"), [events]) if row[1] > 0]
    assert sums == [2.0, INF, "nan", -INF, 2.0]


def test_a_sum_of_floats_is_exactly_zero_again_when_no_value_is_left():
    events = [(1, 1, 7, 0.1), (1, 1, 7, None), (2, 1, 7, 1e300), (3, 1, 7, 0.3)]
    events += [(4, -1, 7, 0.1), (5, -1, 7, 0.3), (6, -1, 7, 1e300), (7, 1, 7, 0.7)]
    rows = put_out(aggregate("sum"), [small(*events, upto=9)])
    assert [row[3] for row in rows if row[0] > 5] == [1e300, None, None, 0.7]


@MANY
@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-1e6, 1e6)), min_size=1, max_size=300), st.integers(1, 300))
def test_float_sums_do_not_depend_on_the_cutting_to_the_last_bit(values, size):
    events = [(i, 1, k, x) for i, (k, x) in enumerate(values)]
    pieces = [small(*events[low : low + size], upto=low + size) for low in range(0, len(events), size)]
    rows = put_out(aggregate("sum"), [small(*events, upto=len(events))])
    assert put_out(aggregate("sum"), pieces) == rows
    last = {key: total for _, sign, key, total in rows if sign > 0}
    for key in last:
        assert last[key] == pytest.approx(math.fsum(x for k, x in values if k == key), abs=1e-8)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_beyond_int64_is_a_fault_that_names_the_group(sign):
    types = {"k": "int64", "x": "int64"}
    most = 2**63 - 1 if sign > 0 else -(2**63)
    rows = [(1, 1, {"k": 1, "x": most}), (2, 1, {"k": 2, "x": most}), (3, -1, {"k": 1, "x": most})]
    operator = aggregate("sum", types=types)
    assert len(put_out(operator, [batch(rows, types, upto=4)])) == 3
    with pytest.raises(RowError, match=rf"the sum of 'x' of group {{'k': 2}} is {most + sign}: beyond"):
        operator.process(batch([(5, 1, {"k": 1, "x": most}), (6, 1, {"k": 2, "x": sign})], types, upto=9))


def test_a_sum_beyond_int64_may_be_null_and_told_until_it_fits_again():
    types = {"k": "int64", "x": "int64"}
    operator = replace(aggregate("sum", types=types), on_error="dead-letter")
    most = 2**63 - 1
    rows = [(1, 1, {"k": 1, "x": most}), (2, 1, {"k": 1, "x": 5}), (3, 1, {"k": 2, "x": 7}), (4, -1, {"k": 1, "x": 5})]
    assert put_out(operator, [batch(rows, types, upto=5)]) == [
        (1, 1, 1, most),
        (2, -1, 1, most),
        (2, 1, 1, None),
        (3, 1, 2, 7),
        (4, -1, 1, None),
        (4, 1, 1, most),
    ]
    (aside,) = operator.asides
    assert (aside.kind, aside.batch.records(), aside.batch.first("ts")) == ("error", [{"k": 1}], 2)
    assert aside.reason == f"the sum of 'x' of group {{'k': 1}} is {most + 5}: beyond what int64 can hold"


def test_an_average_may_add_up_to_more_than_int64_can_hold():
    types = {"k": "int64", "x": "int64"}
    operator = aggregate("avg", types=types)
    parts = [batch([(ts, 1, {"k": 1, "x": 2**62 + ts * 2**20})], types, upto=ts + 1) for ts in range(9)]
    parts += [batch([(ts, -1, {"k": 1, "x": 2**62 + (ts - 9) * 2**20})], types, upto=ts + 1) for ts in range(9, 17)]
    averages = [row[3] for row in put_out(operator, parts) if row[1] > 0]
    assert averages == [2**62 + ts * 2**19 for ts in range(17)]


def test_an_output_row_is_as_late_as_the_last_row_of_its_instant():
    out = aggregate("sum").process(
        small((1, 1, 7, 2.0), (1, 1, 7, 2.0), (2, 1, 7, 1.0), arrived=[3.0, 1.0, 9.0], upto=3)
    )
    assert out.each("arrived").tolist() == [3.0, 9.0, 9.0]


def test_time_is_passed_on():
    out = aggregate("sum").process(Batch(upto=8, seq=3, ended=True))
    assert (len(out), out.upto, out.seq, out.ended) == (0, 8, 3, True)


def test_memory_goes_by_the_groups_and_values_that_are_there():
    aggregations = tuple(Aggregation(f, f, "x") for f in ("sum", "min", "count distinct"))
    operator = Aggregate(schema=Schema.of(SMALL), keys=("k",), aggregations=aggregations)
    old = np.zeros(0, dtype=np.int64)
    for ts in range(200):
        new = np.arange(ts * 1000, ts * 1000 + 1000)
        keys, sign = np.concatenate([old, new]), np.repeat([-1, 1], [len(old), 1000])
        out = operator.process(Batch.of({"k": keys, "x": keys / 3}, ts=ts, sign=sign, upto=ts + 1))
        assert len(out) == len(keys)
        old = new
    assert len(operator._slots) == 1000
    assert operator._slots.high < 6000


@MANY
@given(st.integers(1, 40), st.data())
def test_the_lowest_rank_over_a_place(length, data):
    ends = st.tuples(st.integers(0, length - 1), st.integers(1, length)).filter(lambda span: span[0] < span[1])
    spans = [(*sorted(span), rank) for rank, span in enumerate(data.draw(st.lists(ends, max_size=20)))]
    columns = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    lowest = [min((r for a, b, r in spans if a <= place < b), default=NONE) for place in range(length)]
    assert stabbed(*columns, length).tolist() == lowest


def test_what_cannot_be_aggregated_is_refused():
    with pytest.raises(PlanError, match="'sum' of 's', a string: numbers are wanted"):
        Aggregate(schema=SCHEMA, aggregations=(Aggregation("a", "sum", "s"),))
    with pytest.raises(PlanError, match="'median' is no aggregation"):
        Aggregate(schema=SCHEMA, aggregations=(Aggregation("a", "median", "i"),))
    with pytest.raises(PlanError, match="no column 'j'"):
        Aggregate(schema=SCHEMA, aggregations=(Aggregation("a", "sum", "j"),))
    with pytest.raises(PlanError, match="no column 'j'"):
        Aggregate(schema=SCHEMA, keys=("j",))
    with pytest.raises(PlanError, match="'min' needs a column"):
        Aggregate(schema=SCHEMA, aggregations=(Aggregation("a", "min", None),))
