"""What a recording says of stations and turns: costs, selectivities, and what a turn takes besides its work."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.recording.recording import Recording, picked

PAUSE = 1.0  # seconds between two turns in which nobody decides: it was paused, or the machine was asleep
Floats = NDArray[np.float64]


@dataclass
class Done:
    """What a station did in the whole run."""

    taken: float = 0.0
    made: float = 0.0
    cost: float = 0.0
    runs: int = 0  # turns in which it worked

    def cost_each(self, startup: float) -> float:
        """Time for one tuple, start-up aside."""
        return max(0.0, self.cost - startup * self.runs) / self.taken


@dataclass
class Pace:
    """How long turns lasted, while something waited, against what their work cost: a line through the two."""

    turns: int = 0
    _sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(4))  # of x, y, x·x and x·y

    def add(self, work: Floats, lasted: Floats) -> None:
        """So long, for so much work."""
        self.turns += len(work)
        self._sums += [work.sum(), lasted.sum(), (work * work).sum(), (work * lasted).sum()]

    def line(self) -> tuple[float, float]:
        """Time for a turn of no work, and time for a unit of work; (0, 1) where nothing is known.

        The line goes through the means, so all turns together take as long as they did.
        """
        if not self.turns:
            return 0.0, 1.0
        x, y, xx, xy = self._sums / self.turns
        spread = xx - x * x
        slope = (xy - x * y) / spread if spread > 1e-12 * max(xx, 1e-300) else 1.0
        slope = min(max(slope, 0.0), y / x if x else 1.0)  # neither may take less than no time
        return float(max(0.0, y - slope * x)), float(slope)


@dataclass
class Measured:
    """All that a replay has to know of what was done."""

    stations: dict[str, Done] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)

    @classmethod
    def of(cls, recording: Recording, until: float = math.inf) -> Measured:
        """From the turns up to an instant."""
        found, about = cls(), recording.about
        merges = any(len(station["inputs"]) > 1 for station in about["stations"])
        for parts in recording.together("turns", "memory", "arrivals"):
            if "turns" in parts:
                parts["turns"] = picked(parts["turns"], parts["turns"]["at"] <= until)
                found._add(parts["turns"])
            if about["clock"] != "virtual":
                found.pace.add(*_followed(parts, float(about["budget"]), merges))
        return found

    def _add(self, turns: dict[str, Any]) -> None:
        codes, names = turns["station"]
        sums = [np.bincount(codes, turns[key], len(names)) for key in ("taken", "made", "cost")]
        runs = np.bincount(np.unique(turns["turn"] * len(names) + codes) % len(names), minlength=len(names))
        for place in np.flatnonzero(runs).tolist():
            done = self.stations.setdefault(names[place], Done())
            done.taken += float(sums[0][place])
            done.made += float(sums[1][place])
            done.cost += float(sums[2][place])
            done.runs += int(runs[place])


def _followed(parts: dict[str, dict[str, Any]], budget: float, merges: bool) -> tuple[Floats, Floats]:
    """Work and length of turns after which the next began as soon as could be: something waited all the time between.

    Turns at the edge of the stretch are passed over, and where a join or union may have waited for what then came, so
    are those during which something did.
    """
    turns, memory = parts.get("turns"), parts.get("memory")
    if turns is None or memory is None or not len(turns["at"]):
        return np.empty(0), np.empty(0)
    first = np.flatnonzero(np.diff(turns["turn"], prepend=-1))
    starts, work = turns["at"][first], np.add.reduceat(turns["cost"], first)[:-1] / budget
    lasted = np.diff(starts)
    # Nothing was held in a row that lasts: how many such rows there are up to each.
    spans = np.diff(memory["at"], prepend=memory["at"][0])
    idle = np.concatenate(([0], np.cumsum((memory["held"] <= 0) & (spans > 0))))
    upto = idle[np.searchsorted(memory["at"], starts, side="right")]
    followed = (np.diff(upto) == 0) & (lasted - work < PAUSE)
    if merges and "arrivals" in parts:
        come = np.searchsorted(parts["arrivals"]["at"], starts, side="right")
        followed &= np.diff(come) == 0
    return work[followed], lasted[followed]
