"""User code for live plans: the four filters of FC, each an operator of its own, and work that is heavy."""

from __future__ import annotations

import numpy as np

from dsms.data.batch import Batch, Column

PASSES = 120  # some twenty milliseconds for ten thousand rows


def price(batch: Batch) -> Column:
    return batch.columns["price"] < 500_000


def bidder(batch: Batch) -> Column:
    return batch.columns["bidder"] < 5_000


def auction(batch: Batch) -> Column:
    return batch.columns["auction"] < 500


def even(batch: Batch) -> Column:
    return batch.columns["bidder"] % 2 == 0


def heavy(batch: Batch) -> Column:
    """Costly for each row; half of them pass."""
    values = batch.columns["price"] / 1e6
    for _ in range(PASSES):
        values = np.sin(values) + 1
    return values < np.median(values)
