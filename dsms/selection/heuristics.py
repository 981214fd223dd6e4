"""Who decides next, given how well each has served: the heuristics a selector may choose by.

Sutherland, Raindrop thesis, section 5: the roulette wheel, and always the highest score. Ours: look ahead.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dsms.observers import Observer
from dsms.policies.base import Policy
from dsms.qos import Qos
from dsms.selection.forecast import METRICS, Outlook, best, forecast
from dsms.selection.recent import Recent

if TYPE_CHECKING:
    from dsms.engine import Engine
    from dsms.selection.tuning import Tuning

CLOSE = 0.02  # scores that say the same
LEAST = 0.01  # of a score on the wheel: nobody is ever eliminated


class Question(NamedTuple):
    """All there is to choose by, between two turns."""

    engine: Engine
    candidates: Mapping[str, Policy]  # those that may be chosen
    active: str  # the one that has just run
    qos: Qos
    scores: Mapping[str, float]  # of all, by eq. 5.2


class Answer(NamedTuple):
    """Who is next and why; `figures` are what a heuristic went by beside the scores."""

    chosen: str
    why: str
    figures: Mapping[str, float]


class Heuristic(Protocol):
    """`explores`: it goes by what was measured, so every candidate must first be tried; `observers` watch for it."""

    explores: bool
    observers: Sequence[Observer]

    def choose(self, question: Question) -> Answer:
        """The next of the candidates."""

    def learnt(self) -> Any:
        """What it goes by beside what it is asked, for one like it in another process."""

    def recall(self, learnt: Any) -> None:
        """Go on with that."""


class Roulette:
    """By chance, in proportion to the scores."""

    explores = True
    observers: Sequence[Observer] = ()

    def __init__(self, tuning: Tuning, seed: int) -> None:
        self._chance = random.Random(f"roulette {seed}")

    def choose(self, question: Question) -> Answer:
        sectors = [max(question.scores[name], LEAST) for name in question.candidates]
        return Answer(self._chance.choices(list(question.candidates), sectors)[0], "roulette", {})

    def learnt(self) -> Any:
        return self._chance.getstate()

    def recall(self, learnt: Any) -> None:
        self._chance.setstate(learnt)


class Best:
    """The highest score; of those too close to it to tell apart, the one that has waited longest to be chosen.

    Scores of what does not run fade, and so does that of what runs on and on: without the second rule whoever was in
    front once would stay there unseen.
    """

    explores = True
    observers: Sequence[Observer] = ()

    def __init__(self, tuning: Tuning, seed: int) -> None:
        self._chosen: dict[str, int] = {}  # when each was last chosen
        self._count = 0

    def choose(self, question: Question) -> Answer:
        high = max(question.scores[name] for name in question.candidates)
        near = [name for name in question.candidates if question.scores[name] > high - CLOSE]
        chosen = min(near, key=lambda name: self._chosen.get(name, 0))
        self._count += 1
        self._chosen[chosen] = self._count
        return Answer(chosen, "best", {})

    def learnt(self) -> Any:
        return self._chosen, self._count

    def recall(self, learnt: Any) -> None:
        self._chosen, self._count = learnt


class Predictive:
    """Whoever does best when all are run ahead in virtual time, from the queues as they are, on arrivals as of late.

    The one in charge stays unless another is better by more than `hysteresis`. What was expected before counts too,
    less and less: a choice by what is in the queues just now alone would follow every chance.
    """

    explores = False

    def __init__(self, tuning: Tuning, seed: int) -> None:
        self._horizon = 5 * tuning.every if tuning.horizon is None else tuning.horizon
        self._hysteresis = tuning.hysteresis
        self._decay = tuning.decay
        self._expected: dict[str, Outlook] = {}
        self._recent = Recent()
        self.observers: Sequence[Observer] = (self._recent,)

    def choose(self, question: Question) -> Answer:
        runs = {name: partial(policy.tried, question.engine) for name, policy in question.candidates.items()}
        outlooks = forecast(question.engine, self._recent, runs, self._horizon)
        for name, outlook in outlooks.items():
            self._expected[name] = outlook.after(self._expected.get(name), self._decay)
        outlooks = {name: self._expected[name] for name in outlooks}
        weights = {metric: question.qos.weight_of(metric) for metric in METRICS}
        chosen, reasons = best(outlooks, weights, question.active, self._hysteresis)
        return Answer(chosen, "predictive", {name: ratios["score"] for name, ratios in reasons.items()})

    def learnt(self) -> Any:
        return self._expected

    def recall(self, learnt: Any) -> None:
        self._expected = learnt


# Made anew for every run, with its seed.
HEURISTICS: dict[str, Callable[[Tuning, int], Heuristic]] = {
    "roulette": Roulette,
    "best": Best,
    "predictive": Predictive,
}
