"""Complete instants of an input, as all aggregations of one operator see them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dsms.batch import NULLS, Batch
from dsms.operators.aggregation.cells import Cells
from dsms.slots import Numbers


class Flips(NamedTuple):
    """Values that come to a group or leave it, by value, then in the order of time."""

    pair: Numbers  # the number of this value in this group
    cell: Numbers  # of the groups' cells
    sign: Numbers  # +1 comes, -1 leaves


class Beyond(NamedTuple):
    """A sum of integers that int64 cannot hold: of which column, in which slot, when, and what it is."""

    column: str
    slot: int
    ts: int
    total: int


class Block(NamedTuple):
    """Rows, what each of them does to which group, and what was found out about the values of columns."""

    rows: Batch
    cells: Cells
    signs: Numbers
    flips: dict[str, Flips]  # by column
    beyond: list[Beyond]

    def counting(self, column: str | None) -> Numbers:
        """Each row's sign, nothing where the column is null."""
        nulls = self.rows.columns.get(f"{column}{NULLS}")
        return self.signs if nulls is None else np.where(nulls, 0, self.signs)
