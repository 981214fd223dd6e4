"""The order of insertions and deletions as one integer: timestamp, then deletion before insertion, then port."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsms.operators.joins.state.key_codes import Ints

MAX_PORTS = 64
INSERT_BIT = MAX_PORTS  # set in the order of an insertion
INSTANT_BITS = 7
ORDERS_PER_INSTANT = 1 << INSTANT_BITS  # twice the number of ports
MAX_TIMESTAMP_US = 2**54  # some 570 years from 1970 either way, so that orders fit 64 bits
MAX_ORDER = 2**63 - 1

Floats = NDArray[np.float64]


@dataclass
class RowEvents:
    """Insertions or deletions of an input's rows, in order."""

    positions: Ints
    orders: Ints
    arrived: Floats

    def pick(self, index: Ints | slice) -> RowEvents:
        """Return some of the events."""
        return RowEvents(self.positions[index], self.orders[index], self.arrived[index])


def first_order_at(watermark: int) -> int:
    """Return the lowest order at an instant."""
    return min(max(watermark, -MAX_TIMESTAMP_US), MAX_TIMESTAMP_US) * ORDERS_PER_INSTANT


def timestamps_of(orders: Ints) -> Ints:
    """Return the timestamps of orders."""
    return orders >> INSTANT_BITS


def signs_of(orders: Ints) -> Ints:
    """Return +1 for insertions, -1 for deletions."""
    return (orders >> INSTANT_BITS - 1 & 1) * 2 - 1
