"""Where sorted numbers lie among sorted numbers: for many of them merging is twice as fast as searching each."""

from __future__ import annotations

import numpy as np

from dsms.joins.keys import Ints

MANY = 8  # one number in so many, and merging pays
FURTHEST = 2**62  # doubled it still is a number of 64 bits


def places(values: Ints, wanted: Ints, after: bool = False) -> Ints:
    """For each number how many of the sorted values are below it; `after`: or equal to it."""
    if len(wanted) < 2 or MANY * len(wanted) < len(values):
        return np.searchsorted(values, wanted, side="right" if after else "left")
    if np.any(wanted[1:] < wanted[:-1]) or wanted[0] < -FURTHEST or wanted[-1] >= FURTHEST:
        return np.searchsorted(values, wanted, side="right" if after else "left")
    first, last = np.searchsorted(values, wanted[[0, -1]], side="right" if after else "left")
    near = values[first:last]
    marked = np.concatenate([near * 2 + (not after), wanted * 2 + after])
    marked.sort(kind="stable")  # finds the two sorted halves
    found: Ints = np.flatnonzero((marked & 1) == after) + (first - np.arange(len(wanted)))
    return found
