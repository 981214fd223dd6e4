"""Group commit: a thread writes all waiting entries to the log in one transaction."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from dsms.errors import DsmsError
from dsms.storage.log import Log, LogEntry

log = logging.getLogger("dsms")
TRANSACTION_LIMIT_BYTES = 16 * 1024 * 1024  # of one transaction, unless a single entry is larger
CLOSE_TIMEOUT_S = 10.0
T = TypeVar("T")


class CommitResult(NamedTuple, Generic[T]):
    """The outcome of an entry: stored at an offset, stored earlier (offset None), or refused with a reason."""

    item: T
    offset: int | None
    reason: str | None


class GroupCommit(Generic[T]):
    """Takes entries without blocking and reports each group when it is on disk, or why it is not."""

    def __init__(self, target: Log, notify: Callable[[Sequence[CommitResult[T]]], object]) -> None:
        self._log, self._notify = target, notify
        self._waiting: deque[tuple[LogEntry, T]] = deque()
        self._changed = threading.Condition()
        self._truncating = self._truncated = 0
        self._failed: list[
            LogEntry
        ] = []  # refused because the disk is full: the log must record that before later entries
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def add(self, entry: LogEntry, item: T) -> None:
        """Store an entry after all entries added before it."""
        with self._changed:
            self._waiting.append((entry, item))
            self._changed.notify()

    def truncate(self, upto: int) -> None:
        """Delete the log up to this offset."""
        with self._changed:
            self._truncating = max(upto, self._truncating)
            self._changed.notify()

    def close(self) -> None:
        """Store what is waiting, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing or self._truncating > self._truncated)
                group, upto = self._take_group(), self._truncating
            if group:
                self._notify(self._store(group))
            elif upto > self._truncated:
                self._truncate(upto)
            elif self._closing:
                return

    def _take_group(self) -> list[tuple[LogEntry, T]]:
        """The waiting entries that fit into one transaction."""
        group: list[tuple[LogEntry, T]] = []
        size = 0
        while self._waiting and size < TRANSACTION_LIMIT_BYTES:
            group.append(self._waiting.popleft())
            size += len(group[-1][0].frame)
        return group

    def _store(self, group: list[tuple[LogEntry, T]]) -> list[CommitResult[T]]:
        entries = [entry for entry, _ in group]
        try:
            offsets = self._log.append([*self._failed, *entries])[len(self._failed) :]
        except DsmsError as error:
            reason = str(error)
            self._failed += [
                LogEntry(e.producer, e.sequence, refused=reason) for e in entries if e.sequence is not None
            ]
            return [CommitResult(item, None, reason) for _, item in group]
        self._failed = []
        return [CommitResult(item, offset, entry.refused) for (entry, item), offset in zip(group, offsets, strict=True)]

    def _truncate(self, upto: int) -> None:
        try:
            self._log.truncate(upto)
        except DsmsError as error:  # a full disk prevents even deleting; a later call succeeds
            log.warning("%s", error)
        self._truncated = upto
