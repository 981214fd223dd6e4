"""Runs operators on rows in any batch boundaries: for the tests of operators that are driven by time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from dsms.data.batch import Batch
from dsms.operators.base import Operator


def make_batch(*rows, watermark=None, ended=False, columns=("x",), **attributes):
    """Make a batch of (ts, sign, values…) rows; None is null."""
    made: dict[str, Any] = {}
    for place, name in enumerate(columns):
        values = [row[2 + place] for row in rows]
        empty = "" if any(isinstance(value, str) for value in values) else 0
        made[name] = [empty if value is None else value for value in values]
        if None in values:
            made[name + "?"] = [value is None for value in values]
    made = {name: Batch.of({name: values}).columns[name] for name, values in made.items()} if rows else {}
    made = {name: v.astype(object) if v.dtype.kind == "U" else v for name, v in made.items()}
    ts, sign = [row[0] for row in rows], [row[1] for row in rows]
    ts_or_default, sign_or_default = (ts, sign) if rows else (0, 1)
    return Batch.of(
        made,
        rows=len(rows),
        ts=ts_or_default,
        sign=sign_or_default,
        watermark=watermark,
        ended=ended,
        **attributes,
    )


def list_rows(put_out):
    """List rows as (ts, sign, values…)."""
    values = [tuple(record.values()) for record in put_out.records()] or [()] * len(put_out)
    signed = zip(put_out.each("ts").tolist(), put_out.each("sign").tolist(), strict=True)
    return [(*when, *value) for when, value in zip(signed, values, strict=True)]


def run_operator(operator: Operator, batches, ports=None, ended=None):
    """Run an operator on batches and return its output rows; check each output against the last watermark."""
    rows, promised = [], None
    for given, port in zip(batches, ports or [0] * len(batches), strict=True):
        put_out = operator.process(given, port)
        found = list_rows(put_out)
        assert [row[:2] for row in found] == sorted(row[:2] for row in found)
        assert promised is None or all(row[0] >= promised for row in found)
        rows += found
        promised = put_out.watermark
    assert put_out.ended == (batches[-1].ended if ended is None else ended)
    return rows


@st.composite
def cuts(draw, rows, watermark):
    """Draw batches of any size of ordered rows, with watermarks alone between some of them."""
    places = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    batches = []
    for start, stop in zip([0, *places], [*places, len(rows)], strict=True):
        next_ts = rows[stop][0] if stop < len(rows) else watermark
        last_ts = rows[stop - 1][0] if stop else next_ts - 3
        if stop > start:
            known = draw(st.sampled_from([None, last_ts, next_ts]))
            batches.append(make_batch(*rows[start:stop], watermark=known))
        if stop and draw(st.booleans()):
            batches.append(make_batch(watermark=draw(st.integers(last_ts, next_ts))))
    return [*batches, make_batch(watermark=watermark, ended=True)]


def whole(rows, watermark):
    """Return the rows as one batch."""
    return [replace(make_batch(*rows), watermark=watermark, ended=True)]
