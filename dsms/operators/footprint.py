"""How much an operator keeps: the bytes of the columns in its state, whatever holds them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dsms.batch import column_bytes
from dsms.operators.base import Operator

MOST = 400  # things looked at: of more, the rest is taken to be like those
FEW = 8
TEXTS = 1000  # looked at in one column


def state_bytes(operator: Operator) -> float:
    """An estimate; what is shared with a larger column counts as its own."""
    seen: set[int] = set()
    return _bytes(operator, seen, [MOST])


def _bytes(thing: Any, seen: set[int], left: list[int]) -> float:
    if isinstance(thing, np.ndarray):
        return 0.0 if id(thing) in seen else _noted(thing, seen)
    if left[0] <= 0 or thing is None or isinstance(thing, str | bytes | int | float) or callable(thing):
        return 0.0
    if id(thing) in seen:
        return 0.0
    seen.add(id(thing))
    left[0] -= 1
    if isinstance(thing, Mapping):
        return _sampled(thing.values(), len(thing), seen, left)
    if isinstance(thing, list | tuple | deque | set | frozenset):
        return _sampled(thing, len(thing), seen, left)
    names = {name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())}
    parts = [*getattr(thing, "__dict__", {}).values(), *(getattr(thing, name, None) for name in names)]
    return sum(_bytes(part, seen, left) for part in parts)


def _sampled(things: Iterable[Any], count: int, seen: set[int], left: list[int]) -> float:
    """The sum over many things, as far as they can be looked at."""
    if count <= FEW:  # each of them may be quite another than the others: all are looked at, none at another's cost
        return sum(_bytes(thing, seen, [left[0] // count]) for thing in things)
    looked, found = 0, 0.0
    for thing in things:
        if left[0] <= 0 and looked:
            break
        found += _bytes(thing, seen, left)
        looked += 1
    return found * count / looked if looked else 0.0


def _noted(column: np.ndarray[Any, Any], seen: set[int]) -> float:
    seen.add(id(column))
    if column.dtype != object:
        return float(column.nbytes)
    some = column[:: max(1, len(column) // TEXTS)]  # of many, all over the column
    return column_bytes(some) * len(column) / max(1, len(some))
