"""In what order things happen: one number for the instant, for going before coming, and for the port."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsms.joins.keys import Ints

PORTS = 64
COMES = PORTS  # added where a row comes rather than goes
INSTANT_BITS = 7
INSTANT = 1 << INSTANT_BITS  # between two instants: twice the ports
FURTHEST = 2**54  # a timestamp is less than this from 0, some 570 years in microseconds: so that orders fit 64 bits
NEVER = 2**63 - 1

Floats = NDArray[np.float64]


@dataclass
class Events:
    """Rows of a side that come or go, in order."""

    positions: Ints
    orders: Ints
    arrived: Floats

    def pick(self, index: Ints | slice) -> Events:
        """Some of them."""
        return Events(self.positions[index], self.orders[index], self.arrived[index])


def horizon(upto: int) -> int:
    """The order of the first thing that may happen at an instant."""
    return min(max(upto, -FURTHEST), FURTHEST) * INSTANT


def instants(orders: Ints) -> Ints:
    """The timestamps of orders."""
    return orders >> INSTANT_BITS


def signs(orders: Ints) -> Ints:
    """+1 where something comes, -1 where it goes."""
    return (orders >> INSTANT_BITS - 1 & 1) * 2 - 1
