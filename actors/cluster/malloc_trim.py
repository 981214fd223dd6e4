"""Returns freed memory of an actor's process from the C library to the system.

A long run allocates rows in one thread and frees them in another. glibc keeps a heap for each thread, with the pages
between allocations: nothing leaks, and yet a process grows by megabytes in minutes.
"""

from __future__ import annotations

import ctypes
import threading

from actors.rpc.messages import is_actor

TRIM_INTERVAL_S = 10.0  # a trim takes half a millisecond, and not Python's lock
M_ARENA_MAX = -8  # glibc's number for the setting that limits the heaps of a process
MALLOC_ARENAS = 2  # the limit we set: threads share heaps, and Python allocates under its own lock anyway
_started = threading.Event()


def start_malloc_trim(every: float = TRIM_INTERVAL_S) -> None:
    """Return freed memory while this actor runs; does nothing outside an actor."""
    if _started.is_set() or not is_actor():
        return
    _started.set()
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):  # only glibc has it
        library.mallopt(M_ARENA_MAX, MALLOC_ARENAS)
        threading.Thread(target=_trim_periodically, args=(library, every), name="malloc trim", daemon=True).start()


def _trim_periodically(library: ctypes.CDLL, every: float) -> None:
    while not threading.Event().wait(every):
        library.malloc_trim(0)
