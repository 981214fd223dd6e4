"""Whose a log is: one process's at a time, until that ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from threading import Event

from dsms.clock import stopwatch
from dsms.errors import DsmsError

WAIT = 10.0  # seconds for a process that was killed to be gone
LOOK = 0.05  # seconds between two attempts


class Sole:
    """Held from when it is made until `close`; a second one on the same path is refused, in another process too.

    The lock is on a file of its own: SQLite's end when anybody in the process closes the file that they are on.
    """

    def __init__(self, path: Path, wait: float | None = None) -> None:
        try:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DsmsError(f"{str(path)!r} cannot be opened: {error.strerror}") from None
        until = stopwatch() + (WAIT if wait is None else wait)
        while not self._locked(path):
            if stopwatch() >= until:
                self.close()
                raise DsmsError(
                    f"{str(path.parent)!r} is in use by a deployment that runs (another process holds {path.name!r}): "
                    "end that one first, or take another folder"
                )
            Event().wait(LOOK)

    def close(self) -> None:
        """Others may have it now."""
        os.close(self._handle)

    def _locked(self, path: Path) -> bool:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            self.close()
            raise DsmsError(f"{str(path)!r} cannot be locked: {error.strerror}") from None
        return True
