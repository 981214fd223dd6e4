"""An intermediate window: results of a part of an expression, as the rows of the inputs they are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from dsms.batch import Column
from dsms.joins.buffer import LEAST
from dsms.joins.events import NEVER, Floats
from dsms.joins.keys import Ints, Mask, Values
from dsms.joins.mortal import BORN, DIED, SLOT, Mortals
from dsms.joins.sides import InputSide, Side


class ResultSide(Side):
    """Results by the positions of their rows.

    A result of joins alone is there as long as all its rows are, so its going need not be recorded; one of a
    difference may go and come back by itself.
    """

    def __init__(self, inputs: Mapping[str, InputSide], pure: bool, used: Collection[tuple[str, ...]]) -> None:
        super().__init__()
        self.inputs = inputs
        self.pure = pure
        self._used = tuple(used)  # the attributes it is looked into by
        whole = np.dtype(np.int64)
        self._mortals = Mortals(dict.fromkeys(inputs, whole), {})
        self.rows = self._mortals.rows
        self._enough = LEAST

    @property
    def range(self) -> tuple[int, int]:
        return self.rows.start, self.rows.end

    def record(self, orders: Ints, signs: Ints, positions: Mapping[str, Ints]) -> None:
        """Results that come and go, in order."""
        comes = signs > 0
        if self.pure:
            new = np.flatnonzero(comes)
            lives = {BORN: orders[new], DIED: np.full(len(new), NEVER), SLOT: np.zeros(len(new), dtype=np.int64)}
            self.rows.append({**{alias: rows[new] for alias, rows in positions.items()}, **lives}, len(new))
        else:
            self._mortals.record(positions, orders, comes)
        for on in self._used:  # at once: later the rows that the results are made of may have been let go
            self._index(on)

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        return self._mortals.span(orders)

    def there(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        if not self.pure:
            return self._mortals.there(which, rows, orders)
        there = np.ones(len(rows), dtype=bool)
        for alias, side in self.inputs.items():
            there &= side.lasting(which, self.rows.take(alias, rows), orders)
        return there

    def values(self, on: tuple[str, ...], rows: Ints) -> Values:
        return values_of(self.inputs, self.sources(rows), on)

    def arrived(self, rows: Ints) -> Floats:
        latest: Floats = np.max(
            [side.arrived(self.rows.take(alias, rows)) for alias, side in self.inputs.items()], axis=0
        )
        return latest

    def sources(self, rows: Ints) -> dict[str, Ints]:
        return {alias: self.rows.take(alias, rows) for alias in self.inputs}

    def release(self, before: int) -> None:
        """Let go what has gone, now and then."""
        if self._mortals.crowded() or (self.pure and len(self.rows) > self._enough):
            self.compact(before)

    def compact(self, before: int) -> None:
        """Only what is there at a moment."""
        rows = np.arange(*self.range)
        there = self.there(np.zeros(len(rows), dtype=np.int64), rows, np.array([before - 1]))
        self.rows.keep(rows[there])
        self._renew()
        self._enough = max(LEAST, 2 * len(self.rows))

    def moved(self, alias: str, kept: Ints) -> None:
        """An input has only these of its rows left, at new positions; all results here are made of such."""
        place = np.searchsorted(kept, self.rows[alias])
        self.rows.put(alias, np.arange(*self.range), self.inputs[alias].rows.start + place)
        self._renew()

    def _renew(self) -> None:
        if not self.pure:
            self._mortals.renumber()
        self.forget()
        for on in self._used:
            self._index(on)


def values_of(inputs: Mapping[str, InputSide], positions: Mapping[str, Ints], on: tuple[str, ...]) -> Values:
    """What items are compared by, each attribute taken from an input that has it."""
    columns: list[Column] = []
    nulls: Mask | None = None
    for attribute in on:
        for alias, rows in positions.items():
            if attribute in inputs[alias].layout.attributes:
                found = inputs[alias].values((attribute,), rows)
                columns += found.columns
                if found.nulls is not None:
                    nulls = found.nulls if nulls is None else nulls | found.nulls
                break
    return Values(columns, nulls)
