"""Group commit: all that waits goes into the log in one transaction, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from dsms.durable.log import Entry, Log
from dsms.errors import DsmsError

log = logging.getLogger("dsms")
BYTES = 16 * 1024 * 1024  # of one transaction, as far as one entry is not larger
CLOSING = 10.0  # seconds
T = TypeVar("T")


class Committed(NamedTuple, Generic[T]):
    """What became of an entry: safe at an offset, safe since before (None), or not stored, for a reason."""

    item: T
    offset: int | None
    reason: str | None


class Committer(Generic[T]):
    """Whoever adds an entry goes on at once, and is told of it with others when they are safe, or why they are not."""

    def __init__(self, target: Log, tell: Callable[[Sequence[Committed[T]]], object]) -> None:
        self._log, self._tell = target, tell
        self._waiting: deque[tuple[Entry, T]] = deque()
        self._changed = threading.Condition()
        self._forgetting = self._forgotten = 0
        self._failed: list[Entry] = []  # refused for want of room: that has to be known before what follows is taken
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def add(self, entry: Entry, item: T) -> None:
        """Store this, after all that was added before."""
        with self._changed:
            self._waiting.append((entry, item))
            self._changed.notify()

    def forget(self, upto: int) -> None:
        """What is in the log up to here is wanted no more."""
        with self._changed:
            self._forgetting = max(upto, self._forgetting)
            self._changed.notify()

    def close(self) -> None:
        """Store what waits, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(CLOSING)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing or self._forgetting > self._forgotten)
                group, upto = self._group(), self._forgetting
            if group:
                self._tell(self._stored(group))
            elif upto > self._forgotten:
                self._forget(upto)
            elif self._closing:
                return

    def _group(self) -> list[tuple[Entry, T]]:
        """As many as go into one transaction."""
        group: list[tuple[Entry, T]] = []
        size = 0
        while self._waiting and size < BYTES:
            group.append(self._waiting.popleft())
            size += len(group[-1][0].frame)
        return group

    def _stored(self, group: list[tuple[Entry, T]]) -> list[Committed[T]]:
        entries = [entry for entry, _ in group]
        try:
            offsets = self._log.append([*self._failed, *entries])[len(self._failed) :]
        except DsmsError as error:
            reason = str(error)
            self._failed += [Entry(e.producer, e.sequence, refused=reason) for e in entries if e.sequence is not None]
            return [Committed(item, None, reason) for _, item in group]
        self._failed = []
        return [Committed(item, offset, entry.refused) for (entry, item), offset in zip(group, offsets, strict=True)]

    def _forget(self, upto: int) -> None:
        try:
            self._log.forget(upto)
        except DsmsError as error:  # on a disk that is full not even that goes; later it will
            log.warning("%s", error)
        self._forgotten = upto
