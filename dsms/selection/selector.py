"""The selector: lets one candidate after another decide, scores what each gave, and chooses by the scores.

Sutherland, Raindrop thesis, chapter 5. A choice falls between two turns; nothing but the policy changes.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dsms.observers import Observer
from dsms.policies.base import Policy
from dsms.qos import Qos, score, z
from dsms.runners.base import Step
from dsms.segment import Segment
from dsms.selection.gatherer import Gatherer
from dsms.selection.heuristics import HEURISTICS, Answer, Question
from dsms.selection.tuning import Tuning
from dsms.selection.views import Column

if TYPE_CHECKING:
    from dsms.engine import Engine

LONGEST = 10_000  # choices remembered; the oldest go first
NEUTRAL = 0.5


class Choice(NamedTuple):
    """One decision of the selector, with all it went by."""

    instant: float
    chosen: str
    why: str  # warm-up, exploration, starvation, or the heuristic's word
    scores: Mapping[str, float]
    figures: Mapping[str, float]  # what a heuristic of its own went by


class Experience(NamedTuple):
    """What a selector has learnt and was about to do, for one that goes on with it in another process."""

    scores: Scores
    views: Mapping[str, Mapping[str, Column]]
    heuristic: Any
    agenda: Sequence[tuple[str, str, float]]
    kept: float
    active: str
    why: str
    left: float  # time until there is a choice again


class Scores:
    """What is thought of every candidate: between 0 and 1, and neutral of one that has not been seen."""

    def __init__(self, names: Sequence[str], decay: float, fade: str) -> None:
        self._decay, self._fade = decay, fade
        self._qos: Qos | None = None
        self._since = dict.fromkeys(names, 0)  # evaluations since it last ran
        self.now = dict.fromkeys(names, NEUTRAL)

    def update(self, ran: str, gatherer: Gatherer, qos: Qos) -> None:
        """Score all that did not run against history as it is now; the one that ran keeps its score, a bit faded.

        Its own figures have only just become history. When other things are required, all are scored anew.
        """
        for name in self.now:
            self._since[name] = 0 if name == ran else self._since[name] + 1
            if name != ran or qos != self._qos:
                self.now[name] = self._against_history(name, gatherer, qos)
            elif self._fade == "z":
                self.now[name] = NEUTRAL + (self.now[name] - NEUTRAL) * self._decay
            else:
                self.now[name] *= self._decay
        self._qos = qos

    def _against_history(self, name: str, gatherer: Gatherer, qos: Qos) -> float:
        if name not in gatherer.views:
            return NEUTRAL
        faded, mine, found = self._decay ** self._since[name], gatherer.views[name], {}
        for statistic in (requirement.statistic for requirement in qos.requirements):
            own, all_ = mine.plan(statistic), gatherer.historic.plan(statistic)
            history = None if all_ is None else (all_.average, all_.minimum, all_.maximum)
            found[statistic] = z(None if own is None else own.average, history, faded if self._fade == "z" else 1.0)
        return score(qos, found) * (faded if self._fade == "score" else 1.0)


class Selector(Observer):
    """One run of the adaptive policy: who has decided so far, and who does next."""

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
        self.choices: deque[Choice] = deque(maxlen=LONGEST)
        self._told = told
        self._heuristic = HEURISTICS[tuning.select](tuning, engine.plan.settings.seed)
        self._scores = Scores(list(candidates), tuning.decay, tuning.fade)
        self._agenda = deque(_agenda(list(candidates), tuning) if self._heuristic.explores else ())
        # One that was only the first in a list is not kept for long; one that has been tried is.
        self._kept = tuning.every if self._heuristic.explores else tuning.every / 16
        self._now = engine.clock.now
        self.running = True

    def start(self) -> Policy:
        """Watch the run from here on; answers who decides first."""
        self.engine.watch(self.gatherer, *self._heuristic.observers, self)
        first, why, length = (
            self._agenda.popleft() if self._agenda else (next(iter(self.candidates)), "first", self._kept)
        )
        self._note(Answer(first, why, {}), length)
        return self.candidates[first]

    def stop(self) -> None:
        """Another policy has been put in the place of all this."""
        for observer in (self.gatherer, *self._heuristic.observers, self):
            self.engine.unwatch(observer)
        self.running = False

    @property
    def qos(self) -> Qos:
        """What is required now: the next evaluation goes by it."""
        return self.engine.qos

    @property
    def scores(self) -> dict[str, float]:
        """As of the last evaluation."""
        return dict(self._scores.now)

    def learnt(self) -> Experience:
        """All of it as it is at this instant."""
        found = self._scores, self.gatherer.learnt(), self._heuristic.learnt(), list(self._agenda)
        return Experience(*copy.deepcopy(found), self._kept, self.active, self._why, max(0.0, self._due - self._now()))

    def recall(self, learnt: Experience) -> None:
        """Go on with what another has learnt, unless that was of other candidates."""
        if learnt.scores.now.keys() != self.candidates.keys():
            return
        self._scores, self._kept, self._agenda = learnt.scores, learnt.kept, deque(learnt.agenda)
        self.gatherer.recall(learnt.views)
        self._heuristic.recall(learnt.heuristic)
        self._give(Answer(learnt.active, learnt.why, {}), learnt.left)

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self._now() >= self._due:
            self.evaluate()
        elif self._patience is not None and self.engine.starvations > self._patience:
            self.evaluate(starving=True)

    def evaluate(self, starving: bool = False) -> None:
        """Score all, and let the next decide."""
        self.gatherer.settle()
        qos = self.qos
        if self._why == "warm-up":
            self.gatherer.forget()  # empty queues to begin with flatter whoever is first
        else:
            self._scores.update(self.active, self.gatherer, qos)
        self._give(*self._next(qos, starving))

    def _give(self, answer: Answer, length: float) -> None:
        """Let this one decide for so long."""
        changes = answer.chosen != self.active
        self._note(answer, length)
        if changes:
            self.engine.let(self.candidates[self.active])
            self.gatherer.algorithm = self.active

    def _next(self, qos: Qos, starving: bool) -> tuple[Answer, float]:
        """Who is tried next, or chosen; one that starves operators is not followed by itself."""
        among = {n: p for n, p in self.candidates.items() if n != self.active} if starving else self.candidates
        among = among or self.candidates
        while self._agenda:
            name, why, length = self._agenda.popleft()
            if name in among:
                return Answer(name, "starvation" if starving else why, {}), length
        answer = self._heuristic.choose(Question(self.engine, among, self.active, qos, self.scores))
        self._kept = min(2 * self._kept, self.tuning.every)
        return answer._replace(why="starvation") if starving else answer, self._kept

    def _note(self, answer: Answer, length: float) -> None:
        now = self._now()
        self.active, self._why = answer.chosen, answer.why
        self._due = now + length
        allowed = self.tuning.starvation
        self._patience = None if allowed is None else self.engine.starvations + allowed
        choice = Choice(now, answer.chosen, answer.why, self.scores, answer.figures)
        self.choices.append(choice)
        self._told(choice)


def _agenda(names: Sequence[str], tuning: Tuning) -> list[tuple[str, str, float]]:
    """The first warms up; each is tried once; then the first again, whose first time suffered from the start."""
    tried = [(name, "exploration", tuning.explore) for name in (*names, names[0])]
    return [entry for entry in ((names[0], "warm-up", tuning.warmup), *tried) if entry[2] > 0]
