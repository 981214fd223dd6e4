"""What each policy made of its time in charge: memory, latency and staleness, one stretch after the other."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.departures import Departures, Spells
from dsms.journal import Journal
from dsms.live.histogram import BUCKETS, buckets, quantile
from dsms.live.sums import Floats

KEPT = 50  # phases
INFINITE = float("inf")


@dataclass
class Phase:
    """A stretch under one policy; a selector's choices inside it do not end it."""

    policy: str
    since: float
    until: float | None = None  # None: it is still going on
    reason: str = "the first"
    swap_seconds: float | None = None  # what it took to put the policy in charge
    turns: int = 0
    choices: int = 0
    results: int = 0
    memory_max: float = 0.0
    watched: float = 0.0  # time
    held: float = 0.0  # tuples times time
    latency: float = 0.0  # of all results together
    asked: float = 0.0  # queries whose staleness is known times time
    stale: float = 0.0  # and how much of that they were stale
    counts: NDArray[np.float64] = field(default_factory=lambda: np.zeros(BUCKETS), repr=False)

    def hold(self, spans: Floats, held: Floats, queries: int) -> None:
        """So many tuples were held for so long, and so many queries could have been stale."""
        lasting = spans > 0  # what lasts no time was never held
        self.memory_max = max(self.memory_max, float(held[lasting].max(initial=0.0)))
        self.held += float((held * spans).sum())
        self.watched += float(spans.sum())
        self.asked += queries * float(spans.sum())

    def leave(self, gone: Departures) -> None:
        """These results have left in it."""
        latencies = gone.left - gone.arrived
        np.add.at(self.counts, buckets(latencies), gone.alike)
        self.latency += float((latencies * gone.alike).sum())
        self.results += int(gone.alike.sum())

    def age(self, pieces: Spells) -> None:
        """Of these stale stretches, what lies in it."""
        end = INFINITE if self.until is None else self.until
        inside = np.minimum(pieces.until, end) - np.maximum(pieces.since, self.since)
        self.stale += float(inside[inside > 0].sum())

    def to_json(self) -> dict[str, Any]:
        """The phase as plain data; what does not exist is None."""
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
            "latency_mean": self.latency / self.results if self.results else None,
            "latency_p99": quantile(self.counts, 0.99),
            "staleness": self.stale / self.asked if self.asked else None,
        }


class Phases:
    """The last phases of a domain, the present one last."""

    def __init__(self, since: float = 0.0) -> None:
        self.kept: deque[Phase] = deque([Phase("", since)], maxlen=KEPT)
        self.swaps = 0
        self._last = since  # up to here everything is accounted for

    @property
    def present(self) -> Phase:
        return self.kept[-1]

    def began(self, reason: str, seconds: float) -> None:
        """Why the present one was put in charge, and how long that took."""
        self.present.reason, self.present.swap_seconds = reason, seconds

    def resume(self, now: float) -> None:
        """Watching goes on from this instant; before any turn that is where it begins."""
        if not self.present.watched and not self.swaps:
            self.present.since = now
        self._last = now

    def read(self, journal: Journal, gone: Departures, pieces: Spells, queries: int) -> None:
        """A stretch of the run, all of it under the present policy; what was stale may reach back to earlier ones."""
        present = self.present
        present.turns += len(journal.segments)
        if journal.instants:
            instants = np.maximum(np.fromiter(journal.instants, np.float64, len(journal.instants)), self._last)
            held = np.fromiter(journal.held, np.float64, len(instants))
            present.hold(np.diff(instants, prepend=self._last), held, queries)
            self._last = float(instants[-1])
        if len(gone.whose):
            present.leave(gone)
        earliest = float(pieces.since.min(initial=INFINITE))
        for phase in reversed(self.kept):
            phase.age(pieces)
            if phase.since <= earliest:
                break

    def settle(self, now: float, held: float, queries: int) -> None:
        """Between two turns, all has been read: so much has been held since, up to now."""
        self.present.hold(np.array([max(0.0, now - self._last)]), np.array([held], np.float64), queries)
        self._last = max(now, self._last)

    def swap(self, now: float, policy: str) -> None:
        """Another policy is in charge from now on."""
        self.present.until = now
        self.swaps += 1
        self.kept.append(Phase(policy, now, reason="swapped"))

    def to_json(self) -> list[dict[str, Any]]:
        """All of them as plain data."""
        return [phase.to_json() for phase in self.kept]
