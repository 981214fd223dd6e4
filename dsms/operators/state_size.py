"""Estimates the memory of an operator's state: the bytes of all columns that its objects hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dsms.data.batch import column_bytes
from dsms.operators.base import Operator

MAX_SAMPLED_OBJECTS = 400  # objects visited: the rest is assumed to be like them
SAMPLES_PER_COLLECTION = 8
MAX_SAMPLED_TEXTS = 1000  # strings visited in one column


def state_bytes(operator: Operator) -> float:
    """Estimate the bytes of an operator's state; a view of a larger column counts as a column of its own."""
    seen: set[int] = set()
    return _estimate_bytes(operator, seen, [MAX_SAMPLED_OBJECTS])


def _estimate_bytes(thing: Any, seen: set[int], left: list[int]) -> float:
    if isinstance(thing, np.ndarray):
        return 0.0 if id(thing) in seen else _estimate_column_bytes(thing, seen)
    if left[0] <= 0 or thing is None or isinstance(thing, str | bytes | int | float) or callable(thing):
        return 0.0
    if id(thing) in seen:
        return 0.0
    seen.add(id(thing))
    left[0] -= 1
    if isinstance(thing, Mapping):
        return _estimate_sampled_bytes(thing.values(), len(thing), seen, left)
    if isinstance(thing, list | tuple | deque | set | frozenset):
        return _estimate_sampled_bytes(thing, len(thing), seen, left)
    names = {name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())}
    parts = [*getattr(thing, "__dict__", {}).values(), *(getattr(thing, name, None) for name in names)]
    return sum(_estimate_bytes(part, seen, left) for part in parts)


def _estimate_sampled_bytes(things: Iterable[Any], count: int, seen: set[int], left: list[int]) -> float:
    """Estimate the bytes of a collection; a large one by a sample."""
    if count <= SAMPLES_PER_COLLECTION:  # few objects may differ a lot: visit all, each with an equal share
        return sum(_estimate_bytes(thing, seen, [left[0] // count]) for thing in things)
    visited, total = 0, 0.0
    for thing in things:
        if left[0] <= 0 and visited:
            break
        total += _estimate_bytes(thing, seen, left)
        visited += 1
    return total * count / visited if visited else 0.0


def _estimate_column_bytes(column: np.ndarray[Any, Any], seen: set[int]) -> float:
    seen.add(id(column))
    if column.dtype != object:
        return float(column.nbytes)
    sample = column[:: max(1, len(column) // MAX_SAMPLED_TEXTS)]  # evenly spread over the column
    return column_bytes(sample) * len(column) / max(1, len(sample))
