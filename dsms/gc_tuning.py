"""Makes Python's garbage collector run less often during a run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reduce_gc() -> Iterator[None]:
    """Collect rarely: the engine allocates many objects but no reference cycles.

    What was there before is not looked at again: with a parser and its like loaded that takes tenths of a second.
    """
    before = gc.get_threshold()
    gc.set_threshold(100_000, *before[1:])
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
