"""Columns as JSON lines: the text of all rows is put together column by column."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

ROWS = 100_000  # at a time: their text must stay below the two gigabytes of an Arrow array
SPECIAL = r'["\\\x00-\x1f]'


def json_lines(columns: Mapping[str, pa.Array]) -> list[memoryview]:
    """An object a line; as JSON has no such numbers, the strings "NaN", "Infinity" and "-Infinity"."""
    rows = len(next(iter(columns.values())))
    return [_lines({n: c.slice(start, ROWS) for n, c in columns.items()}) for start in range(0, rows, ROWS)]


def _lines(columns: Mapping[str, pa.Array]) -> memoryview:
    pieces: list[pa.Array | pa.Scalar] = []
    before = "{"
    for name, column in columns.items():
        pieces += [pa.scalar(f"{before}{json.dumps(name, ensure_ascii=False)}: "), _text(column)]
        before = ", "
    joined = pc.binary_join_element_wise(*pieces, pa.scalar("}\n"), pa.scalar(""))
    _, offsets, data = joined.buffers()
    ends = memoryview(offsets).cast("i")
    return memoryview(data)[ends[joined.offset] : ends[joined.offset + len(joined)]]


def _text(column: pa.Array) -> pa.Array:
    """Each value as JSON."""
    if pa.types.is_string(column.type):
        text = _quoted(column)
    elif pa.types.is_floating(column.type):
        text = column.cast(pa.string())
        for given, wanted in (("nan", '"NaN"'), ("inf", '"Infinity"'), ("-inf", '"-Infinity"'), ("-0", "-0.0")):
            text = pc.if_else(pc.equal(text, given), wanted, text)
    else:
        text = column.cast(pa.string())
    return text.fill_null("null")


def _quoted(column: pa.Array) -> pa.Array:
    """Strings in quotes; only those with a character that needs it are escaped one by one."""
    quoted = pc.binary_join_element_wise(pa.scalar('"'), column, pa.scalar('"'), pa.scalar(""))
    special = pc.fill_null(pc.match_substring_regex(column, SPECIAL), False)
    if not special.true_count:
        return quoted
    escaped = [json.dumps(value, ensure_ascii=False) for value in column.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special, pa.array(escaped, pa.string()))
