"""Copies a value fast: pickles its structure, copies its arrays as plain memory, and shares read-only arrays."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ray import cloudpickle

Memory = NDArray[np.uint8]
BLOCK_REUSE_RATIO = 4  # a block larger than the copy by more than this factor is not reused
_NONE: Memory = np.empty(0, np.uint8)


class StateCopy(NamedTuple):
    """A pickled value, and the memory of its arrays."""

    head: bytes
    memory: tuple[Memory, ...]

    def sections(self, name: str) -> dict[str, memoryview]:
        """Return the parts of a checkpoint file, under this name."""
        parts = {f"{name}/{place}": part.data for place, part in enumerate(self.memory)}
        return {name: memoryview(self.head), **parts}

    @classmethod
    def read(cls, sections: Mapping[str, bytearray], name: str) -> StateCopy:
        """Build a copy from the parts of a checkpoint file."""
        count = sum(key.startswith(f"{name}/") and key.removeprefix(f"{name}/").isdigit() for key in sections)
        memory = tuple(np.frombuffer(sections[f"{name}/{place}"], np.uint8) for place in range(count))
        return cls(bytes(sections[name]), memory)


class StateCopier:
    """Copies values into memory used before: fresh memory is mapped page by page, which takes ten times longer.

    So a copy is valid until the next one is made.
    """

    def __init__(self) -> None:
        self._blocks: list[Memory] = []

    def copy(self, value: object) -> StateCopy:
        """Copy a value as it is now."""
        buffers: list[pickle.PickleBuffer] = []
        dumps: Any = cloudpickle.dumps
        head = bytes(dumps(value, protocol=5, buffer_callback=buffers.append))
        views = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        # Rows that came from another process are read-only: no copy.
        blocks = iter([*self._blocks, *(_NONE for _ in views)])
        memory = tuple(_copy_into(view, next(blocks)) if view.flags.writeable else view for view in views)
        self._blocks = [part if part.base is None else part.base for part in memory if part.flags.writeable]
        return StateCopy(head, memory)


def _copy_into(view: Memory, block: Memory) -> Memory:
    """Copy bytes into a block, or into a new one where they do not fit or would leave most of it empty."""
    if not len(view) <= len(block) <= BLOCK_REUSE_RATIO * len(view):
        block = np.empty(len(view) + len(view) // 4, np.uint8)
    copied = block[: len(view)]
    copied[:] = view
    return copied


def load_state_copy(copy: StateCopy) -> Any:
    """Rebuild the value; its arrays are writeable."""
    loads: Any = cloudpickle.loads
    return loads(copy.head, buffers=[bytearray(part) for part in copy.memory])
