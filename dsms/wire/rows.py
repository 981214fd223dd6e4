"""Frames that carry rows: the header names columns and the bytes of their buffers, which follow; checked by schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dsms.batch import NULLS, Batch, Column
from dsms.errors import DsmsError, existing
from dsms.schema import Schema, conformed
from dsms.wire.columns import STRING, Buffer, Payload, packed, unpacked
from dsms.wire.headers import Header, count, items, only, text
from dsms.wire.messages import SHOWN, Data, Result, Rows, WireError, shown

Entry = tuple[str, str, list[int]]  # a column's name, type, and the bytes of each of its buffers
ENTRY = [str, str, list]

MOST_ROWS = 2**20  # of a frame
MOST_TEXTS = 2**20  # of a frame, in all its columns: each becomes an object of some 60 bytes, as many as a frame's
OWNER = {"data": "stream", "result": "query"}
ARRIVED, TS, SIGN = ("arrived", "float64"), ("ts", "timestamp"), ("sign", "int8")
ATTRIBUTES = {"data": ([], [ARRIVED]), "result": ([TS], [TS, SIGN])}  # what may go with the rows beside columns


def header_of(message: Rows) -> tuple[Header, list[Buffer]]:
    """The header of a data or result frame, and the buffers that follow it."""
    name, of = ("data", message.stream) if isinstance(message, Data) else ("result", message.query)
    what, rows = f"{name} of {shown(of)}", message.batch.rows
    _bounded(rows, message.schema, what)
    try:
        batch = conformed(message.batch, message.schema, of)
    except DsmsError as error:
        raise WireError(str(error)) from None
    buffers: list[Buffer] = []

    def entry(column: str, kind: str, values: Column, nulls: Column | None = None) -> list[Any]:
        parts = packed(values, kind, nulls, rows, f"{what}: column {column!r}")
        buffers.extend(parts)
        return [column, kind, [len(part) for part in parts]]

    if name == "data" and not np.all(batch.sign == 1):
        raise WireError(f"{what}: rows with the sign -1; a stream only takes rows that come")
    attributes = [entry(key, kind, batch.each(key)) for key, kind in _sent(batch, name)]
    columns = [entry(n, kind, batch.columns[n], batch.columns.get(n + NULLS)) for n, kind in message.schema.fields]
    header = {"type": name, OWNER[name]: text(of, what), "sequence": count(message.sequence, f"{what}: sequence")}
    return {**header, "rows": rows, "attributes": attributes, "columns": columns}, buffers


def read_rows(header: Header, payload: Payload, known: Mapping[str, Schema]) -> Rows:
    """The data or result message of a header and what follows it; `known` are the schemas there are."""
    name = header["type"]
    only(header, (OWNER[name], "sequence", "rows", "attributes", "columns"))
    of, sequence = text(header[OWNER[name]], f"{name}: {OWNER[name]}"), count(header["sequence"], f"{name}: sequence")
    schema, what = known.get(of), f"{name} of {shown(of)}"
    if schema is None:
        raise WireError(f"{name}: no {OWNER[name]} {shown(of)}{existing(of[:SHOWN], known)}")
    rows = count(header["rows"], f"{what}: rows")
    _bounded(rows, schema, what)
    attributes = _attributes(payload, _entries(header["attributes"], f"{what}: attributes"), name, rows, what)
    columns = _columns(payload, _entries(header["columns"], f"{what}: columns"), schema, rows, what)
    payload.close()
    batch = Batch(columns, rows, **attributes)
    return Data(of, sequence, batch, schema) if name == "data" else Result(of, sequence, batch, schema)


def _sent(batch: Batch, name: str) -> Sequence[tuple[str, str]]:
    """The attributes to send: those that are not what the other side takes for granted."""
    if name == "data":
        return ATTRIBUTES[name][isinstance(batch.arrived, np.ndarray)]
    return ATTRIBUTES[name][not np.all(batch.sign == 1)]


def _bounded(rows: int, schema: Schema, what: str) -> None:
    """No frame makes more objects than memory is meant to hold, however few bytes it has."""
    texts = rows * sum(kind == STRING for _, kind in schema.fields)
    if rows > MOST_ROWS or texts > MOST_TEXTS:
        raise WireError(f"{what}: {rows} rows, {texts} strings; at most {MOST_ROWS} and {MOST_TEXTS} go into one frame")


def _entries(value: object, what: str) -> list[Entry]:
    entries, label = [], f"{what}: bytes of a buffer"
    for each in items(value, what):
        if not isinstance(each, list) or [*map(type, each)] != ENTRY:  # several times as fast as a match
            raise WireError(f"{what}: {shown(each)}; a name, a type and the bytes of its buffers are wanted")
        name, kind, lengths = each
        for length in lengths:
            count(length, label)
        entries.append((name, kind, lengths))
    return entries


def _attributes(payload: Payload, entries: Sequence[Entry], name: str, rows: int, what: str) -> dict[str, Any]:
    given = [(key, kind) for key, kind, _ in entries]
    if given not in ATTRIBUTES[name]:
        raise WireError(f"{what}: attributes {shown(str(given))}; one of {ATTRIBUTES[name]} is wanted")
    found: dict[str, Any] = {}
    for key, kind, lengths in entries:
        values, nulls = unpacked(payload, kind, lengths, rows, f"{what}: attribute {key!r}")
        if nulls is not None:
            raise WireError(f"{what}: attribute {key!r} has nulls; none are wanted")
        found[key] = values
    if "arrived" in found and not np.isfinite(found["arrived"]).all():
        raise WireError(f"{what}: a time of arrival is not finite; seconds are wanted")
    if "sign" in found:
        if (np.abs(found["sign"]) != 1).any():
            raise WireError(f"{what}: a sign is neither 1 nor -1")
        found["sign"] = found["sign"].astype(np.int64)  # as operators make them
    return found


def _columns(payload: Payload, entries: Sequence[Entry], schema: Schema, rows: int, what: str) -> dict[str, Column]:
    if tuple((name, kind) for name, kind, _ in entries) != schema.fields:
        raise WireError(f"{what}: {_difference(entries, schema)}")
    columns = {}
    for name, kind, lengths in entries:
        columns[name], nulls = unpacked(payload, kind, lengths, rows, f"{what}: column {name!r}")
        if nulls is not None:
            columns[name + NULLS] = nulls
    return columns


def _difference(entries: Sequence[Entry], schema: Schema) -> str:
    """What first tells the columns that came from those that are wanted."""
    given = {name: kind for name, kind, _ in entries}
    for name, kind in schema.fields:
        if name not in given:
            return f"no column {name!r}; {kind} is wanted"
        if given[name] != kind:
            return f"column {name!r} is {shown(given[name])}; {kind} is wanted"
    for name in given:
        if name not in schema:
            return f"no column {shown(name)} is declared{existing(name[:SHOWN], schema)}"
    return f"columns twice or out of order; {list(schema)} are wanted"
