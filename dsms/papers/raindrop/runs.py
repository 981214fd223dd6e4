"""Simulates a plan under one algorithm or a selector, and records memory, results and delays of each second."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from dsms.data.journal import Journal
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.measure.completions import Completions
from dsms.papers.experiment import Point
from dsms.papers.raindrop.plans import CHANCE, READINGS, build_plan
from dsms.papers.raindrop.window_join import WindowRunner
from dsms.policies.adaptive.adaptive import Adaptive
from dsms.policies.registry import policy_named
from dsms.simulation import simulate

SINGLE = {"rr": "RR", "fifo": "FIFO", "mtiq": "MTIQ", "chain": "Chain"}
RULE = ":ratio=0.3,threshold=50"
WARMUP_S = 10  # warm-up and exploration, left out of the charts as in the thesis

# The thesis's selector (roulette), another reading of it, and ours, which looks ahead; VARIANTS tune the first.
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
    """The parameters of a run by a single algorithm or a selector; at half-time the QoS changes to `then`."""
    return {"by": by, "plan": plan, "reading": reading, "qos": qos, "then": then, "seconds": seconds, "seed": seed}


def measure(point: Point) -> dict[str, Any]:
    """The memory, results and delays of every second after the warm-up; how often each algorithm was chosen."""
    reading, seconds = READINGS[point["reading"]], point["seconds"]
    rule = RULE if reading.rule else ""
    tables = {"adaptive": {"candidates": [name + rule for name in SINGLE]}}
    policy = _policy(point["by"], point["qos"], rule)
    half = WARMUP_S + seconds / 2
    results = ResultObserver(WARMUP_S + seconds)
    changes = [QosChange(point["then"], half)] if point["then"] else []
    run = simulate(
        build_plan(point["plan"], reading, point["seed"], tables),
        policy,
        until=WARMUP_S + seconds,
        cut=True,
        sample=1.0,
        runner=partial(WindowRunner, chance=CHANCE),
        observers=[results, *changes],
    )
    chosen = [(c["instant"], c["chosen"].removesuffix(rule)) for c in run.choices if c["instant"] >= WARMUP_S]
    scores = [c["scores"] for c in run.choices if c["instant"] >= WARMUP_S]
    picks, late = Counter(name for _, name in chosen), Counter(name for at, name in chosen if at >= half)
    return {
        "memory": [held for _, held in run.memory.samples[WARMUP_S + 1 : WARMUP_S + seconds + 1]],
        "results": results.counts[WARMUP_S:].tolist(),
        "delays": results.delays[WARMUP_S:].tolist(),
        "turns": run.turns,
        **{f"picked {name}": picks[name] for name in SINGLE},
        **{f"score {name}": float(np.mean([s[name + rule] for s in scores])) if scores else None for name in SINGLE},
        **{f"picked late {name}": late[name] for name in SINGLE},
    }


def _policy(by: str, qos: str, rule: str) -> Policy:
    if by in SINGLE:
        return policy_named(by + rule)
    return Adaptive(**{**SELECTORS, **VARIANTS}[by], qos=qos)


class ResultObserver(Observer):
    """Records the number of results in each second, and the sum of their delays."""

    trusted = True

    def __init__(self, seconds: int) -> None:
        self.counts, self.delays = np.zeros(seconds), np.zeros(seconds)

    def read(self, journal: Journal) -> None:
        done = Completions.of(journal)
        seconds = len(self.counts)
        second = np.minimum(done.left.astype(np.int64), seconds - 1)
        self.counts += np.bincount(second, done.alike, seconds)
        self.delays += np.bincount(second, (done.left - done.arrived) * done.alike, seconds)


class QosChange(Observer):
    """Sets another QoS at an instant, as an administrator would."""

    trusted = True

    def __init__(self, qos: str, at: float) -> None:
        self._qos, self._at = qos, at

    def attach(self, engine: Any) -> None:
        self._engine = engine

    def begin(self, now: float) -> None:
        if now >= self._at:
            self._at = float("inf")
            self._engine.control.require(self._qos)
