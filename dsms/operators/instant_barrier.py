"""Holds rows back until their instant is complete: until the watermarks of all ports have passed it."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from dsms.data.batch import Batch

MIN_TIMESTAMP = -(2**62)  # before any timestamp
MAX_TIMESTAMP = 2**63 - 1  # after any


class CompleteRows(NamedTuple):
    """The rows that may be processed now, one batch for each port."""

    watermark: int  # every instant before this is complete
    ended: bool  # whether all inputs have ended
    rows: tuple[Batch | None, ...]  # by port, in timestamp order; None: no rows


class CompletePieces(NamedTuple):
    """The rows that may be processed now, as a list of batches for each port."""

    watermark: int
    ended: bool
    pieces: tuple[list[Batch], ...]  # by port, in timestamp order


class _PortBuffer:
    """The rows waiting at one port, as batches that are sorted only if they are out of order."""

    def __init__(self) -> None:
        self.waiting: deque[Batch] = deque()
        self.watermark = MIN_TIMESTAMP
        self.ended = False
        self.oldest, self._youngest = MAX_TIMESTAMP, MIN_TIMESTAMP  # of the waiting rows
        self._ordered = True

    def add(self, batch: Batch) -> None:
        if len(batch):
            ts = batch.each("ts")
            self._ordered = self._ordered and int(ts[0]) >= self._youngest and not np.any(ts[1:] < ts[:-1])
            self.oldest = min(self.oldest, int(ts.min()))
            self._youngest = max(self._youngest, int(ts.max()))
            self.waiting.append(batch)
        last = batch.watermark if batch.watermark is not None else int(ts[-1]) if len(batch) else MIN_TIMESTAMP
        self.watermark = max(self.watermark, last)
        self.ended = self.ended or batch.ended

    def take(self, watermark: int) -> list[Batch]:
        """Remove and return the rows before an instant, oldest first."""
        if self.oldest >= watermark:
            return []
        if not self._ordered:  # late rows, or the output of an operator that does not order its rows
            rows = Batch.joined(list(self.waiting))
            self.waiting = deque([rows.pick(np.argsort(rows.each("ts"), kind="stable"))])
            self._ordered = True
        ready: list[Batch] = []
        while self.waiting:
            ts = self.waiting[0].each("ts")
            count = int(np.searchsorted(ts, watermark))
            if count < len(ts):
                if count:
                    first, self.waiting[0] = self.waiting[0].cut(count)
                    ready.append(first)
                self.oldest = int(ts[count])
                return ready
            ready.append(self.waiting.popleft())
        self.oldest, self._youngest = MAX_TIMESTAMP, MIN_TIMESTAMP
        return ready


class InstantBarrier:
    """Buffers the rows of each port of an operator until their instants are complete."""

    def __init__(self, ports: int = 1) -> None:
        self._ports = [_PortBuffer() for _ in range(ports)]

    def __len__(self) -> int:
        return sum(len(batch) for port in self._ports for batch in port.waiting)

    def first(self) -> int | None:
        """Return the oldest timestamp of the waiting rows; None: no row waits."""
        oldest = min(port.oldest for port in self._ports)
        return None if oldest == MAX_TIMESTAMP else oldest

    def add(self, batch: Batch, port: int = 0) -> CompleteRows:
        """Add a batch (rows or only a watermark) of a port, and return the rows that this completes."""
        watermark, ended, pieces = self.pieces(batch, port)
        return CompleteRows(watermark, ended, tuple(Batch.joined(parts) if parts else None for parts in pieces))

    def pieces(self, batch: Batch, port: int = 0) -> CompletePieces:
        """Do as `add`, but return batches as they came, without the copy that joins them."""
        self._ports[port].add(batch)
        live = [p.watermark for p in self._ports if not p.ended]
        watermark = min(live) if live else max(p.watermark for p in self._ports)
        return CompletePieces(watermark, not live, tuple(p.take(watermark) for p in self._ports))
