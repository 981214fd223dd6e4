"""Batches cut so that each piece fits into a frame."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.batch import NULLS, Batch
from dsms.schema import Schema
from dsms.wire.columns import STRING
from dsms.wire.frames import LIMIT
from dsms.wire.rows import MOST_ROWS, MOST_TEXTS

WIDEST = 4  # bytes of a character
ATTRIBUTES = 17  # bytes a row: ts and sign, or when it was due, and what nulls take


def pieces(batch: Batch, schema: Schema, limit: int = LIMIT) -> Iterator[Batch]:
    """The rows in order, in as few pieces as surely fit; one piece where all do, empty or not."""
    texts = [name for name, kind in schema.fields if kind == STRING]
    most = min(MOST_ROWS, MOST_TEXTS // max(1, len(texts)))
    if batch.rows <= most and _bytes(batch, texts) <= limit - limit // 8:  # the header needs some
        yield batch
        return
    if batch.rows == 1:
        yield batch  # a single row that is too large is for the encoder to refuse
        return
    half = min(most, (batch.rows + 1) // 2)
    first, rest = batch.cut(half)
    yield from pieces(first, schema, limit)
    yield from pieces(rest, schema, limit)


def _bytes(batch: Batch, texts: list[str]) -> int:
    fixed = sum(column.nbytes for name, column in batch.columns.items() if not name.endswith(NULLS))
    written = sum(len(value) for name in texts for value in batch.columns[name] if isinstance(value, str))
    return fixed + WIDEST * written + ATTRIBUTES * batch.rows
