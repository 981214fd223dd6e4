"""A value as it is at an instant, copied fast: what is large in it as plain memory, and not what nobody can change."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ray import cloudpickle

Memory = NDArray[np.uint8]
ROOMY = 4  # a block that is so many times larger is not used
_NONE: Memory = np.empty(0, np.uint8)


class Frozen(NamedTuple):
    """How to make the value again, and the memory of its arrays."""

    head: bytes
    memory: tuple[Memory, ...]

    def sections(self, name: str) -> dict[str, memoryview]:
        """For a file, under this name."""
        parts = {f"{name}/{place}": part.data for place, part in enumerate(self.memory)}
        return {name: memoryview(self.head), **parts}

    @classmethod
    def read(cls, sections: Mapping[str, bytearray], name: str) -> Frozen:
        """From a file."""
        count = sum(key.startswith(f"{name}/") and key.removeprefix(f"{name}/").isdigit() for key in sections)
        memory = tuple(np.frombuffer(sections[f"{name}/{place}"], np.uint8) for place in range(count))
        return cls(bytes(sections[name]), memory)


class Freezer:
    """Copies values into memory that it has used before: new memory comes page by page, which takes ten times longer.

    So what was frozen is there until the next is.
    """

    def __init__(self) -> None:
        self._blocks: list[Memory] = []

    def frozen(self, value: Any) -> Frozen:
        """The value as it is now."""
        buffers: list[pickle.PickleBuffer] = []
        dumps: Any = cloudpickle.dumps
        head = bytes(dumps(value, protocol=5, buffer_callback=buffers.append))
        views = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        # Rows that came by the wire or from Ray are never written to.
        blocks = iter([*self._blocks, *(_NONE for _ in views)])
        memory = tuple(_copied(view, next(blocks)) if view.flags.writeable else view for view in views)
        self._blocks = [part if part.base is None else part.base for part in memory if part.flags.writeable]
        return Frozen(head, memory)


def _copied(view: Memory, block: Memory) -> Memory:
    """The same bytes in a block, or in a new one with some room if they do not fit, or leave most of it empty."""
    if not len(view) <= len(block) <= ROOMY * len(view):
        block = np.empty(len(view) + len(view) // 4, np.uint8)
    copied = block[: len(view)]
    copied[:] = view
    return copied


def thawed(given: Frozen) -> Any:
    """The value again, and writeable."""
    loads: Any = cloudpickle.loads
    return loads(given.head, buffers=[bytearray(part) for part in given.memory])
