"""Eager execution: lets a join process rows before their instant is complete, if the plan relaxes the result order.

Getta, Vossough: results are weakly order preserving if no row waits. They are k-level if they agree with the serial
execution after every k items at the latest; further items are held back until they do.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from dsms.algebra import Window
from dsms.data.batch import Batch
from dsms.dataflow import Expression
from dsms.errors import PlanError
from dsms.operators.instant_barrier import CompleteRows, InstantBarrier
from dsms.operators.joins.inputs import JoinInput, is_join_only


class EagerRows(NamedTuple):
    """The rows that may be processed now, complete or not."""

    complete: CompleteRows  # the watermark; without rows
    rows: list[tuple[int, Batch]]  # port and rows, in timestamp order for each port


class EagerBarrier:
    """Releases complete rows and at most `most` others; the rest waits until the released rows are complete."""

    def __init__(self, ports: int, most: float) -> None:
        self._time = InstantBarrier(ports)
        self._waiting: list[list[Batch]] = [[] for _ in range(ports)]
        self._most = most
        self._early = 0  # rows released before they were complete, since the last synchronisation
        self._youngest: int | None = None  # timestamp of these rows

    def __len__(self) -> int:
        return sum(len(batch) for waiting in self._waiting for batch in waiting)

    @property
    def is_synchronised(self) -> bool:
        """Whether every released row is complete."""
        return self._youngest is None

    def add(self, batch: Batch, port: int) -> EagerRows:
        """Add a batch of a port, and return the rows to process.

        When the last early row becomes complete, only complete rows are returned: the join is then synchronised.
        """
        last = int(batch.each("ts")[-1]) if len(batch) else None
        watermark = batch.watermark if batch.watermark is not None else last
        complete = self._time.add(Batch(watermark=watermark, ended=batch.ended), port)
        if len(batch):
            self._waiting[port].append(batch)
        if self._youngest is not None and self._youngest < complete.watermark:
            self._youngest, self._early = None, 0
            if math.isfinite(self._most):
                return EagerRows(complete, self._release(complete.watermark, 0))
        return EagerRows(complete, self._release(complete.watermark, self._most - self._early))

    def _release(self, watermark: int, early: float) -> list[tuple[int, Batch]]:
        """Remove and return the complete rows of all ports, and at most `early` others."""
        released = []
        for port, waiting in enumerate(self._waiting):
            if not waiting:
                continue
            rows = Batch.joined(waiting)
            ts = rows.each("ts")
            complete = int(ts.searchsorted(watermark))
            count = int(min(len(rows), complete + early))
            early -= count - complete
            if count > complete:
                self._early += count - complete
                self._youngest = max(int(ts[count - 1]), self._youngest if self._youngest is not None else watermark)
            taken, rest = rows.cut(count)
            self._waiting[port] = [rest] if len(rest) else []
            if count:
                released.append((port, replace(taken, watermark=None)))
        return released


def check_eager(
    most: float, inputs: tuple[JoinInput, ...], expression: Expression, keep: tuple[str, ...] | None
) -> None:
    """Refuse eager execution where the results depend on the order of rows."""
    if math.isnan(most) or most < 0:
        raise PlanError(f"eager_rows is {most}: it must be 0 or more rows", "eager_rows")
    why = explain_order_requirement(inputs, expression, keep)
    if most and why:
        raise PlanError(f"eager_rows is {most:g}, but {why}; only joins of time windows can run eagerly", "eager_rows")


def explain_order_requirement(
    inputs: tuple[JoinInput, ...], expression: Expression, keep: tuple[str, ...] | None = None
) -> str | None:
    """Return why a join cannot run eagerly; None if it can."""
    if not is_join_only(expression):
        return "a difference retracts results that it emitted too early"
    if keep:
        return f"the windows of {list(keep)} would receive results in another order"
    for part in inputs:
        kind = (part.window or Window("rows")).kind
        if part.rows is None and (part.window is None or kind == "rows"):
            what = "a relation with retractions" if part.window is None else "a window of rows"
            return f"{part.alias!r} is {what}, whose contents depend on the order of rows"
    return None
