"""Works around what Ray 2.60.0 does not offer: small processes, a late token, reasons for a refused connection."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import ray
import ray._private.utils
import ray._private.worker
import ray._raylet
import ray.util.serialization_addons

TOKEN_REFUSED = "InvalidAuthToken"  # 2.60.0 writes it to standard error and tries for ever; it raises nothing


def silence_ray(malloc_arenas: int) -> None:
    """Keep Ray from reporting its use and from printing that there are many actors (2.60.0 has no option for it)."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("MALLOC_ARENA_MAX", str(malloc_arenas))  # of workers, from their first thread on
    worker: Any = ray._private.worker
    worker._worker_logs_enabled = False


def skip_unused_serializers() -> None:
    """Keep Ray from importing pyarrow, pydantic and starlette into every process, to serialize their objects.

    We send none of them through Ray. It saves a quarter of an actor's start and 40 MB (2.60.0 has no option for it).
    """
    addons: Any = ray.util.serialization_addons
    addons.apply = lambda context: None


def set_auth_token(path: str) -> None:
    """Authenticate with the token in this file, unless the environment names another.

    Ray 2.60.0 reads the environment when it is imported, so it has to read it again.
    """
    os.environ.setdefault("RAY_AUTH_TOKEN_PATH", path)
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    core: Any = ray._raylet
    core.Config.initialize("")


def start_ray(options: Mapping[str, object]) -> None:
    """Start a Ray of our own; a second time where the first failed.

    On a busy machine Ray 2.60.0 gives up after half a minute; by then its files are in the page cache. Workers start
    at nice 15 by default: beside other processes our actors would hardly run.
    """
    os.environ.setdefault("RAY_worker_niceness", "0")
    init: Any = ray.init
    with keep_term_handler(), note_interrupts() as noted:
        try:
            init(**options)
        except Exception:
            if not noted:
                ray.shutdown()
                init(**options)
        if noted:
            raise KeyboardInterrupt


@contextmanager
def keep_term_handler() -> Iterator[None]:
    """Keep a command's own handler of TERM: Ray 2.60.0 replaces it by one that ends the process at once."""
    utils: Any = ray._private.utils
    set_handler = utils.set_sigterm_handler
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        utils.set_sigterm_handler = lambda _: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = set_handler


@contextmanager
def note_interrupts() -> Iterator[list[int]]:
    """Note Ctrl-C and TERM besides handling them: Ray 2.60.0 drops some that come while it starts."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    changed = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in changed:
        signal.signal(number, note)
    try:
        yield noted
    finally:
        for number, handler in changed.items():
            signal.signal(number, handler)


@contextmanager
def capture_stderr() -> Iterator[Callable[[], str]]:
    """Keep standard error from the user, also what Ray's own threads write; yields a function that reads it.

    Only there Ray 2.60.0 says that it does not accept a token.
    """
    saved = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")
        finally:
            os.dup2(saved, 2)
            os.close(saved)
