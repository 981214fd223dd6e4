"""Rows that wait until their instant is complete: until no port can bring another one as old."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from dsms.batch import Batch

BEGINNING = -(2**62)  # before any timestamp
NEVER = 2**63 - 1  # after any


class Complete(NamedTuple):
    """What may be worked on now."""

    upto: int  # every instant before this is complete
    ended: bool  # whether nothing comes any more
    rows: tuple[Batch | None, ...]  # by port, in the order of their timestamps; None: no rows


class Pieces(NamedTuple):
    """The same, not yet joined."""

    upto: int
    ended: bool
    pieces: tuple[list[Batch], ...]  # by port, in the order of their timestamps


class _Port:
    """What has come in by one port, in pieces whose order is put right only when it has to be."""

    def __init__(self) -> None:
        self.waiting: deque[Batch] = deque()
        self.upto = BEGINNING
        self.ended = False
        self.oldest, self._youngest = NEVER, BEGINNING  # among those that wait
        self._ordered = True

    def add(self, batch: Batch) -> None:
        if len(batch):
            ts = batch.each("ts")
            self._ordered = self._ordered and int(ts[0]) >= self._youngest and not np.any(ts[1:] < ts[:-1])
            self.oldest = min(self.oldest, int(ts.min()))
            self._youngest = max(self._youngest, int(ts.max()))
            self.waiting.append(batch)
        last = batch.upto if batch.upto is not None else int(ts[-1]) if len(batch) else BEGINNING
        self.upto = max(self.upto, last)
        self.ended = self.ended or batch.ended

    def take(self, upto: int) -> list[Batch]:
        """The rows before an instant, oldest first."""
        if self.oldest >= upto:
            return []
        if not self._ordered:  # late rows, or those of an operator that puts out as it comes
            rows = Batch.joined(list(self.waiting))
            self.waiting = deque([rows.pick(np.argsort(rows.each("ts"), kind="stable"))])
            self._ordered = True
        ready: list[Batch] = []
        while self.waiting:
            ts = self.waiting[0].each("ts")
            count = int(np.searchsorted(ts, upto))
            if count < len(ts):
                if count:
                    first, self.waiting[0] = self.waiting[0].cut(count)
                    ready.append(first)
                self.oldest = int(ts[count])
                return ready
            ready.append(self.waiting.popleft())
        self.oldest, self._youngest = NEVER, BEGINNING
        return ready


class Pending:
    """What has come in by each port of an operator and is not yet complete."""

    def __init__(self, ports: int = 1) -> None:
        self._ports = [_Port() for _ in range(ports)]

    def __len__(self) -> int:
        return sum(len(batch) for port in self._ports for batch in port.waiting)

    def first(self) -> int | None:
        """The oldest timestamp among the rows that wait; None: none waits."""
        oldest = min(port.oldest for port in self._ports)
        return None if oldest == NEVER else oldest

    def add(self, batch: Batch, port: int = 0) -> Complete:
        """More rows, or only time, by this port: what is complete with them."""
        upto, ended, pieces = self.pieces(batch, port)
        return Complete(upto, ended, tuple(Batch.joined(parts) if parts else None for parts in pieces))

    def pieces(self, batch: Batch, port: int = 0) -> Pieces:
        """The same for those who can do without a copy in which the rows of a port are together."""
        self._ports[port].add(batch)
        live = [p.upto for p in self._ports if not p.ended]
        upto = min(live) if live else max(p.upto for p in self._ports)
        return Pieces(upto, not live, tuple(p.take(upto) for p in self._ports))
