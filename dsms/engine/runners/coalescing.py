"""Coalesces small batches that wait together in one queue: one step on all of them costs little more than on one."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from dsms.data.batch import NULLS_SUFFIX, Batch

COALESCE_LIMIT_ROWS = 4096  # larger batches gain less by sharing a step than copying them costs


def take_joinable(queue: deque[tuple[Batch, float]], first: Batch, most: float) -> list[Batch]:
    """Return `first` and the batches taken from the queue behind it that may share its step, `most` rows in all."""
    parts, rows, watermark = [first], first.rows, first.watermark
    units = rows or 1  # a watermark without rows counts as one
    typed = first if rows else None  # the batch whose columns all others must have
    most = min(most, COALESCE_LIMIT_ROWS)
    while queue and not parts[-1].ended:
        following = queue[0][0]
        units += following.rows or 1
        if units > most or not _keeps_watermark(following, watermark):
            break
        if following.rows and typed is not None and not _has_same_columns(typed, following):
            break
        if following.rows:
            typed = typed or following
        watermark = following.watermark if following.watermark is not None else watermark
        parts.append(queue.popleft()[0])
    return parts


def join_in_order(parts: Sequence[Batch]) -> Batch:
    """Return the rows of all parts as one batch, with the last watermark that any of them carries."""
    if len(parts) == 1:
        return parts[0]
    marks = [part.watermark for part in parts if part.watermark is not None]
    rows = [part for part in parts if part.rows]
    joined = Batch.joined(rows) if rows else parts[0]
    return replace(joined, watermark=marks[-1] if marks else None, ended=parts[-1].ended)


def _keeps_watermark(batch: Batch, watermark: int | None) -> bool:
    """Return whether no row is older than a watermark before it: an operator may reject such a row."""
    if watermark is None or not batch.rows:
        return True
    ts = batch.ts
    return (ts if isinstance(ts, int) else int(ts.min())) >= watermark


def _has_same_columns(one: Batch, other: Batch) -> bool:
    """Return whether both have the same columns of the same types; only null columns may be missing."""
    names = {name for name in one.columns if not name.endswith(NULLS_SUFFIX)}
    if names != {name for name in other.columns if not name.endswith(NULLS_SUFFIX)}:
        return False
    return all(one.columns[name].dtype == other.columns[name].dtype for name in names)
