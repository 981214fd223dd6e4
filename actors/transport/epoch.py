"""A counter in shared memory: one process raises it, others on the same machine read it in nanoseconds."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

COUNTER = struct.Struct("<q")


class Epoch:
    """The counter in the process that raises it. The memory has no name on disk: it goes when the last process ends."""

    def __init__(self) -> None:
        file = os.memfd_create("dsms-epoch")
        os.ftruncate(file, COUNTER.size)
        self._memory = mmap.mmap(file, COUNTER.size)
        self._file = file
        self.value = 0

    @property
    def path(self) -> str:
        """Where other processes find it."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    def raise_by_one(self) -> None:
        """Raise it; after `close` nobody reads it any more."""
        self.value += 1
        if not self._memory.closed:
            COUNTER.pack_into(self._memory, 0, self.value)

    def close(self) -> None:
        """Release the memory; a second call does nothing."""
        if not self._memory.closed:
            self._memory.close()
            os.close(self._file)


class EpochReader:
    """The counter in another process."""

    def __init__(self, path: str) -> None:
        with Path(path).open("rb") as file:
            self._memory = mmap.mmap(file.fileno(), COUNTER.size, access=mmap.ACCESS_READ)

    def read(self) -> int:
        """Return its present value."""
        value: int = COUNTER.unpack_from(self._memory)[0]
        return value
