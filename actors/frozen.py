"""A value as it is at an instant, copied fast: what is large in it as plain memory, and not what nobody can change."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ray import cloudpickle

Memory = NDArray[np.uint8]


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


def frozen(value: Any) -> Frozen:
    """The value as it is now."""
    buffers: list[pickle.PickleBuffer] = []
    dumps: Any = cloudpickle.dumps
    head = bytes(dumps(value, protocol=5, buffer_callback=buffers.append))
    return Frozen(head, tuple(map(_copied, buffers)))


def thawed(given: Frozen) -> Any:
    """The value again, and writeable."""
    loads: Any = cloudpickle.loads
    return loads(given.head, buffers=[bytearray(part) for part in given.memory])


def _copied(buffer: pickle.PickleBuffer) -> Memory:
    view = np.frombuffer(buffer.raw(), np.uint8)
    return view.copy() if view.flags.writeable else view  # rows that came by the wire or from Ray are never written to
