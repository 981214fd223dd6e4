"""A lock that one process holds on a folder until it closes it or dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from threading import Event

from dsms.clock import monotonic_s
from dsms.errors import DsmsError

LOCK_TIMEOUT_S = 10.0  # a killed process may take this long to disappear
LOCK_RETRY_S = 0.05


class FileLock:
    """Held from construction until `close`; a second lock on the same path is refused, in any process.

    The lock has a file of its own: a lock on SQLite's file would end when any thread of the process closes that file.
    """

    def __init__(self, path: Path, wait: float | None = None) -> None:
        try:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DsmsError(f"{str(path)!r} cannot be opened: {error.strerror}") from None
        until = monotonic_s() + (LOCK_TIMEOUT_S if wait is None else wait)
        while not self._lock(path):
            if monotonic_s() >= until:
                self.close()
                raise DsmsError(
                    f"{str(path.parent)!r} is in use by another deployment (a process holds {path.name!r}): "
                    "end that deployment first, or choose another folder"
                )
            Event().wait(LOCK_RETRY_S)

    def close(self) -> None:
        """Release the lock."""
        os.close(self._handle)

    def _lock(self, path: Path) -> bool:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            self.close()
            raise DsmsError(f"{str(path)!r} cannot be locked: {error.strerror}") from None
        return True
