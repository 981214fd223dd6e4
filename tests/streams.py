"""Rows into operators and out of them again, in whatever batches: for the tests of operators that go by time."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dsms.batch import Batch
from dsms.operators.base import Operator


def batch(*rows, upto=None, ended=False, columns=("x",), **attributes):
    """Rows given as (ts, sign, values…); None is null."""
    made = {}
    for place, name in enumerate(columns):
        values = [row[2 + place] for row in rows]
        empty = "" if any(isinstance(value, str) for value in values) else 0
        made[name] = [empty if value is None else value for value in values]
        if None in values:
            made[name + "?"] = [value is None for value in values]
    made = {name: Batch.of({name: values}).columns[name] for name, values in made.items()} if rows else {}
    made = {name: v.astype(object) if v.dtype.kind == "U" else v for name, v in made.items()}
    ts, sign = [row[0] for row in rows], [row[1] for row in rows]
    return Batch.of(made, rows=len(rows), ts=ts if rows else 0, sign=sign if rows else 1, upto=upto, ended=ended,
                    **attributes)  # fmt: skip


def listed(put_out):
    """Rows as (ts, sign, values…)."""
    values = [tuple(record.values()) for record in put_out.records()] or [()] * len(put_out)
    signed = zip(put_out.each("ts").tolist(), put_out.each("sign").tolist(), strict=True)
    return [(*when, *value) for when, value in zip(signed, values, strict=True)]


def through(operator: Operator, batches, ports=None, ended=None):
    """All rows an operator puts out for these batches; checks what each promises about the next."""
    rows, promised = [], None
    for given, port in zip(batches, ports or [0] * len(batches), strict=True):
        put_out = operator.process(given, port)
        found = listed(put_out)
        assert [row[:2] for row in found] == sorted(row[:2] for row in found)
        assert promised is None or all(row[0] >= promised for row in found)
        rows += found
        promised = put_out.upto
    assert put_out.ended == (batches[-1].ended if ended is None else ended)
    return rows


@st.composite
def cuts(draw, rows, upto):
    """The rows, which are in order, as batches of any size with time alone between some of them."""
    places = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    batches = []
    for start, stop in zip([0, *places], [*places, len(rows)], strict=True):
        next_ts = rows[stop][0] if stop < len(rows) else upto
        last_ts = rows[stop - 1][0] if stop else next_ts - 3
        if stop > start:
            known = draw(st.sampled_from([None, last_ts, next_ts]))
            batches.append(batch(*rows[start:stop], upto=known))
        if stop and draw(st.booleans()):
            batches.append(batch(upto=draw(st.integers(last_ts, next_ts))))
    return [*batches, batch(upto=upto, ended=True)]


def whole(rows, upto):
    """The rows as one batch."""
    return [replace(batch(*rows), upto=upto, ended=True)]
