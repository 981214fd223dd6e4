"""Counts kills, recovery times and wrong results over all chaos runs."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field

from chaos.verdict import DeliveryCheck

RECOVERY_MEDIAN_LIMIT_S, RECOVERY_MAX_LIMIT_S = 8.0, 30.0  # seconds: the goals


@dataclass
class ChaosStats:
    """Of all runs so far."""

    kills: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # by kind of strike
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    rows: int = 0
    verdict: DeliveryCheck = field(default_factory=DeliveryCheck)

    @property
    def killed(self) -> int:
        return sum(self.kills.values())

    def note_kill(self, kind: str, kills: int, seconds: float) -> None:
        self.kills[kind] += kills
        self.took[kind].append(seconds)

    def __str__(self) -> str:
        every = [seconds for took in self.took.values() for seconds in took]
        kinds = {**self.took, "all": every} if every else {}
        lines = [f"{'strike at':<18} {'kills':>6} {'recovered':>10} {'median':>8} {'worst':>8}  (seconds)"]
        for kind, took in kinds.items():
            kills = self.killed if kind == "all" else self.kills[kind]
            lines.append(f"{kind:<18} {kills:>6} {len(took):>10} {statistics.median(took):>8.1f} {max(took):>8.1f}")
        lines += [
            f"goals: median {RECOVERY_MEDIAN_LIMIT_S:g}, worst {RECOVERY_MAX_LIMIT_S:g}",
            f"{self.rows:,} rows taken in; {self.verdict}",
        ]
        return "\n".join(lines)
