"""The block of changes that one aggregate operator passes to all of its accumulators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.key_table import Numbers
from dsms.operators.aggregation.cells import GroupInstants


class MembershipChanges(NamedTuple):
    """Distinct values that enter or leave a group, sorted by value, then by time."""

    pair: Numbers  # the slot of this (group, value) pair
    cell: Numbers  # the group's cell in which it happens
    sign: Numbers  # +1 enters, -1 leaves


class SumOverflow(NamedTuple):
    """A sum of integers that overflows int64."""

    column: str
    slot: int
    ts: int
    total: int


class AggregationBlock(NamedTuple):
    """Rows of complete instants, their cells and signs, and results that several accumulators share."""

    rows: Batch
    cells: GroupInstants
    signs: Numbers
    flips: dict[str, MembershipChanges]  # by column; filled by the first accumulator that needs it
    overflows: list[SumOverflow]

    def non_null_signs(self, column: str | None) -> Numbers:
        """Return each row's sign, and 0 where the column is null."""
        nulls = self.rows.columns.get(f"{column}{NULLS_SUFFIX}")
        return self.signs if nulls is None else np.where(nulls, 0, self.signs)
