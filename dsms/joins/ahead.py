"""Working ahead of time: rows go on before their instant is complete, as far as the order of results is relaxed.

Getta, Vossough: results are weakly order preserving if nothing waits; k-level if after each k items, at the latest,
they agree with those of the serial execution, for which further items are held back.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from dsms.algebra import Window
from dsms.batch import Batch
from dsms.dataflow import Expression
from dsms.errors import PlanError
from dsms.joins.inputs import Input, pure
from dsms.operators.pending import Complete, Pending


class Turn(NamedTuple):
    """What may be worked on now."""

    complete: Complete  # how far time has come; without rows
    rows: list[tuple[int, Batch]]  # by port, each port's in the order of their timestamps


class Ahead:
    """Lets rows through that are complete, and a number of others; the rest waits until those are complete too."""

    def __init__(self, ports: int, most: float) -> None:
        self._time = Pending(ports)
        self._waiting: list[list[Batch]] = [[] for _ in range(ports)]
        self._most = most
        self._early = 0  # rows let through that were not complete, since all such were
        self._youngest: int | None = None  # of them

    def __len__(self) -> int:
        return sum(len(batch) for waiting in self._waiting for batch in waiting)

    @property
    def synchronised(self) -> bool:
        """Whether nothing has been let through whose instant is not complete."""
        return self._youngest is None

    def add(self, batch: Batch, port: int) -> Turn:
        """More rows, or only time, by this port; once all early rows are complete, no others go early at once."""
        last = int(batch.each("ts")[-1]) if len(batch) else None
        upto = batch.upto if batch.upto is not None else last
        complete = self._time.add(Batch(upto=upto, ended=batch.ended), port)
        if len(batch):
            self._waiting[port].append(batch)
        if self._youngest is not None and self._youngest < complete.upto:
            self._youngest, self._early = None, 0
            if math.isfinite(self._most):
                return Turn(complete, self._taken(complete.upto, 0))
        return Turn(complete, self._taken(complete.upto, self._most - self._early))

    def _taken(self, upto: int, early: float) -> list[tuple[int, Batch]]:
        """The complete rows of all ports, and so many others."""
        found = []
        for port, waiting in enumerate(self._waiting):
            if not waiting:
                continue
            rows = Batch.joined(waiting)
            ts = rows.each("ts")
            complete = int(ts.searchsorted(upto))
            count = int(min(len(rows), complete + early))
            early -= count - complete
            if count > complete:
                self._early += count - complete
                self._youngest = max(int(ts[count - 1]), self._youngest if self._youngest is not None else upto)
            taken, rest = rows.cut(count)
            self._waiting[port] = [rest] if len(rest) else []
            if count:
                found.append((port, replace(taken, upto=None)))
        return found


def check_ahead(most: float, inputs: tuple[Input, ...], expression: Expression, keep: tuple[str, ...] | None) -> None:
    """Refuse to work ahead where the results would depend on it."""
    if math.isnan(most) or most < 0:
        raise PlanError(f"ahead is {most}: a number of rows is wanted, from 0 up", "ahead")
    why = why_in_order(inputs, expression, keep)
    if most and why:
        raise PlanError(f"ahead is {most:g}, but {why}; only joins of windows by time can work ahead", "ahead")


def why_in_order(inputs: tuple[Input, ...], expression: Expression, keep: tuple[str, ...] | None = None) -> str | None:
    """Why a join cannot work ahead of time; None if it can."""
    if not pure(expression):
        return "a difference takes back what it let through too soon"
    if keep:
        return f"the windows of {list(keep)} would see results in another order"
    for part in inputs:
        kind = (part.window or Window("rows")).kind
        if part.rows is None and (part.window is None or kind == "rows"):
            what = "a relation that is taken back from" if part.window is None else "a window of rows"
            return f"{part.alias!r} is {what}, whose contents depend on what has come before"
    return None
