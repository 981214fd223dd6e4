"""Selector: lets one candidate at a time decide, scores the candidates, and chooses the next by the scores.

Sutherland, Raindrop thesis, chapter 5. A choice falls between two turns and changes only the policy.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dsms.config.qos import Qos, score_qos, z_score
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.engine.runners.runner import Step
from dsms.plan.segment import Segment
from dsms.policies.adaptive.gatherer import Gatherer
from dsms.policies.adaptive.heuristics import HEURISTICS, Selection, SelectionContext
from dsms.policies.adaptive.settings import Tuning
from dsms.policies.adaptive.statistic_views import StatisticColumn

MAX_CHOICES = 10_000  # remembered
NEUTRAL_SCORE = 0.5


class Choice(NamedTuple):
    """One decision of the selector, with its reasons."""

    instant: float
    chosen: str
    why: str  # warm-up, exploration, starvation, or the heuristic's reason
    scores: Mapping[str, float]
    figures: Mapping[str, float]  # the heuristic's own figures


class SelectorState(NamedTuple):
    """A selector's state, for a checkpoint."""

    scores: Scores
    views: Mapping[str, Mapping[str, StatisticColumn]]
    heuristic: Any
    agenda: Sequence[tuple[str, str, float]]
    kept: float
    active: str
    why: str
    left: float  # time until the next choice


class Scores:
    """Every candidate's score, between 0 and 1; neutral for one that has not run."""

    def __init__(self, names: Sequence[str], decay: float, fade: str) -> None:
        self._decay, self._fade = decay, fade
        self._qos: Qos | None = None
        self._since = dict.fromkeys(names, 0)  # by candidate: evaluations since it last ran
        self.now = dict.fromkeys(names, NEUTRAL_SCORE)

    def update(self, ran: str, gatherer: Gatherer, qos: Qos) -> None:
        """Score the candidates that did not run against the history; the one that ran keeps its score.

        Its own figures have only just entered the history. When the requirements change, all are scored again.
        """
        for name in self.now:
            self._since[name] = 0 if name == ran else self._since[name] + 1
            if name != ran or qos != self._qos:
                self.now[name] = self._against_history(name, gatherer, qos)
            elif self._fade == "z":
                self.now[name] = NEUTRAL_SCORE + (self.now[name] - NEUTRAL_SCORE) * self._decay
            else:
                self.now[name] *= self._decay
        self._qos = qos

    def _against_history(self, name: str, gatherer: Gatherer, qos: Qos) -> float:
        if name not in gatherer.views:
            return NEUTRAL_SCORE
        faded, mine, found = self._decay ** self._since[name], gatherer.views[name], {}
        for statistic in (requirement.statistic for requirement in qos.requirements):
            own, all_ = mine.plan(statistic), gatherer.historic.plan(statistic)
            history = None if all_ is None else (all_.average, all_.minimum, all_.maximum)
            found[statistic] = z_score(
                None if own is None else own.average, history, faded if self._fade == "z" else 1.0
            )
        return score_qos(qos, found) * (faded if self._fade == "score" else 1.0)


class Selector(Observer):
    """One run of the adaptive policy: its past choices and the active candidate."""

    trusted = True

    def __init__(
        self,
        engine: Engine,
        tuning: Tuning,
        candidates: Mapping[str, Policy],
        gatherer: Gatherer,
        told: Callable[[Choice], None],
    ) -> None:
        self.engine, self.tuning, self.candidates, self.gatherer = engine, tuning, candidates, gatherer
        self.choices: deque[Choice] = deque(maxlen=MAX_CHOICES)
        self._told = told
        self._heuristic = HEURISTICS[tuning.select](tuning, engine.plan.settings.seed)
        self._scores = Scores(list(candidates), tuning.decay, tuning.fade)
        self._agenda = deque(_exploration_plan(list(candidates), tuning) if self._heuristic.explores else ())
        # The first in the list runs only briefly at first; a tried candidate runs for the full time.
        self._kept = tuning.every if self._heuristic.explores else tuning.every / 16
        self._now = engine.clock.now
        self.running = True

    def start(self) -> Policy:
        """Start observing the run; return the first candidate."""
        self.engine.watch(self.gatherer, *self._heuristic.observers, self)
        first, why, length = (
            self._agenda.popleft() if self._agenda else (next(iter(self.candidates)), "first", self._kept)
        )
        self._note(Selection(first, why, {}), length)
        return self.candidates[first]

    def stop(self) -> None:
        """Stop, because another policy is in charge."""
        for observer in (self.gatherer, *self._heuristic.observers, self):
            self.engine.unwatch(observer)
        self.running = False

    @property
    def qos(self) -> Qos:
        """The current QoS requirements; the next evaluation uses them."""
        return self.engine.control.qos

    @property
    def scores(self) -> dict[str, float]:
        """The scores of the last evaluation."""
        return dict(self._scores.now)

    def snapshot(self) -> SelectorState:
        """Return the state at this instant."""
        found = self._scores, self.gatherer.snapshot(), self._heuristic.snapshot(), list(self._agenda)
        return SelectorState(
            *copy.deepcopy(found), self._kept, self.active, self._why, max(0.0, self._due - self._now())
        )

    def restore(self, snapshot: SelectorState) -> None:
        """Continue from another selector's state, unless its candidates differ."""
        if snapshot.scores.now.keys() != self.candidates.keys():
            return
        self._scores, self._kept, self._agenda = snapshot.scores, snapshot.kept, deque(snapshot.agenda)
        self.gatherer.restore(snapshot.views)
        self._heuristic.restore(snapshot.heuristic)
        self._activate(Selection(snapshot.active, snapshot.why, {}), snapshot.left)

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self._now() >= self._due:
            self.evaluate()
        elif self._patience is not None and self.engine.starvations > self._patience:
            self.evaluate(starving=True)

    def evaluate(self, starving: bool = False) -> None:
        """Score the candidates and activate the next."""
        self.gatherer.flush()
        qos = self.qos
        if self._why == "warm-up":
            self.gatherer.forget()  # the first candidate started with empty queues, which flatters it
        else:
            self._scores.update(self.active, self.gatherer, qos)
        self._activate(*self._next(qos, starving))

    def _activate(self, answer: Selection, length: float) -> None:
        """Let this candidate decide for this long."""
        changes = answer.chosen != self.active
        self._note(answer, length)
        if changes:
            self.engine.control.activate(self.candidates[self.active])
            self.gatherer.algorithm = self.active

    def _next(self, qos: Qos, starving: bool) -> tuple[Selection, float]:
        """Return the next candidate: to explore, or by the heuristic; one that starves operators is not repeated."""
        among = {n: p for n, p in self.candidates.items() if n != self.active} if starving else self.candidates
        among = among or self.candidates
        while self._agenda:
            name, why, length = self._agenda.popleft()
            if name in among:
                return Selection(name, "starvation" if starving else why, {}), length
        answer = self._heuristic.choose(SelectionContext(self.engine, among, self.active, qos, self.scores))
        self._kept = min(2 * self._kept, self.tuning.every)
        return answer._replace(why="starvation") if starving else answer, self._kept

    def _note(self, answer: Selection, length: float) -> None:
        now = self._now()
        self.active, self._why = answer.chosen, answer.why
        self._due = now + length
        allowed = self.tuning.starvation
        self._patience = None if allowed is None else self.engine.starvations + allowed
        choice = Choice(now, answer.chosen, answer.why, self.scores, answer.figures)
        self.choices.append(choice)
        self._told(choice)


def _exploration_plan(names: Sequence[str], tuning: Tuning) -> list[tuple[str, str, float]]:
    """Return the exploration: the first warms up, each runs once, then the first again with warm queues."""
    tried = [(name, "exploration", tuning.explore) for name in (*names, names[0])]
    return [entry for entry in ((names[0], "warm-up", tuning.warmup), *tried) if entry[2] > 0]
