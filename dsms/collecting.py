"""How often Python looks for cycles of garbage while a run goes on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """The loop makes many tuples and no cycles: looking for some every 700 tuples would only cost time.

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
