"""Measures a recording: costs and selectivities of stations, and the overhead of turns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.measure.turn_overhead import MAX_TURN_GAP_S, OverheadFit
from dsms.recording.recording import Recording, pick_rows

Floats = NDArray[np.float64]


@dataclass
class StationWork:
    """The totals of one station over the whole run."""

    taken: float = 0.0
    made: float = 0.0
    cost: float = 0.0
    runs: int = 0  # turns in which it worked

    def cost_each(self, startup: float) -> float:
        """Time for one tuple, without start-up."""
        return max(0.0, self.cost - startup * self.runs) / self.taken


@dataclass
class RecordedWork:
    """What a replay needs to know of the recorded work."""

    stations: dict[str, StationWork] = field(default_factory=dict)
    pace: OverheadFit = field(default_factory=OverheadFit)

    @classmethod
    def of(cls, recording: Recording, until: float = math.inf) -> RecordedWork:
        """Measure the turns up to an instant."""
        found, about = cls(), recording.about
        merges = any(len(station["inputs"]) > 1 for station in about["stations"])
        for parts in recording.together("turns", "memory", "arrivals"):
            if "turns" in parts:
                parts["turns"] = pick_rows(parts["turns"], parts["turns"]["at"] <= until)
                found._add(parts["turns"])
            if about["clock"] != "virtual":
                found.pace.add(*_consecutive_turns(parts, float(about["budget"]), merges, recording.hosts()))
        return found

    def tuples(self) -> float:
        """How many tuples all stations have taken together."""
        return sum(work.taken for work in self.stations.values())

    def _add(self, turns: dict[str, Any]) -> None:
        codes, names = turns["station"]
        sums = [np.bincount(codes, turns[key], len(names)) for key in ("taken", "made", "cost")]
        runs = np.bincount(np.unique(turns["turn"] * len(names) + codes) % len(names), minlength=len(names))
        for place in np.flatnonzero(runs).tolist():
            done = self.stations.setdefault(names[place], StationWork())
            done.taken += float(sums[0][place])
            done.made += float(sums[1][place])
            done.cost += float(sums[2][place])
            done.runs += int(runs[place])


def _consecutive_turns(
    parts: dict[str, dict[str, Any]], budget: float, merges: bool, hosts: Mapping[str, int]
) -> tuple[Floats, Floats, Floats]:
    """Work, hops and length of turns that the next turn followed at once: work was waiting all the time between.

    Turns at the edge of a part are skipped. If a join or union may have waited for arrivals, turns with arrivals are
    skipped too.
    """
    turns, memory = parts.get("turns"), parts.get("memory")
    if turns is None or memory is None or not len(turns["at"]):
        return np.empty(0), np.empty(0), np.empty(0)
    first = np.flatnonzero(np.diff(turns["turn"], prepend=-1))
    starts, work = turns["at"][first], np.add.reduceat(turns["cost"], first)[:-1] / budget
    hops = np.add.reduceat(_find_hops(turns, hosts), first)[:-1]
    lasted = np.diff(starts)
    # Up to each row of memory: how many rows with a duration held nothing.
    spans = np.diff(memory["at"], prepend=memory["at"][0])
    idle = np.concatenate(([0], np.cumsum((memory["held"] <= 0) & (spans > 0))))
    idle_before = idle[np.searchsorted(memory["at"], starts, side="right")]
    followed = (np.diff(idle_before) == 0) & (lasted - work < MAX_TURN_GAP_S)
    if merges and "arrivals" in parts:
        arrived = np.searchsorted(parts["arrivals"]["at"], starts, side="right")
        followed &= np.diff(arrived) == 0
    return work[followed], hops[followed], lasted[followed]


def _find_hops(turns: dict[str, Any], hosts: Mapping[str, int]) -> Floats:
    """By step: 1 if it is at another host than the step before it in the same turn, else 0."""
    codes, names = turns["station"]
    places = np.array([hosts.get(name, -1) for name in names], np.int64)[codes]
    moved = (np.diff(places, prepend=places[0]) != 0) & (np.diff(turns["turn"], prepend=-1) == 0)
    return np.asarray(moved, np.float64)
