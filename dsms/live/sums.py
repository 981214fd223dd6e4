"""What came to each of several names in the last seconds: in slots of one second, so that what is old falls out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WHOLE = 5  # seconds that are over and still count, beside the one that runs
SLOTS = WHOLE + 1
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Sums:
    """A table of sums, a column or several a name; slot k has what came from k to k + 1."""

    def __init__(self, names: Sequence[str], since: float = 0.0, width: int = 1) -> None:
        self.names, self.width = list(names), width
        self._since = np.full(len(self.names), since)  # from when on each is watched
        self._latest = math.floor(since)  # the slot that runs
        self._slots = np.zeros((SLOTS, len(self.names) * width))

    @property
    def horizon(self) -> float:
        """What was before this instant counts no more."""
        return self._latest - WHOLE

    def advance(self, now: float) -> None:
        """Time has come to this instant."""
        latest = math.floor(now)
        for slot in range(max(self._latest, latest - SLOTS) + 1, latest + 1):
            self._slots[slot % SLOTS] = 0.0
        self._latest = max(self._latest, latest)

    def at(self, instants: Floats, places: Numbers, amounts: NDArray[np.generic]) -> None:
        """So much came at these instants to these columns (the name's place times the width, and on)."""
        if not len(instants):
            return
        self.advance(float(instants.max()))
        slots = np.floor(instants).astype(np.int64)
        if slots.min() < self.horizon:
            recent = slots >= self.horizon
            slots, places, amounts = slots[recent], places[recent], amounts[recent]
        np.add.at(self._slots.reshape(-1), slots % SLOTS * self._slots.shape[1] + places, amounts.astype(np.float64))

    def over(self, since: Floats, until: Floats, places: Numbers) -> None:
        """These columns grew as time did, from then until then."""
        if not len(since):
            return
        self.advance(float(until.max()))
        recent = until > self.horizon
        since, until, places = since[recent], until[recent], places[recent]
        across = until > np.floor(since) + 1  # into another slot
        within = ~across
        self.at(since[within], places[within], until[within] - since[within])
        since, until, places = since[across], until[across], places[across]
        first = math.floor(max(self.horizon, since.min(initial=self._latest)))
        for slot in range(first, self._latest + 1) if len(since) else ():
            inside = np.clip(until, slot, slot + 1) - np.clip(since, slot, slot + 1)
            self._slots[slot % SLOTS] += np.bincount(places, inside, self._slots.shape[1])

    def totals(self) -> Floats:
        """What came to each name in the last seconds: a row a name."""
        whole: Floats = self._slots.sum(axis=0).reshape(len(self.names), self.width)
        return whole

    def rates(self, now: float) -> Floats:
        """The same per second of the time that each was watched in them; 0 where that is none."""
        watched = (now - np.maximum(self._since, self.horizon))[:, None]
        found = np.zeros((len(self.names), self.width))
        np.divide(self.totals(), watched, out=found, where=watched > 0)
        return found

    def carried(self, names: Sequence[str], now: float) -> Sums:
        """The table of other names: those that stay keep what is known, those that are new begin now."""
        self.advance(now)
        after = Sums(names, now, self.width)
        here = {name: place for place, name in enumerate(self.names)}
        before = self._slots.reshape(SLOTS, len(self.names), self.width)
        slots = after._slots.reshape(SLOTS, len(after.names), self.width)
        for place, name in enumerate(after.names):
            if name in here:
                slots[:, place] = before[:, here[name]]
                after._since[place] = self._since[here[name]]
        return after
