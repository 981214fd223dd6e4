"""Splits a batch into pieces that each fit into one frame."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.config.frame_limits import FRAME_LIMIT_BYTES
from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.schema import Schema
from dsms.net.wire.columns import STRING
from dsms.net.wire.row_frames import FRAME_LIMIT_ROWS, FRAME_LIMIT_TEXTS

CHARACTER_MAX_BYTES = 4  # of one character in UTF-8
ROW_ATTRIBUTE_BYTES = 17  # a row: `ts` and `sign`, or its arrival time, and its null bits


def split_batch(batch: Batch, schema: Schema, limit: int = FRAME_LIMIT_BYTES) -> Iterator[Batch]:
    """Yield the rows in order, in pieces that surely fit; one piece, perhaps empty, if the whole batch fits."""
    texts = [name for name, kind in schema.fields if kind == STRING]
    most = min(FRAME_LIMIT_ROWS, FRAME_LIMIT_TEXTS // max(1, len(texts)))
    if batch.rows <= most and _estimate_bytes(batch, texts) <= limit - limit // 8:  # the rest is for the header
        yield batch
        return
    if batch.rows == 1:
        yield batch  # the encoder refuses a single row that is too large
        return
    half = min(most, (batch.rows + 1) // 2)
    first, rest = batch.cut(half)
    yield from split_batch(first, schema, limit)
    yield from split_batch(rest, schema, limit)


def _estimate_bytes(batch: Batch, texts: list[str]) -> int:
    fixed = sum(column.nbytes for name, column in batch.columns.items() if not name.endswith(NULLS_SUFFIX))
    characters = sum(len(value) for name in texts for value in batch.columns[name] if isinstance(value, str))
    return fixed + CHARACTER_MAX_BYTES * characters + ROW_ATTRIBUTE_BYTES * batch.rows
