"""A filter that all rows pass, and that calls a test when it runs, also in another thread."""

from __future__ import annotations

from collections.abc import Callable

from dsms.data.batch import Batch

HOOKS: dict[str, Callable[[], None]] = {}  # by name


class HookedFilter:
    """Passes on all rows, after the hook of its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, batch: Batch) -> Batch:
        if self._name in HOOKS:
            HOOKS[self._name]()
        return batch
