"""Sorts rows in stream order: by timestamp, and retractions before insertions at one instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dsms.data.batch import Batch, Column


def merge_in_time_order(parts: Sequence[Batch | None], source: Batch, watermark: int, ended: bool) -> Batch:
    """Merge parts into one batch in stream order, stable for ties; `source` is the batch that advanced the time."""
    filled = [part for part in parts if part is not None and len(part)]
    if not filled:
        arrived, seq = arrival_of(source)
        return Batch(arrived=arrived, seq=seq, watermark=watermark, ended=ended)
    rows = Batch.joined(filled)
    ts, sign = rows.each("ts"), rows.sign
    inverted = ts[1:] < ts[:-1]
    if isinstance(sign, np.ndarray):
        inverted |= (ts[1:] == ts[:-1]) & (sign[1:] < sign[:-1])
    if inverted.any():
        rows = rows.pick(_sort_order(filled, rows))
    return replace(rows, watermark=watermark, ended=ended)


def arrival_of(batch: Batch) -> tuple[float, int]:
    """Return the arrival time and sequence number of a batch, for the rows that only its watermark causes."""
    if len(batch):
        return float(np.max(batch.arrived)), int(np.min(batch.seq))
    return (
        0.0 if isinstance(batch.arrived, np.ndarray) else batch.arrived,
        0 if isinstance(batch.seq, np.ndarray) else batch.seq,
    )


def _sort_order(parts: Sequence[Batch], rows: Batch) -> Column:
    signs = [part.sign for part in parts]
    if all(isinstance(sign, int) for sign in signs) and signs == sorted(signs):
        return np.argsort(rows.each("ts"), kind="stable")  # keeps retractions first, where they are already
    return np.lexsort((rows.each("sign"), rows.each("ts")))
