"""Converts Arrow columns to the columns of a batch and back, and finds the rows that do not fit a type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.data.batch import NULLS_SUFFIX, Batch, Column
from dsms.data.schema import DTYPES, Schema

# A timestamp is parsed as microseconds, then as ISO 8601 text without and with a zone; without one it is UTC.
# Digits finer than a microsecond are truncated.
ARROW_TYPES = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.int64(),
    "string": pa.string(),
}
TIMESTAMP_TYPES = [pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")]
MICROSECOND_TYPE = pa.timestamp("us")
NULL_FILL_VALUES = {"int64": 0, "float64": 0.0, "bool": False, "timestamp": 0, "string": ""}
TEXT_PATTERNS = {  # match every text that can be converted, and some others
    "int64": r"^\s*([+-]?[0-9][0-9a-fA-FxX]*)?\s*$",
    "float64": r"^\s*([+-]?([0-9.][0-9.eE+-]*|[iInN].*))?\s*$",
    "bool": r"^\s*([a-zA-Z]{4,5}|[01])?\s*$",
    "timestamp": r"^\s*([+-]?[0-9][0-9TZ:. +-]*)?\s*$",
}
NO_POSITIONS = np.zeros(0, dtype=np.int64)


def import_pandas() -> None:
    """Make pyarrow import pandas, as it does for its first array: Ctrl-C within that import breaks both."""
    pa.array(NO_POSITIONS)


def convert_column(values: pa.Array, kind: str) -> tuple[pa.Array, Column]:
    """Convert values to a type; return them and the positions of the values that do not fit, which become null."""
    converted = _cast(values, kind)
    if converted is not None:
        return converted, NO_POSITIONS
    unparsable = _find_unparsable(values, kind)
    if len(unparsable):
        mask = np.zeros(len(values), dtype=bool)
        mask[unparsable] = True
        values = pc.if_else(pa.array(mask), pa.scalar(None, values.type), values)
    parts: list[pa.Array] = []
    bad: list[int] = []
    _convert_by_halves(values, kind, 0, parts, bad)
    return pa.concat_arrays(parts), np.union1d(unparsable, np.array(bad, dtype=np.int64))


def _find_unparsable(values: pa.Array, kind: str) -> Column:
    """Return the positions of texts that do not match the type's pattern, found in one pass."""
    if kind not in TEXT_PATTERNS or not (pa.types.is_binary(values.type) or pa.types.is_string(values.type)):
        return NO_POSITIONS
    looks = pc.match_substring_regex(values, TEXT_PATTERNS[kind])
    return np.flatnonzero(~looks.fill_null(True).to_numpy(zero_copy_only=False))


def _convert_by_halves(values: pa.Array, kind: str, offset: int, parts: list[pa.Array], bad: list[int]) -> None:
    """Convert values as a whole, or else each half by itself, so that a few bad values cost little."""
    part = _cast(values, kind)
    if part is not None:
        parts.append(part)
    elif len(values) == 1:
        parts.append(pa.nulls(1, ARROW_TYPES[kind]))
        bad.append(offset)
    else:
        half = len(values) // 2
        _convert_by_halves(values.slice(0, half), kind, offset, parts, bad)
        _convert_by_halves(values.slice(half), kind, offset + half, parts, bad)


def _cast(values: pa.Array, kind: str) -> pa.Array | None:
    """Convert all values to a type; None if one does not fit."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_binary(values.type) or pa.types.is_large_string(values.type):
        text = _try_cast(values, pa.string())
        if text is None or kind == "string":
            return text
        values = text
    if pa.types.is_string(values.type) and kind != "string":
        return _parse_text(values, kind)
    if pa.types.is_temporal(values.type) and kind in ("timestamp", "int64"):
        return values.cast(MICROSECOND_TYPE, safe=False).cast(pa.int64())
    return _try_cast(values, ARROW_TYPES[kind])


def _parse_text(text: pa.Array, kind: str) -> pa.Array | None:
    """Parse text as a type; it may have spaces around it and a leading plus, and empty text is null."""
    parsed = _convert_text(text, kind)
    if parsed is None:
        trimmed = pc.replace_substring_regex(pc.utf8_trim_whitespace(text), r"^\+([0-9.])", r"\1")
        parsed = _convert_text(pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed), kind)
    return parsed


def _convert_text(text: pa.Array, kind: str) -> pa.Array | None:
    """Parse text exactly as Arrow does."""
    parsed = _try_cast(text, ARROW_TYPES[kind])
    if parsed is None and kind == "timestamp":
        instants = next((i for i in (_try_cast(text, type_) for type_ in TIMESTAMP_TYPES) if i is not None), None)
        parsed = None if instants is None else instants.cast(MICROSECOND_TYPE, safe=False).cast(pa.int64())
    return parsed


def _try_cast(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    try:
        return values.cast(type_)
    except pa.ArrowInvalid:
        return None


def batch_from_arrow(columns: Mapping[str, pa.Array], schema: Schema) -> Batch:
    """Build a batch of Arrow columns that have the schema's types; null masks become columns of their own."""
    arrays: dict[str, Column] = {}
    for name, kind in schema.fields:
        column = columns[name]
        if column.null_count:
            arrays[name + NULLS_SUFFIX] = column.is_null().to_numpy(zero_copy_only=False)
            column = column.fill_null(NULL_FILL_VALUES[kind])
        arrays[name] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=DTYPES[kind])
    return Batch.of(arrays)


def empty_batch(schema: Schema) -> Batch:
    """Return a batch of zero rows, with every column of its type."""
    return Batch.of({name: np.zeros(0, dtype=DTYPES[kind]) for name, kind in schema.fields})


def arrow_from_batch(batch: Batch, schema: Schema) -> dict[str, pa.Array]:
    """Convert the columns of a batch to Arrow."""
    return {
        name: pa.array(
            batch.columns[name], ARROW_TYPES[kind], mask=batch.columns.get(name + NULLS_SUFFIX), from_pandas=False
        )
        for name, kind in schema.fields
    }
