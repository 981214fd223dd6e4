"""PolicyPhases: measures memory, latency and staleness while each policy is active."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsms.data.journal import Journal
from dsms.measure.completions import Completions, StaleIntervals
from dsms.measure.histogram import Histogram
from dsms.measure.sliding_sums import Floats

MAX_PHASES = 50
INFINITY = float("inf")


@dataclass
class PolicyPhase:
    """The time under one policy; a selector's choices do not end it."""

    policy: str
    since: float
    until: float | None = None  # None: it is the current phase
    reason: str = "the first"
    swap_seconds: float | None = None  # duration of the swap
    turns: int = 0
    choices: int = 0
    results: int = 0
    memory_max: float = 0.0
    watched: float = 0.0  # observed time
    held: float = 0.0  # tuples times time
    asked: float = 0.0  # time, times queries whose staleness is known
    stale: float = 0.0  # the part of it in which they were stale
    latency: Histogram = field(default_factory=Histogram, repr=False)  # of all results

    def add_memory(self, spans: Floats, held: Floats, queries: int) -> None:
        """Add spans of time with the tuples held in each, and the number of queries that could be stale."""
        lasting = spans > 0  # a span of no length holds nothing
        self.memory_max = max(self.memory_max, float(held[lasting].max(initial=0.0)))
        self.held += float((held * spans).sum())
        self.watched += float(spans.sum())
        self.asked += queries * float(spans.sum())

    def add_results(self, completions: Completions) -> None:
        """Add results that left in this phase."""
        self.latency.add_all(completions.left - completions.arrived, completions.alike)
        self.results += int(completions.alike.sum())

    def add_staleness(self, pieces: StaleIntervals) -> None:
        """Add the part of these stale intervals that lies in this phase."""
        end = INFINITY if self.until is None else self.until
        inside = np.minimum(pieces.until, end) - np.maximum(pieces.since, self.since)
        self.stale += float(inside[inside > 0].sum())

    def to_json(self) -> dict[str, Any]:
        """Return the phase as plain data."""
        return {
            "policy": self.policy,
            "since": self.since,
            "until": self.until,
            "reason": self.reason,
            "swap_seconds": self.swap_seconds,
            "turns": self.turns,
            "choices": self.choices,
            "memory_mean": self.held / self.watched if self.watched else None,
            "memory_max": self.memory_max,
            "results": self.results,
            "latency_mean": self.latency.total / self.results if self.results else None,
            "latency_p99": self.latency.quantile(0.99),
            "staleness": self.stale / self.asked if self.asked else None,
        }


class PolicyPhases:
    """The last phases of a domain, the current one last."""

    def __init__(self, since: float = 0.0) -> None:
        self.kept: deque[PolicyPhase] = deque([PolicyPhase("", since)], maxlen=MAX_PHASES)
        self.swaps = 0
        self._last = since  # accounted for up to here

    @property
    def present(self) -> PolicyPhase:
        return self.kept[-1]

    def set_reason(self, reason: str, seconds: float) -> None:
        """Set why the current policy was put in charge, and how long the swap took."""
        self.present.reason, self.present.swap_seconds = reason, seconds

    def resume(self, now: float) -> None:
        """Continue observing from this instant; before any turn, start the first phase here."""
        if not self.present.watched and not self.swaps:
            self.present.since = now
        self._last = now

    def read(self, journal: Journal, completions: Completions, pieces: StaleIntervals, queries: int) -> None:
        """Add a part of the run under the current policy; stale intervals may reach back into earlier phases."""
        present = self.present
        present.turns += len(journal.segments)
        if journal.instants:
            instants = np.maximum(np.fromiter(journal.instants, np.float64, len(journal.instants)), self._last)
            held = np.fromiter(journal.held, np.float64, len(instants))
            present.add_memory(np.diff(instants, prepend=self._last), held, queries)
            self._last = float(instants[-1])
        if len(completions.query_index):
            present.add_results(completions)
        earliest = float(pieces.since.min(initial=INFINITY))
        for phase in reversed(self.kept):
            phase.add_staleness(pieces)
            if phase.since <= earliest:
                break

    def accrue_to(self, now: float, held: float, queries: int) -> None:
        """Account for memory held since the last event, up to now; called between turns."""
        self.present.add_memory(np.array([max(0.0, now - self._last)]), np.array([held], np.float64), queries)
        self._last = max(now, self._last)

    def swap(self, now: float, policy: str) -> None:
        """Start the phase of another policy."""
        self.present.until = now
        self.swaps += 1
        self.kept.append(PolicyPhase(policy, now, reason="swapped"))

    def to_json(self) -> list[dict[str, Any]]:
        """Return the phases as plain data."""
        return [phase.to_json() for phase in self.kept]
