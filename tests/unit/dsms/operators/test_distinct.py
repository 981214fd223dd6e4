"""The DISTINCT operator: a row is emitted with its first duplicate and retracted with its last."""

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC

from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.operators.aggregation.distinct import DistinctOperator
from dsms.operators.aggregation.presence import KeyCounts

Event = tuple[int, int, int | None, str | None]  # ts, sign, size, name
SCHEMA = Schema.of({"size": "int64", "name": "string"})


def batch(events: list[Event], **attributes: Any) -> Batch:
    sizes, names = [e[2] for e in events], [e[3] for e in events]
    columns = {
        "size": np.array([9 if s is None else s for s in sizes], dtype=np.int64),
        "size?": np.array([s is None for s in sizes], dtype=bool),
        "name": np.array(["" if n is None else n for n in names], dtype=object),
        "name?": np.array([n is None for n in names], dtype=bool),
    }
    return Batch.of(columns, ts=[e[0] for e in events], sign=[e[1] for e in events], **attributes)


def run_all(batches: list[Batch]) -> list[tuple[Any, ...]]:
    operator = DistinctOperator(schema=SCHEMA).fresh(Settings())
    rows: list[tuple[Any, ...]] = []
    for given_ in batches:
        out = operator.process(given_)
        stamps = zip(out.each("ts").tolist(), out.each("sign").tolist(), strict=True)
        rows += [(*stamp, *r.values()) for stamp, r in zip(stamps, out.records(), strict=True)]
    return rows


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Draw insertions and valid retractions in timestamp order; at one instant, retractions come first."""
    there, events = Counter[tuple[int | None, str | None]](), list[Event]()
    for ts in draw(st.lists(st.integers(0, 8), max_size=8, unique=True).map(sorted)):
        pool = sorted(there.elements(), key=repr)
        leaves = draw(st.lists(st.sampled_from(range(len(pool))), unique=True, max_size=4)) if pool else []
        comes = draw(st.lists(st.tuples(st.none() | st.integers(0, 1), st.none() | st.sampled_from("ab")), max_size=4))
        events += [(ts, -1, *pool[i]) for i in leaves] + [(ts, 1, *row) for row in comes]
        there.subtract(pool[i] for i in leaves)
        there.update(comes)
    return events


def model(events: list[Event]) -> list[tuple[Any, ...]]:
    counts, rows = Counter[Any](), list[tuple[Any, ...]]()
    for ts in sorted({e[0] for e in events}):
        before = Counter(counts)
        touched = dict.fromkeys(e[2:] for e in events if e[0] == ts)
        counts.update({key: sum(e[1] for e in events if e[0] == ts and e[2:] == key) for key in touched})
        rows += [(ts, -1, *key) for key in touched if before[key] > 0 and counts[key] <= 0]
        rows += [(ts, 1, *key) for key in touched if before[key] <= 0 and counts[key] > 0]
    return rows


@settings(DETERMINISTIC, max_examples=DETERMINISTIC.max_examples * 6)
@given(histories(), st.data())
def test_each_row_is_emitted_once_for_any_batch_boundaries(events: list[Event], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=4)))
    batches = [batch(events[low:high]) for low, high in zip([0, *cuts], [*cuts, len(events)], strict=True)]
    assert run_all([*batches, Batch(watermark=100, ended=True)]) == model(events)


def test_rows_wait_for_their_instant_and_watermarks_are_passed_on() -> None:
    operator = DistinctOperator(schema=SCHEMA)
    out = operator.process(batch([(5, 1, 1, "a")], arrived=2.5, seq=4))
    assert (len(out), out.watermark, out.ended, out.seq) == (0, 5, False, 4)
    out = operator.process(Batch(watermark=7, ended=True))
    assert out.records() == [{"size": 1, "name": "a"}]
    assert (out.watermark, out.ended, out.each("ts").tolist(), out.each("arrived").tolist()) == (7, True, [5], [2.5])


def test_a_fresh_copy_has_no_rows() -> None:
    operator = DistinctOperator(schema=SCHEMA)
    rows = batch([(5, 1, 1, "a")], watermark=6)
    assert len(operator.process(rows)) == 1
    assert len(operator.process(rows)) == 0
    assert len(operator.fresh(Settings()).process(rows)) == 1


def test_key_counts_have_one_net_change_per_key_and_instant() -> None:
    presence = KeyCounts()
    course = presence.apply_events(np.array([3, 0, 3, 0]), np.array([1, 1, 1, 2]), np.array([1, 1, 1, -1]))
    assert course.cells.slot.tolist() == [0, 0, 3]
    assert course.cells.first.tolist() == [1, 3, 0]
    assert course.after.tolist() == [1, 0, 2]
    assert course.flips.tolist() == [1, -1, 1]
    assert course.gone.tolist() == [0]
    assert presence.apply_events(np.array([3]), np.array([4]), np.array([-2])).flips.tolist() == [-1]


def test_memory_is_bounded_by_the_current_rows() -> None:
    operator = DistinctOperator(schema=Schema.of({"size": "int64"}))
    for ts in range(0, 100):
        new, old = np.arange(ts * 1000, ts * 1000 + 1000), np.arange(ts * 1000 - 1000, ts * 1000)
        sizes, sign = (np.concatenate([old, new]), np.repeat([-1, 1], 1000)) if ts else (new, np.ones(1000, np.int64))
        operator.process(Batch.of({"size": sizes}, ts=ts, sign=sign, watermark=ts + 1))
    assert len(operator._slots) == 1000
    assert operator._slots.high < 6000
