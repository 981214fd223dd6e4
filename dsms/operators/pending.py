"""Rows that wait until their instant is complete: until no port can bring another one as old."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dsms.batch import Batch

BEGINNING = -(2**62)  # before any timestamp


class Complete(NamedTuple):
    """What may be worked on now."""

    upto: int  # every instant before this is complete
    ended: bool  # whether nothing comes any more
    rows: tuple[Batch | None, ...]  # by port, in the order of their timestamps; None: no rows


@dataclass
class _Port:
    waiting: list[Batch]
    upto: int = BEGINNING
    ended: bool = False

    def add(self, batch: Batch) -> None:
        if len(batch):
            self.waiting.append(batch)
        last = batch.upto if batch.upto is not None else int(batch.each("ts")[-1]) if len(batch) else BEGINNING
        self.upto = max(self.upto, last)
        self.ended = self.ended or batch.ended

    def take(self, upto: int) -> Batch | None:
        """The rows before an instant, oldest first."""
        if not self.waiting:
            return None
        rows = Batch.joined(self.waiting)
        ts = rows.each("ts")
        if len(ts) > 1 and np.any(ts[1:] < ts[:-1]):  # an operator that works ahead of time puts out as it comes
            order = np.argsort(ts, kind="stable")
            rows, ts = rows.pick(order), ts[order]
        count = int(np.searchsorted(ts, upto))
        if count == len(rows):
            self.waiting = []
            return rows
        ready, rest = rows.cut(count)
        self.waiting = [rest]
        return ready if count else None


class Pending:
    """What has come in by each port of an operator and is not yet complete."""

    def __init__(self, ports: int = 1) -> None:
        self._ports = [_Port([]) for _ in range(ports)]

    def __len__(self) -> int:
        return sum(len(batch) for port in self._ports for batch in port.waiting)

    def first(self) -> int | None:
        """The oldest timestamp among the rows that wait; None: none waits."""
        return min((int(np.min(batch.ts)) for port in self._ports for batch in port.waiting), default=None)

    def add(self, batch: Batch, port: int = 0) -> Complete:
        """More rows, or only time, by this port: what is complete with them."""
        self._ports[port].add(batch)
        live = [p.upto for p in self._ports if not p.ended]
        upto = min(live) if live else max(p.upto for p in self._ports)
        return Complete(upto, not live, tuple(p.take(upto) for p in self._ports))
