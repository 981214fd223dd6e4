"""Heuristics by which a selector chooses the next candidate: roulette wheel, best score, or forecast.

Sutherland, Raindrop thesis, section 5: the roulette wheel, and always the highest score. The forecast is ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dsms.config.qos import Qos
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy, as_stateful
from dsms.policies.adaptive.forecast import METRICS, Forecast, choose_best, forecast
from dsms.policies.adaptive.recent_arrivals import RecentArrivals

if TYPE_CHECKING:
    from dsms.policies.adaptive.settings import Tuning

SCORE_TOLERANCE = 0.02  # smaller differences of scores do not count
MIN_SCORE = 0.01  # on the wheel, so that no candidate is eliminated


class SelectionContext(NamedTuple):
    """What a heuristic knows when it chooses, between two turns."""

    engine: Engine
    candidates: Mapping[str, Policy]  # that may be chosen
    active: str  # the candidate that has just run
    qos: Qos
    scores: Mapping[str, float]  # of all candidates, by eq. 5.2


class Selection(NamedTuple):
    """The chosen candidate and why; `figures` are the heuristic's own, besides the scores."""

    chosen: str
    why: str
    figures: Mapping[str, float]


class Heuristic(Protocol):
    """`explores`: it needs measurements, so every candidate must run once first; `observers` supply its data."""

    explores: bool
    observers: Sequence[Observer]

    def choose(self, question: SelectionContext) -> Selection:
        """Return the next candidate."""

    def snapshot(self) -> Any:
        """Return its state, for a checkpoint."""

    def restore(self, snapshot: Any) -> None:
        """Continue from that state."""


class Roulette:
    """Chooses at random, in proportion to the scores."""

    explores = True
    observers: Sequence[Observer] = ()

    def __init__(self, tuning: Tuning, seed: int) -> None:
        self._chance = random.Random(f"roulette {seed}")

    def choose(self, question: SelectionContext) -> Selection:
        sectors = [max(question.scores[name], MIN_SCORE) for name in question.candidates]
        return Selection(self._chance.choices(list(question.candidates), sectors)[0], "roulette", {})

    def snapshot(self) -> Any:
        return self._chance.getstate()

    def restore(self, snapshot: Any) -> None:
        self._chance.setstate(snapshot)


class Best:
    """Chooses the highest score; among nearly equal ones, the candidate chosen least recently.

    The scores of candidates that do not run fade, and so does the score of one that runs for long. Without the second
    rule the first leader would run forever, and the others would never be measured again.
    """

    explores = True
    observers: Sequence[Observer] = ()

    def __init__(self, tuning: Tuning, seed: int) -> None:
        self._chosen: dict[str, int] = {}  # by candidate: when it was last chosen
        self._count = 0

    def choose(self, question: SelectionContext) -> Selection:
        high = max(question.scores[name] for name in question.candidates)
        near = [name for name in question.candidates if question.scores[name] > high - SCORE_TOLERANCE]
        chosen = min(near, key=lambda name: self._chosen.get(name, 0))
        self._count += 1
        self._chosen[chosen] = self._count
        return Selection(chosen, "best", {})

    def snapshot(self) -> Any:
        return self._chosen, self._count

    def restore(self, snapshot: Any) -> None:
        self._chosen, self._count = snapshot


class Predictive:
    """Chooses the candidate that does best in a simulation from the current queues on recent arrivals.

    The one in charge stays unless another is better by more than `hysteresis`. What was expected before counts too,
    less and less: a choice by what is in the queues just now alone would follow every chance.
    """

    explores = False

    def __init__(self, tuning: Tuning, seed: int) -> None:
        self._horizon = 5 * tuning.every if tuning.horizon is None else tuning.horizon
        self._hysteresis = tuning.hysteresis
        self._decay = tuning.decay
        self._expected: dict[str, Forecast] = {}
        self._recent = RecentArrivals()
        self.observers: Sequence[Observer] = (self._recent,)

    def choose(self, question: SelectionContext) -> Selection:
        runs = {
            name: partial(as_stateful(policy).copy_for_trial, question.engine)
            for name, policy in question.candidates.items()
        }
        outlooks = forecast(question.engine, self._recent, runs, self._horizon)
        for name, outlook in outlooks.items():
            self._expected[name] = outlook.after(self._expected.get(name), self._decay)
        outlooks = {name: self._expected[name] for name in outlooks}
        weights = {metric: question.qos.weight_of(metric) for metric in METRICS}
        chosen, reasons = choose_best(outlooks, weights, question.active, self._hysteresis)
        return Selection(chosen, "predictive", {name: ratios["score"] for name, ratios in reasons.items()})

    def snapshot(self) -> Any:
        return self._expected

    def restore(self, snapshot: Any) -> None:
        self._expected = snapshot


# Made for every run with its seed.
HEURISTICS: dict[str, Callable[[Tuning, int], Heuristic]] = {
    "roulette": Roulette,
    "best": Best,
    "predictive": Predictive,
}
