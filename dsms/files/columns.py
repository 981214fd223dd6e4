"""Between the columns of a batch and those of Arrow: what fits a type, and which rows do not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.batch import NULLS, Batch, Column
from dsms.schema import DTYPES, Schema

# A timestamp is tried as microseconds, then as ISO 8601 text without and with a zone; without one it is UTC.
# What is finer than a microsecond is cut off.
ARROW = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.int64(),
    "string": pa.string(),
}
INSTANTS = [pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")]
MICROSECONDS = pa.timestamp("us")
BLANK = {"int64": 0, "float64": 0.0, "bool": False, "timestamp": 0, "string": ""}
LOOKS = {  # allows whatever may convert, and more
    "int64": r"^\s*([+-]?[0-9][0-9a-fA-FxX]*)?\s*$",
    "float64": r"^\s*([+-]?([0-9.][0-9.eE+-]*|[iInN].*))?\s*$",
    "bool": r"^\s*([a-zA-Z]{4,5}|[01])?\s*$",
    "timestamp": r"^\s*([+-]?[0-9][0-9TZ:. +-]*)?\s*$",
}
NONE = np.zeros(0, dtype=np.int64)


def fitted(values: pa.Array, kind: str) -> tuple[pa.Array, Column]:
    """The values as that type, and the positions of those that do not fit, which are null in it."""
    whole = _cast(values, kind)
    if whole is not None:
        return whole, NONE
    hopeless = _hopeless(values, kind)
    if len(hopeless):
        mask = np.zeros(len(values), dtype=bool)
        mask[hopeless] = True
        values = pc.if_else(pa.array(mask), pa.scalar(None, values.type), values)
    parts: list[pa.Array] = []
    bad: list[int] = []
    _halved(values, kind, 0, parts, bad)
    return pa.concat_arrays(parts), np.union1d(hopeless, np.array(bad, dtype=np.int64))


def _hopeless(values: pa.Array, kind: str) -> Column:
    """Positions of text that does not even look like that type: found all at once, however many they are."""
    if kind not in LOOKS or not (pa.types.is_binary(values.type) or pa.types.is_string(values.type)):
        return NONE
    looks = pc.match_substring_regex(values, LOOKS[kind])
    return np.flatnonzero(~looks.fill_null(True).to_numpy(zero_copy_only=False))


def _halved(values: pa.Array, kind: str, offset: int, parts: list[pa.Array], bad: list[int]) -> None:
    """Convert what converts as a whole, and look for what does not in halves: a few bad values cost little."""
    part = _cast(values, kind)
    if part is not None:
        parts.append(part)
    elif len(values) == 1:
        parts.append(pa.nulls(1, ARROW[kind]))
        bad.append(offset)
    else:
        half = len(values) // 2
        _halved(values.slice(0, half), kind, offset, parts, bad)
        _halved(values.slice(half), kind, offset + half, parts, bad)


def _cast(values: pa.Array, kind: str) -> pa.Array | None:
    """All the values as that type; None if one does not fit."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_binary(values.type) or pa.types.is_large_string(values.type):
        text = _tried(values, pa.string())
        if text is None or kind == "string":
            return text
        values = text
    if pa.types.is_string(values.type) and kind != "string":
        return _parsed(values, kind)
    if pa.types.is_temporal(values.type) and kind in ("timestamp", "int64"):
        return values.cast(MICROSECONDS, safe=False).cast(pa.int64())
    return _tried(values, ARROW[kind])


def _parsed(text: pa.Array, kind: str) -> pa.Array | None:
    """Text as that type; spaces around it and a plus before it are allowed, and empty text is null."""
    found = _converted(text, kind)
    if found is None:
        trimmed = pc.replace_substring_regex(pc.utf8_trim_whitespace(text), r"^\+([0-9.])", r"\1")
        found = _converted(pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed), kind)
    return found


def _converted(text: pa.Array, kind: str) -> pa.Array | None:
    """Text exactly as Arrow takes it."""
    found = _tried(text, ARROW[kind])
    if found is None and kind == "timestamp":
        instants = next((i for i in (_tried(text, type_) for type_ in INSTANTS) if i is not None), None)
        found = None if instants is None else instants.cast(MICROSECONDS, safe=False).cast(pa.int64())
    return found


def _tried(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    try:
        return values.cast(type_)
    except pa.ArrowInvalid:
        return None


def batch_of(columns: Mapping[str, pa.Array], schema: Schema) -> Batch:
    """A batch of Arrow columns that are already of the schema's types; nulls go beside their columns."""
    arrays: dict[str, Column] = {}
    for name, kind in schema.fields:
        column = columns[name]
        if column.null_count:
            arrays[name + NULLS] = column.is_null().to_numpy(zero_copy_only=False)
            column = column.fill_null(BLANK[kind])
        arrays[name] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=DTYPES[kind])
    return Batch.of(arrays)


def empty(schema: Schema) -> Batch:
    """No rows, with every column of its type."""
    return Batch.of({name: np.zeros(0, dtype=DTYPES[kind]) for name, kind in schema.fields})


def arrow_of(batch: Batch, schema: Schema) -> dict[str, pa.Array]:
    """The columns of a batch as Arrow's."""
    return {
        name: pa.array(batch.columns[name], ARROW[kind], mask=batch.columns.get(name + NULLS), from_pandas=False)
        for name, kind in schema.fields
    }
