"""What a recorded run came to: memory, latency and staleness, of each phase and of the whole."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dsms.departures import Departures
from dsms.journal import Journal
from dsms.live.phases import Phase, Phases
from dsms.live.stale import Stale
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.recording.recording import Recording, picked

if TYPE_CHECKING:
    from dsms.engine import Engine

KEYS = ("memory_mean", "memory_max", "latency_mean", "latency_p99", "staleness", "results", "turns")


class Recorded(NamedTuple):
    """Figures of a run, and where it ended."""

    whole: dict[str, Any]
    phases: list[dict[str, Any]]  # with `policy`, `since` and `until`
    end: float
    left: float  # tuples that were held at the end


def figures(phase: Phase) -> dict[str, Any]:
    """Those that are compared; what does not exist is None."""
    told = phase.to_json()
    return {key: told[key] for key in KEYS}


def recorded(recording: Recording, plan: Plan, until: float = math.inf) -> Recorded:
    """The figures up to an instant, read a part at a time."""
    tally = _Tally(recording, plan)
    end, left = recording.since, 0.0
    for parts in recording.together("memory", "outputs", "turns"):
        if "memory" in parts:
            end, left = float(parts["memory"]["at"][-1]), float(parts["memory"]["held"][-1])
        tally.read(_limited(parts, until))
    end = min(until, max(end, recording.about["until"] or end))
    tally.end(end)
    by_phase = [
        {**figures(p), "policy": p.policy, "since": p.since, "until": p.until or end} for p in tally.phases.kept
    ]
    return Recorded(figures(tally.whole.present), by_phase, end, left)


class Figures(Observer):
    """The same of a run that goes on, as one phase whoever decides."""

    trusted = True

    def attach(self, engine: Engine) -> None:
        self._engine, now = engine, engine.clock.now()
        self._asked = _asked(engine.plan)
        self._phases, self._stale = Phases(now), Stale(engine.plan, now)

    def read(self, journal: Journal) -> None:
        gone = Departures.of(journal)
        self._phases.read(journal, gone, self._stale.pieces(gone.spells()), self._asked)
        if self._engine.ledger.held == 0:
            self._stale.forget()

    def told(self) -> dict[str, Any]:
        """All that has been read."""
        return figures(self._phases.present)


class _Tally:
    """Adds up, and begins anew at every phase."""

    def __init__(self, recording: Recording, plan: Plan) -> None:
        self._asked = _asked(plan)
        self._places = {query.name: place for place, query in enumerate(plan.queries)}
        self.whole, self.phases = Phases(recording.since), Phases(recording.since)
        self._stale = Stale(plan, recording.since)
        self._turn = -1  # the last that was counted
        first, *self._ahead = recording.phases() or [(recording.since, "", "")]
        self.phases.present.policy = first[1]

    def read(self, parts: dict[str, dict[str, Any]]) -> None:
        """A stretch of the run."""
        while self._ahead and any(_rows(part) and part["at"][-1] >= self._ahead[0][0] for part in parts.values()):
            at, policy, _ = self._ahead.pop(0)
            # What happens at that instant is still of the phase before: a swap comes between two turns.
            before = {name: picked(part, part["at"] <= at) for name, part in parts.items()}
            before["turns"] = picked(parts["turns"], parts["turns"]["at"] < at) if "turns" in parts else {}
            self._add(before)
            parts = {name: picked(part, slice(_rows(before[name]), None)) for name, part in parts.items()}
            self.phases.swap(at, policy)
        self._add(parts)

    def end(self, now: float) -> None:
        """Nothing changed from the last row on."""
        for phases in (self.whole, self.phases):
            phases.settle(now, 0.0, self._asked)

    def _add(self, parts: dict[str, dict[str, Any]]) -> None:
        journal, gone = Journal(), Departures.of(Journal())
        if _rows(memory := parts.get("memory", {})):
            journal.instants, journal.held = memory["at"].tolist(), memory["held"].tolist()
        if _rows(outputs := parts.get("outputs", {})):
            codes, names = outputs["query"]
            whose = np.array([self._places[name] for name in names], np.int64)[codes]
            gone = Departures(whose, outputs["at"], outputs["arrived"], outputs["rows"])
        pieces = self._stale.pieces(gone.spells())
        for phases in (self.whole, self.phases):
            phases.read(journal, gone, pieces, self._asked)
            phases.present.turns += self._turns(parts.get("turns", {}))
        if _rows(turns := parts.get("turns", {})):
            self._turn = int(turns["turn"][-1])

    def _turns(self, turns: dict[str, Any]) -> int:
        """How many begin here; the first may have begun in the part before."""
        return int(turns["turn"][-1]) - self._turn if _rows(turns) else 0


def _asked(plan: Plan) -> int:
    """Of how many queries the staleness is known: of pieces of tuples nobody can say what becomes."""
    return 0 if plan.settings.fractional else len(plan.queries)


def _limited(parts: dict[str, dict[str, Any]], until: float) -> dict[str, dict[str, Any]]:
    """What was up to an instant: rows of memory that reach beyond it last until then."""
    found = {name: picked(part, part["at"] <= until) for name, part in parts.items() if name != "memory"}
    if "memory" in parts:
        found["memory"] = {**parts["memory"], "at": np.minimum(parts["memory"]["at"], until)}
    return found


def _rows(part: dict[str, Any]) -> int:
    return len(part["at"]) if part else 0
