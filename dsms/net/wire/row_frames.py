"""Encodes and decodes frames with rows: a header that lists columns and buffer sizes, then the buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, Batch, Column
from dsms.data.schema import Schema, conform
from dsms.errors import DsmsError, existing
from dsms.net.wire.columns import STRING, Buffer, PayloadReader, decode_column, encode_column
from dsms.net.wire.headers import Header, check_count, check_keys, check_list, check_text
from dsms.net.wire.messages import QUOTED_CHARACTERS, Data, Result, RowsMessage, WireError, quote

ColumnEntry = tuple[str, str, list[int]]  # a column's name, its type, and the size of each of its buffers in bytes
COLUMN_ENTRY_TYPES = [str, str, list]

FRAME_LIMIT_ROWS = 2**20
# Strings of all columns: each becomes an object of some 60 bytes, in sum about the bytes of the largest frame.
FRAME_LIMIT_TEXTS = 2**20
OWNER_KEY = {"data": "stream", "result": "query"}
ARRIVED, TS, SIGN = ("arrived", "float64"), ("ts", "timestamp"), ("sign", "int8")
ATTRIBUTES = {"data": ([], [ARRIVED]), "result": ([TS], [TS, SIGN])}  # allowed beside the columns


def encode_rows(message: RowsMessage) -> tuple[Header, list[Buffer]]:
    """Return the header of a data or result frame, and its buffers."""
    name, owner = ("data", message.stream) if isinstance(message, Data) else ("result", message.query)
    what, rows = f"{name} of {quote(owner)}", message.batch.rows
    _check_size(rows, message.schema, what)
    try:
        batch = conform(message.batch, message.schema, owner)
    except DsmsError as error:
        raise WireError(str(error)) from None
    buffers: list[Buffer] = []

    def entry(column: str, kind: str, values: Column, nulls: Column | None = None) -> list[Any]:
        parts = encode_column(values, kind, nulls, rows, f"{what}: column {column!r}")
        buffers.extend(parts)
        return [column, kind, [len(part) for part in parts]]

    if name == "data" and not np.all(batch.sign == 1):
        raise WireError(f"{what}: rows with the sign -1; a stream accepts only insertions, with the sign 1")
    attributes = [entry(key, kind, batch.each(key)) for key, kind in _list_attributes(batch, name)]
    columns = [
        entry(n, kind, batch.columns[n], batch.columns.get(n + NULLS_SUFFIX)) for n, kind in message.schema.fields
    ]
    header = {
        "type": name,
        OWNER_KEY[name]: check_text(owner, what),
        "sequence": check_count(message.sequence, f"{what}: sequence"),
    }
    return {**header, "rows": rows, "attributes": attributes, "columns": columns}, buffers


def decode_rows(header: Header, payload: PayloadReader, known: Mapping[str, Schema]) -> RowsMessage:
    """Make a data or result message from its header and payload; `known` are the schemas by stream or query."""
    name = header["type"]
    check_keys(header, (OWNER_KEY[name], "sequence", "rows", "attributes", "columns"))
    owner = check_text(header[OWNER_KEY[name]], f"{name}: {OWNER_KEY[name]}")
    sequence = check_count(header["sequence"], f"{name}: sequence")
    schema, what = known.get(owner), f"{name} of {quote(owner)}"
    if schema is None:
        raise WireError(f"{name}: no {OWNER_KEY[name]} {quote(owner)}{existing(owner[:QUOTED_CHARACTERS], known)}")
    rows = check_count(header["rows"], f"{what}: rows")
    _check_size(rows, schema, what)
    attributes = _decode_attributes(
        payload, _check_entries(header["attributes"], f"{what}: attributes"), name, rows, what
    )
    columns = _decode_columns(payload, _check_entries(header["columns"], f"{what}: columns"), schema, rows, what)
    payload.close()
    batch = Batch(columns, rows, **attributes)
    return Data(owner, sequence, batch, schema) if name == "data" else Result(owner, sequence, batch, schema)


def _list_attributes(batch: Batch, name: str) -> Sequence[tuple[str, str]]:
    """List the attributes to send: only values that differ from the default of the other side."""
    if name == "data":
        return ATTRIBUTES[name][isinstance(batch.arrived, np.ndarray)]
    return ATTRIBUTES[name][not np.all(batch.sign == 1)]


def _check_size(rows: int, schema: Schema, what: str) -> None:
    """Refuse a frame whose rows would need much more memory than its bytes."""
    texts = rows * sum(kind == STRING for _, kind in schema.fields)
    if rows > FRAME_LIMIT_ROWS or texts > FRAME_LIMIT_TEXTS:
        raise WireError(
            f"{what}: {rows} rows, {texts} strings; the limit of a frame is {FRAME_LIMIT_ROWS} rows"
            f" and {FRAME_LIMIT_TEXTS} strings"
        )


def _check_entries(value: object, what: str) -> list[ColumnEntry]:
    entries, label = [], f"{what}: bytes of a buffer"
    for each in check_list(value, what):
        if not isinstance(each, list) or [*map(type, each)] != COLUMN_ENTRY_TYPES:  # far faster than `match`
            raise WireError(f"{what}: {quote(each)}; expected a name, a type and the bytes of its buffers")
        name, kind, lengths = each
        for length in lengths:
            check_count(length, label)
        entries.append((name, kind, lengths))
    return entries


def _decode_attributes(
    payload: PayloadReader, entries: Sequence[ColumnEntry], name: str, rows: int, what: str
) -> dict[str, Any]:
    listed = [(key, kind) for key, kind, _ in entries]
    if listed not in ATTRIBUTES[name]:
        raise WireError(f"{what}: attributes {quote(str(listed))}; expected one of {ATTRIBUTES[name]}")
    attributes: dict[str, Any] = {}
    for key, kind, lengths in entries:
        values, nulls = decode_column(payload, kind, lengths, rows, f"{what}: attribute {key!r}")
        if nulls is not None:
            raise WireError(f"{what}: attribute {key!r} has nulls; it must have none")
        attributes[key] = values
    if "arrived" in attributes and not np.isfinite(attributes["arrived"]).all():
        raise WireError(f"{what}: an arrival time is not finite; expected seconds")
    if "sign" in attributes:
        if (np.abs(attributes["sign"]) != 1).any():
            raise WireError(f"{what}: a sign is neither 1 nor -1")
        attributes["sign"] = attributes["sign"].astype(np.int64)  # the type that operators produce
    return attributes


def _decode_columns(
    payload: PayloadReader, entries: Sequence[ColumnEntry], schema: Schema, rows: int, what: str
) -> dict[str, Column]:
    if tuple((name, kind) for name, kind, _ in entries) != schema.fields:
        raise WireError(f"{what}: {_describe_difference(entries, schema)}")
    columns = {}
    for name, kind, lengths in entries:
        columns[name], nulls = decode_column(payload, kind, lengths, rows, f"{what}: column {name!r}")
        if nulls is not None:
            columns[name + NULLS_SUFFIX] = nulls
    return columns


def _describe_difference(entries: Sequence[ColumnEntry], schema: Schema) -> str:
    """Describe the first difference between the columns received and the schema."""
    received = {name: kind for name, kind, _ in entries}
    for name, kind in schema.fields:
        if name not in received:
            return f"no column {name!r}; expected {kind}"
        if received[name] != kind:
            return f"column {name!r} is {quote(received[name])}; expected {kind}"
    for name in received:
        if name not in schema:
            return f"no column {quote(name)} is declared{existing(name[:QUOTED_CHARACTERS], schema)}"
    return f"columns duplicated or out of order; expected {list(schema)}"
