"""How often each key is there, and the instants at which it appears or vanishes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dsms.operators.aggregation.cells import Cells, Kept
from dsms.slots import Numbers


class Course(NamedTuple):
    """What some events did to their keys: one entry a key and instant, by slot, then in the order of time."""

    cells: Cells  # which slot, which instant, which row was the first of it
    before: Numbers  # how often the key was there
    after: Numbers

    @property
    def flips(self) -> Numbers:
        """+1 where a key appears, -1 where it vanishes, 0 where it stays there or away."""
        return (self.after > 0).astype(np.int64) - (self.before > 0)

    @property
    def gone(self) -> Numbers:
        """The slots whose keys are not there in the end."""
        tails = self.cells.tails
        slots: Numbers = self.cells.slot[tails[self.after[tails] == 0]]
        return slots


class Presence:
    """Running counts of signed events by slot; the events of one slot at one instant are one net change."""

    def __init__(self) -> None:
        self._counts = Kept()

    def follow(self, slots: Numbers, ts: Numbers, signs: Numbers) -> Course:
        """What these events do, which come in the order of time."""
        return self.change(Cells(slots, ts), signs)

    def change(self, cells: Cells, signs: Numbers) -> Course:
        """The same for events that are in cells already."""
        changes = cells.sums(signs)
        after = self._counts.running(cells, changes)
        self._counts.keep(cells, after)
        return Course(cells, after - changes, after)
