"""Finds the insertion points of sorted numbers in sorted values: by merging where that is faster than binary search."""

from __future__ import annotations

import numpy as np

from dsms.operators.joins.state.key_codes import Ints

MERGE_RATIO = 8  # merging is faster if there is at least one number for this many values
MAX_DOUBLED = 2**62  # twice this still fits 64 bits


def search_sorted(values: Ints, numbers: Ints, after: bool = False) -> Ints:
    """Return for each number how many of the sorted values are below it; with `after`: below or equal."""
    if len(numbers) < 2 or MERGE_RATIO * len(numbers) < len(values):
        return np.searchsorted(values, numbers, side="right" if after else "left")
    if np.any(numbers[1:] < numbers[:-1]) or numbers[0] < -MAX_DOUBLED or numbers[-1] >= MAX_DOUBLED:
        return np.searchsorted(values, numbers, side="right" if after else "left")
    first, last = np.searchsorted(values, numbers[[0, -1]], side="right" if after else "left")
    near = values[first:last]
    marked = np.concatenate([near * 2 + (not after), numbers * 2 + after])
    marked.sort(kind="stable")  # detects and merges the two sorted halves
    counts: Ints = np.flatnonzero((marked & 1) == after) + (first - np.arange(len(numbers)))
    return counts
