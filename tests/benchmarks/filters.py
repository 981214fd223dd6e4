"""User code for live plans: the four filters of FC, each an operator of its own, and work that is heavy."""

from __future__ import annotations

import numpy as np

from dsms.batch import Batch, Column


def price(batch: Batch) -> Column:
    return batch.columns["price"] < 500_000


def bidder(batch: Batch) -> Column:
    return batch.columns["bidder"] < 5_000


def auction(batch: Batch) -> Column:
    return batch.columns["auction"] < 500


def even(batch: Batch) -> Column:
    return batch.columns["bidder"] % 2 == 0


def every(batch: Batch) -> Column:
    """All rows pass: what is measured is the way."""
    return np.ones(batch.rows, dtype=bool)


def heavy(batch: Batch) -> Column:
    """Some milliseconds for ten thousand rows; half of them pass."""
    values = batch.columns["price"] / 1e6
    for _ in range(20):
        values = np.sin(values) + 1
    return values < np.median(values)
