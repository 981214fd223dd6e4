"""Removes or retracts results that were released before and are produced again, so that no row counts twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dsms.data.batch import Batch

Row = tuple[Any, ...]


def retract(batches: Sequence[Batch]) -> list[Batch]:
    """Batches that undo these: the last row first, each with the opposite sign."""
    return [
        replace(reversed_batch, sign=-reversed_batch.each("sign"))
        for reversed_batch in (batch.pick(slice(None, None, -1)) for batch in batches[::-1])
    ]


def count_rows(batches: Iterable[Batch]) -> Counter[Row]:
    """Count each row of these batches, regardless of its timestamp."""
    return Counter(row for batch in batches for row in _rows(batch))


def drop_duplicates(batch: Batch, duplicates: Counter[Row]) -> Batch:
    """Drop the rows that `duplicates` lists, and subtract them from it."""
    if not duplicates:
        return batch
    kept = np.ones(len(batch), bool)
    for place, row in enumerate(_rows(batch)):
        if duplicates[row] > 0:
            duplicates[row] -= 1
            kept[place] = False
    for row in [row for row, times in duplicates.items() if times <= 0]:
        del duplicates[row]
    return batch.pick(kept)


def _rows(batch: Batch) -> list[Row]:
    return list(zip(*(batch.columns[name].tolist() for name in sorted(batch.columns)), strict=True))
