"""Who decides next, given how well each has served: the heuristics a selector may choose by.

Sutherland, Raindrop thesis, section 5: the roulette wheel, and always the highest score.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dsms.policies.base import Policy
from dsms.qos import Qos

if TYPE_CHECKING:
    from dsms.engine import Engine

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
    """`explores`: it goes by what was measured, so every candidate must first be tried."""

    explores: bool

    def choose(self, question: Question) -> Answer:
        """The next of the candidates."""


class Roulette:
    """By chance, in proportion to the scores."""

    explores = True

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"roulette {seed}")

    def choose(self, question: Question) -> Answer:
        sectors = [max(question.scores[name], LEAST) for name in question.candidates]
        return Answer(self._chance.choices(list(question.candidates), sectors)[0], "roulette", {})


class Best:
    """The highest score; of those too close to it to tell apart, the one that has waited longest to be chosen.

    Scores of what does not run fade, and so does that of what runs on and on: without the second rule whoever was in
    front once would stay there unseen.
    """

    explores = True

    def __init__(self, seed: int) -> None:
        self._chosen: dict[str, int] = {}  # when each was last chosen
        self._count = 0

    def choose(self, question: Question) -> Answer:
        high = max(question.scores[name] for name in question.candidates)
        near = [name for name in question.candidates if question.scores[name] > high - CLOSE]
        chosen = min(near, key=lambda name: self._chosen.get(name, 0))
        self._count += 1
        self._chosen[chosen] = self._count
        return Answer(chosen, "best", {})


HEURISTICS: dict[str, Callable[[int], Heuristic]] = {"roulette": Roulette, "best": Best}  # made anew with a run's seed
