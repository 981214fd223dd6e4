"""Formats columns as JSON lines: builds the text of all rows column by column."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

CHUNK_ROWS = 100_000  # the text of a chunk must stay below the 2 GB of an Arrow array
ESCAPED_CHARACTERS = r'["\\\x00-\x1f]'


def write_json_lines(columns: Mapping[str, pa.Array]) -> list[memoryview]:
    """Return one object per line; floats without a JSON number are the strings "NaN", "Infinity" and "-Infinity"."""
    rows = len(next(iter(columns.values())))
    return [_lines({n: c.slice(start, CHUNK_ROWS) for n, c in columns.items()}) for start in range(0, rows, CHUNK_ROWS)]


def _lines(columns: Mapping[str, pa.Array]) -> memoryview:
    pieces: list[pa.Array | pa.Scalar] = []
    before = "{"
    for name, column in columns.items():
        pieces += [pa.scalar(f"{before}{json.dumps(name, ensure_ascii=False)}: "), _to_text(column)]
        before = ", "
    joined = pc.binary_join_element_wise(*pieces, pa.scalar("}\n"), pa.scalar(""))
    _, offsets, data = joined.buffers()
    ends = memoryview(offsets).cast("i")
    return memoryview(data)[ends[joined.offset] : ends[joined.offset + len(joined)]]


def _to_text(column: pa.Array) -> pa.Array:
    """Format each value as JSON."""
    if pa.types.is_string(column.type):
        text = _quote_text(column)
    elif pa.types.is_floating(column.type):
        text = column.cast(pa.string())
        for arrow, as_json in (("nan", '"NaN"'), ("inf", '"Infinity"'), ("-inf", '"-Infinity"'), ("-0", "-0.0")):
            text = pc.if_else(pc.equal(text, arrow), as_json, text)
    else:
        text = column.cast(pa.string())
    return text.fill_null("null")


def _quote_text(column: pa.Array) -> pa.Array:
    """Quote strings; only strings with special characters are escaped one by one."""
    quoted = pc.binary_join_element_wise(pa.scalar('"'), column, pa.scalar('"'), pa.scalar(""))
    special = pc.fill_null(pc.match_substring_regex(column, ESCAPED_CHARACTERS), False)
    if not special.true_count:
        return quoted
    escaped = [json.dumps(value, ensure_ascii=False) for value in column.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special, pa.array(escaped, pa.string()))
