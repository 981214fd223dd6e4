"""One run of a plan under one algorithm or under the selector, second by second."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from dsms.departures import Departures
from dsms.journal import Journal
from dsms.observers import Observer
from dsms.papers.experiment import Point
from dsms.papers.raindrop.plans import CHANCE, READINGS, built
from dsms.papers.raindrop.window_join import WindowRunner
from dsms.policies.adaptive import Adaptive
from dsms.policies.base import Policy
from dsms.policies.registry import policy_named
from dsms.simulate import simulate

SINGLE = {"rr": "RR", "fifo": "FIFO", "mtiq": "MTIQ", "chain": "Chain"}
RULE = ":ratio=0.3,threshold=50"
LEAD = 10  # seconds of warm-up and exploration, left out of the charts as in the thesis

# The selector as the thesis has it, the other ways to read or to tune it, and ours that looks ahead.
SELECTORS: dict[str, dict[str, Any]] = {
    "roulette": {"select": "roulette"},
    "highest score": {"select": "best"},
    "predictive": {"select": "predictive"},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "score fades": {"select": "roulette", "fade": "score"},
    "decay 0.5": {"select": "roulette", "decay": 0.5},
    "no decay": {"select": "roulette", "decay": 1.0},
    "kept for 10 s": {"select": "roulette", "every": 10.0},
}
LABELS = {**SINGLE, "roulette": "adaptive", "highest score": "adaptive, highest score",
          "predictive": "adaptive, predictive"}  # fmt: skip


def point(
    by: str, seconds: int, seed: int, plan: int = 2, qos: str = "", reading: str = "plain", then: str = ""
) -> dict[str, Any]:
    """A run by a single algorithm (`qos` is nothing to it) or a selector; `then` is what half-time changes `qos` to."""
    return {"by": by, "plan": plan, "reading": reading, "qos": qos, "then": then, "seconds": seconds, "seed": seed}


def measure(point: Point) -> dict[str, Any]:
    """What was held, what came out and how late, in every second after the lead; who was chosen how often."""
    reading, seconds = READINGS[point["reading"]], point["seconds"]
    rule = RULE if reading.rule else ""
    tables = {"adaptive": {"candidates": [name + rule for name in SINGLE]}}
    policy = _policy(point["by"], point["qos"], rule)
    results, changes = Results(LEAD + seconds), [Change(point["then"], LEAD + seconds / 2)] if point["then"] else []
    run = simulate(
        built(point["plan"], reading, point["seed"], tables),
        policy,
        until=LEAD + seconds,
        cut=True,
        sample=1.0,
        runner=partial(WindowRunner, chance=CHANCE),
        observers=[results, *changes],
    )
    half = LEAD + seconds / 2
    chosen = [(c["instant"], c["chosen"].removesuffix(rule)) for c in run.choices if c["instant"] >= LEAD]
    scores = [c["scores"] for c in run.choices if c["instant"] >= LEAD]
    picks, late = Counter(name for _, name in chosen), Counter(name for at, name in chosen if at >= half)
    return {
        "memory": [held for _, held in run.memory.samples[LEAD + 1 : LEAD + seconds + 1]],
        "results": results.counts[LEAD:].tolist(),
        "delays": results.delays[LEAD:].tolist(),
        "turns": run.turns,
        **{f"picked {name}": picks[name] for name in SINGLE},
        **{f"score {name}": float(np.mean([s[name + rule] for s in scores])) if scores else None for name in SINGLE},
        **{f"picked late {name}": late[name] for name in SINGLE},
    }


def _policy(by: str, qos: str, rule: str) -> Policy:
    if by in SINGLE:
        return policy_named(by + rule)
    return Adaptive(**{**SELECTORS, **VARIANTS}[by], qos=qos)


class Results(Observer):
    """How many results left in each second, and how late they were together."""

    trusted = True

    def __init__(self, seconds: int) -> None:
        self.counts, self.delays = np.zeros(seconds), np.zeros(seconds)

    def read(self, journal: Journal) -> None:
        gone = Departures.of(journal)
        seconds = len(self.counts)
        place = np.minimum(gone.left.astype(np.int64), seconds - 1)
        self.counts += np.bincount(place, gone.alike, seconds)
        self.delays += np.bincount(place, (gone.left - gone.arrived) * gone.alike, seconds)


class Change(Observer):
    """An administrator who requires something else from some instant on."""

    trusted = True

    def __init__(self, qos: str, at: float) -> None:
        self._qos, self._at = qos, at

    def attach(self, engine: Any) -> None:
        self._engine = engine

    def begin(self, now: float) -> None:
        if now >= self._at:
            self._at = float("inf")
            self._engine.require(self._qos)
