"""Computes the figures of a recorded run: memory, latency and staleness, of each phase and of the whole."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dsms.data.journal import Journal
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.measure.completions import Completions
from dsms.measure.phases import PolicyPhase, PolicyPhases
from dsms.measure.staleness_tracker import QueryStaleness
from dsms.plan.graph import Plan
from dsms.recording.recording import Recording, pick_rows

FIGURE_KEYS = ("memory_mean", "memory_max", "latency_mean", "latency_p99", "staleness", "results", "turns")


class RecordedFigures(NamedTuple):
    """The figures of a run, and when it ended."""

    whole: dict[str, Any]
    phases: list[dict[str, Any]]  # with `policy`, `since` and `until`
    end: float
    left: float  # tuples held at the end


def select_figures(phase: PolicyPhase) -> dict[str, Any]:
    """Select the figures that are compared; a figure that does not exist is None."""
    figures = phase.to_json()
    return {key: figures[key] for key in FIGURE_KEYS}


def read_figures(recording: Recording, plan: Plan, until: float = math.inf) -> RecordedFigures:
    """Compute the figures up to an instant, reading part by part."""
    tally = _FigureReader(recording, plan)
    end, left = recording.since, 0.0
    for parts in recording.together("memory", "outputs", "turns"):
        if "memory" in parts:
            end, left = float(parts["memory"]["at"][-1]), float(parts["memory"]["held"][-1])
        tally.read(_limit_rows(parts, until))
    end = min(until, max(end, recording.about["until"] or end))
    tally.end(end)
    by_phase = [
        {**select_figures(p), "policy": p.policy, "since": p.since, "until": p.until or end} for p in tally.phases.kept
    ]
    return RecordedFigures(select_figures(tally.whole.present), by_phase, end, left)


class FigureObserver(Observer):
    """Computes the same figures while a run runs, as one phase under any policy."""

    trusted = True

    def attach(self, engine: Engine) -> None:
        self._engine, now = engine, engine.clock.now()
        self._asked = _count_sink_queries(engine.plan)
        self._phases, self._stale = PolicyPhases(now), QueryStaleness(engine.plan, now)

    def read(self, journal: Journal) -> None:
        completions = Completions.of(journal)
        self._phases.read(journal, completions, self._stale.pieces(completions.stale_intervals()), self._asked)
        if self._engine.ledger.held == 0:
            self._stale.forget()

    def to_json(self) -> dict[str, Any]:
        """The figures so far."""
        return select_figures(self._phases.present)


class _FigureReader:
    """Adds up figures of the whole run, and of each phase."""

    def __init__(self, recording: Recording, plan: Plan) -> None:
        self._asked = _count_sink_queries(plan)
        self._places = {query.name: place for place, query in enumerate(plan.queries)}
        self.whole, self.phases = PolicyPhases(recording.since), PolicyPhases(recording.since)
        self._stale = QueryStaleness(plan, recording.since)
        self._turn = -1  # the last one counted
        first, *self._ahead = recording.phases() or [(recording.since, "", "")]
        self.phases.present.policy = first[1]

    def read(self, parts: dict[str, dict[str, Any]]) -> None:
        """Add a part of the run."""
        while self._ahead and any(_count_rows(part) and part["at"][-1] >= self._ahead[0][0] for part in parts.values()):
            at, policy, _ = self._ahead.pop(0)
            # Events at that instant belong to the phase before: policies change between two turns.
            before = {name: pick_rows(part, part["at"] <= at) for name, part in parts.items()}
            before["turns"] = pick_rows(parts["turns"], parts["turns"]["at"] < at) if "turns" in parts else {}
            self._add(before)
            parts = {name: pick_rows(part, slice(_count_rows(before[name]), None)) for name, part in parts.items()}
            self.phases.swap(at, policy)
        self._add(parts)

    def end(self, now: float) -> None:
        """End the run: nothing changed since the last row."""
        for phases in (self.whole, self.phases):
            phases.accrue_to(now, 0.0, self._asked)

    def _add(self, parts: dict[str, dict[str, Any]]) -> None:
        journal, completions = Journal(), Completions.of(Journal())
        if _count_rows(memory := parts.get("memory", {})):
            journal.instants, journal.held = memory["at"].tolist(), memory["held"].tolist()
        if _count_rows(outputs := parts.get("outputs", {})):
            codes, names = outputs["query"]
            query_index = np.array([self._places[name] for name in names], np.int64)[codes]
            completions = Completions(query_index, outputs["at"], outputs["arrived"], outputs["rows"])
        pieces = self._stale.pieces(completions.stale_intervals())
        for phases in (self.whole, self.phases):
            phases.read(journal, completions, pieces, self._asked)
            phases.present.turns += self._turns(parts.get("turns", {}))
        if _count_rows(turns := parts.get("turns", {})):
            self._turn = int(turns["turn"][-1])

    def _turns(self, turns: dict[str, Any]) -> int:
        """How many turns begin here; the first may have begun in the part before."""
        return int(turns["turn"][-1]) - self._turn if _count_rows(turns) else 0


def _count_sink_queries(plan: Plan) -> int:
    """The number of queries with a known staleness: for fractional tuples it is unknown."""
    return 0 if plan.settings.fractional else len(plan.queries)


def _limit_rows(parts: dict[str, dict[str, Any]], until: float) -> dict[str, dict[str, Any]]:
    """Cut tables at an instant; rows of memory that last longer end there."""
    found = {name: pick_rows(part, part["at"] <= until) for name, part in parts.items() if name != "memory"}
    if "memory" in parts:
        found["memory"] = {**parts["memory"], "at": np.minimum(parts["memory"]["at"], until)}
    return found


def _count_rows(part: dict[str, Any]) -> int:
    return len(part["at"]) if part else 0
