"""Results that were given out and are made again, perhaps cut otherwise: so that nobody gets a row of them twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dsms.batch import Batch

Row = tuple[Any, ...]


def taken_back(given: Sequence[Batch]) -> list[Batch]:
    """What has to follow on these so that they were never given: the last row first, each with the other sign."""
    return [
        replace(found, sign=-found.each("sign"))
        for found in (batch.pick(slice(None, None, -1)) for batch in given[::-1])
    ]


def counted(given: Iterable[Batch]) -> Counter[Row]:
    """How often each row is among these, whenever it was."""
    return Counter(row for batch in given for row in _rows(batch))


def without(batch: Batch, surplus: Counter[Row]) -> Batch:
    """The rows that are not in surplus, which shrinks by those that are."""
    if not surplus:
        return batch
    kept = np.ones(len(batch), bool)
    for place, row in enumerate(_rows(batch)):
        if surplus[row] > 0:
            surplus[row] -= 1
            kept[place] = False
    for row in [row for row, times in surplus.items() if times <= 0]:
        del surplus[row]
    return batch.pick(kept)


def _rows(batch: Batch) -> list[Row]:
    return list(zip(*(batch.columns[name].tolist() for name in sorted(batch.columns)), strict=True))
