"""The order of rows on a way: by timestamp, at one instant negative rows first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dsms.batch import Batch


def merged(parts: Sequence[Batch | None], source: Batch, upto: int, ended: bool) -> Batch:
    """The rows of all parts as one batch in order, ties as the parts stand; `source` brought the time."""
    given = [part for part in parts if part is not None and len(part)]
    if not given:
        arrived, seq = brought(source)
        return Batch(arrived=arrived, seq=seq, upto=upto, ended=ended)
    rows = Batch.joined(given)
    ts, sign = rows.each("ts"), rows.sign
    same = np.diff(ts)
    if isinstance(sign, np.ndarray):
        if np.any((same < 0) | ((same == 0) & (np.diff(sign) < 0))):
            rows = rows.pick(_order(given, ts, sign))
    elif np.any(same < 0):
        rows = rows.pick(np.argsort(ts, kind="stable"))
    return replace(rows, upto=upto, ended=ended)


def brought(batch: Batch) -> tuple[float, int]:
    """The arrival and the number of a batch that brought the time, for what time alone puts out."""
    if len(batch):
        return float(np.max(batch.arrived)), int(np.min(batch.seq))
    return (
        0.0 if isinstance(batch.arrived, np.ndarray) else batch.arrived,
        0 if isinstance(batch.seq, np.ndarray) else batch.seq,
    )


def _order(parts: Sequence[Batch], ts: np.ndarray, sign: np.ndarray) -> np.ndarray:
    signs = [part.sign for part in parts]
    if not any(isinstance(value, np.ndarray) for value in signs) and signs == sorted(signs):
        return np.argsort(ts, kind="stable")  # parts of one sign each, negative ones first: ties stand right already
    return np.lexsort((sign, ts))
