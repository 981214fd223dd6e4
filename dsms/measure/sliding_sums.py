"""SlidingSums: sums per name over the last seconds, in slots of one second."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WINDOW_S = 5  # full seconds that count, besides the current one
SLOT_COUNT = WINDOW_S + 1
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class SlidingSums:
    """A table of sums, one or more columns per name; slot k covers the second from k to k + 1."""

    def __init__(self, names: Sequence[str], since: float = 0.0, width: int = 1) -> None:
        self.names, self.width = list(names), width
        self._since = np.full(len(self.names), since)  # when observation of each name began
        self._latest = math.floor(since)  # the current slot
        self._slots = np.zeros((SLOT_COUNT, len(self.names) * width))

    @property
    def horizon(self) -> float:
        """Forget everything before this instant."""
        return self._latest - WINDOW_S

    def advance(self, now: float) -> None:
        """Advance to this instant."""
        latest = math.floor(now)
        for slot in range(max(self._latest, latest - SLOT_COUNT) + 1, latest + 1):
            self._slots[slot % SLOT_COUNT] = 0.0
        self._latest = max(self._latest, latest)

    def at(self, instants: Floats, places: Numbers, amounts: NDArray[np.generic]) -> None:
        """Add amounts at these instants to these columns (name index times width, plus offset)."""
        if not len(instants):
            return
        self.advance(float(instants.max()))
        slots = np.floor(instants).astype(np.int64)
        if slots.min() < self.horizon:
            recent = slots >= self.horizon
            slots, places, amounts = slots[recent], places[recent], amounts[recent]
        np.add.at(
            self._slots.reshape(-1), slots % SLOT_COUNT * self._slots.shape[1] + places, amounts.astype(np.float64)
        )

    def over(self, since: Floats, until: Floats, places: Numbers) -> None:
        """Add the length of these intervals to these columns."""
        if not len(since):
            return
        self.advance(float(until.max()))
        recent = until > self.horizon
        since, until, places = since[recent], until[recent], places[recent]
        across = until > np.floor(since) + 1  # the interval crosses into another slot
        within = ~across
        self.at(since[within], places[within], until[within] - since[within])
        since, until, places = since[across], until[across], places[across]
        first = math.floor(max(self.horizon, since.min(initial=self._latest)))
        for slot in range(first, self._latest + 1) if len(since) else ():
            inside = np.clip(until, slot, slot + 1) - np.clip(since, slot, slot + 1)
            self._slots[slot % SLOT_COUNT] += np.bincount(places, inside, self._slots.shape[1])

    def totals(self) -> Floats:
        """Return the sums of the last seconds, one row per name."""
        whole: Floats = self._slots.sum(axis=0).reshape(len(self.names), self.width)
        return whole

    def rates(self, now: float) -> Floats:
        """Return the sums per second of observed time; 0 if there was none."""
        watched = (now - np.maximum(self._since, self.horizon))[:, None]
        found = np.zeros((len(self.names), self.width))
        np.divide(self.totals(), watched, out=found, where=watched > 0)
        return found

    def migrate(self, names: Sequence[str], now: float) -> SlidingSums:
        """Return the table for other names: names that stay keep their sums, new ones start now."""
        self.advance(now)
        after = SlidingSums(names, now, self.width)
        here = {name: place for place, name in enumerate(self.names)}
        before = self._slots.reshape(SLOT_COUNT, len(self.names), self.width)
        slots = after._slots.reshape(SLOT_COUNT, len(after.names), self.width)
        for place, name in enumerate(after.names):
            if name in here:
                slots[:, place] = before[:, here[name]]
                after._since[place] = self._since[here[name]]
        return after
