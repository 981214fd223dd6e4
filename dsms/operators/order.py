"""The order of rows on a way: by timestamp, at one instant negative rows first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dsms.batch import Batch, Column


def merged(parts: Sequence[Batch | None], source: Batch, upto: int, ended: bool) -> Batch:
    """The rows of all parts as one batch in order, ties as the parts stand; `source` brought the time."""
    given = [part for part in parts if part is not None and len(part)]
    if not given:
        arrived, seq = brought(source)
        return Batch(arrived=arrived, seq=seq, upto=upto, ended=ended)
    rows = Batch.joined(given)
    ts, sign = rows.each("ts"), rows.sign
    wrong = ts[1:] < ts[:-1]
    if isinstance(sign, np.ndarray):
        wrong |= (ts[1:] == ts[:-1]) & (sign[1:] < sign[:-1])
    if wrong.any():
        rows = rows.pick(_order(given, rows))
    return replace(rows, upto=upto, ended=ended)


def brought(batch: Batch) -> tuple[float, int]:
    """The arrival and the number of a batch that brought the time, for what time alone puts out."""
    if len(batch):
        return float(np.max(batch.arrived)), int(np.min(batch.seq))
    return (
        0.0 if isinstance(batch.arrived, np.ndarray) else batch.arrived,
        0 if isinstance(batch.seq, np.ndarray) else batch.seq,
    )


def _order(parts: Sequence[Batch], rows: Batch) -> Column:
    signs = [part.sign for part in parts]
    if all(isinstance(sign, int) for sign in signs) and signs == sorted(signs):
        return np.argsort(rows.each("ts"), kind="stable")  # negative parts first: at one instant all stands right
    return np.lexsort((rows.each("sign"), rows.each("ts")))
