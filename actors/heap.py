"""The memory that a process's C library keeps: what was freed goes back to the system.

A long run takes rows in one thread and lets them go in another. glibc keeps a heap for each of many threads, and of
each the pages between what is in use: nothing leaks, and yet a process grows by megabytes in minutes.
"""

from __future__ import annotations

import ctypes
import threading

from actors.messages import myself

EVERY = 10.0  # seconds; giving back takes half a millisecond, and none of Python's lock
ARENA_MAX = -8  # glibc's number of the setting that says how many heaps there may be,
ARENAS = 2  # and what it is from now on: threads share them, and Python allocates under its own lock anyway
_begun = threading.Event()


def keep_small(every: float = EVERY) -> None:
    """Give freed memory back for as long as this process lives; nothing is done where it is no actor's."""
    if _begun.is_set() or myself() is None:
        return
    _begun.set()
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):  # glibc's; others have no such habit
        library.mallopt(ARENA_MAX, ARENAS)
        threading.Thread(target=_give_back, args=(library, every), name="heap", daemon=True).start()


def _give_back(library: ctypes.CDLL, every: float) -> None:
    while not threading.Event().wait(every):
        library.malloc_trim(0)
