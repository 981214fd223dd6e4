"""Who was killed, how long it took until rows came through again, and what came of it all."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field

from chaos.verdict import Verdict

MEDIAN, WORST = 8.0, 30.0  # seconds: the goals


@dataclass
class Figures:
    """Of all runs so far."""

    kills: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # by kind of strike
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    rows: int = 0
    verdict: Verdict = field(default_factory=Verdict)

    @property
    def killed(self) -> int:
        return sum(self.kills.values())

    def struck(self, kind: str, kills: int, seconds: float) -> None:
        self.kills[kind] += kills
        self.took[kind].append(seconds)

    def __str__(self) -> str:
        every = [seconds for took in self.took.values() for seconds in took]
        kinds = {**self.took, "all": every} if every else {}
        lines = [f"{'strike at':<18} {'kills':>6} {'made good':>10} {'median':>8} {'worst':>8}  (seconds)"]
        for kind, took in kinds.items():
            kills = self.killed if kind == "all" else self.kills[kind]
            lines.append(f"{kind:<18} {kills:>6} {len(took):>10} {statistics.median(took):>8.1f} {max(took):>8.1f}")
        lines += [f"goals: median {MEDIAN:g}, worst {WORST:g}", f"{self.rows:,} rows taken in; {self.verdict}"]
        return "\n".join(lines)
