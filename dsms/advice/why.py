"""Why a run did at some instant what it did: one decision, all who could have been chosen, and what spoke for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsms.advice.explain import plan_given, policy_given, segments_of
from dsms.advice.reasons import Inputs, PathChart, Reasons, finite, oldest, path_charts
from dsms.engine import Engine, RunnerFactory
from dsms.errors import DsmsError
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.runners.base import Step
from dsms.segment import Segment
from dsms.settings import is_number


@dataclass(frozen=True)
class Candidate:
    """A segment with work when the decision was made."""

    stations: list[str]
    priority: float | None
    pending: float
    oldest: int | None  # the sequence number of its oldest tuple, which decides among equals
    inputs: Inputs
    why: str
    chosen: bool = False


@dataclass(frozen=True)
class Decision:
    """The decision in force at an instant: the last one made by then."""

    policy: str  # as given
    decides: str | None  # itself or, of a selector, the one in charge
    asked: float
    at: float | None  # when it was made; None: there was none yet
    done: float | None  # when its turn was over
    number: int  # of all decisions so far
    chosen: list[str] | None
    reason: str
    candidates: list[Candidate]  # the first to run first
    idle: list[list[str]]  # segments without work
    blocked: list[list[str]]  # segments whose work must wait for an older tuple at another input

    def to_json(self) -> dict[str, Any]:
        """The decision as plain data; what does not exist is None."""
        found = {**vars(self), "candidates": [dict(vars(candidate)) for candidate in self.candidates]}
        for candidate in found["candidates"]:
            candidate["inputs"] = {n: v if isinstance(v, str) else finite(v) for n, v in candidate["inputs"].items()}
        return found


class Look:
    """A close look at a decision that is about to be carried out: who could be chosen, and what speaks for each."""

    def __init__(self, engine: Engine) -> None:
        segments, charts = segments_of(engine.ledger), list[PathChart]()
        if any(segment.slope for segment in segments):
            charts = path_charts(engine.plan, engine.statistics)
        reasons = Reasons(engine.policy, segments, charts)
        self.decides = engine.policy.name
        self.reason = "the run was cut in its turn"
        self.done = math.inf  # when the turn was over
        self.ranked = sorted((s for s in segments if s.ranked is not None), key=lambda s: (s.ranked or ())[:3])
        out = [segment for segment in segments if segment.ranked is None]
        self.idle = [segment.names for segment in out if not segment.pending]
        self.blocked = [segment.names for segment in out if segment.pending]
        self.candidates = [
            Candidate(s.names, finite(-s.key), s.pending, oldest(s), *reasons.of(s)) for s in self.ranked
        ]
        self._limit = engine.plan.settings.max_wait
        self._by_age, self._keys = engine.policy.by_age, [segment.key for segment in self.ranked]

    def close(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        """Its turn has been carried out."""
        place = next(place for place, other in enumerate(self.ranked) if other is segment)
        self.done = start + sum(step[3] for step in steps)
        self.reason = self._reason(place)
        self.candidates[place] = replace(self.candidates[place], chosen=True)

    def decision(self, policy: str, asked: float, at: float, number: int, more: str = "") -> Decision:
        """What was seen, for whoever asked; `more` is what else is to be said."""
        return Decision(
            policy,
            self.decides,
            asked,
            at,
            finite(self.done),
            number,
            next((candidate.stations for candidate in self.candidates if candidate.chosen), None),
            self.reason + more,
            self.candidates,
            self.idle,
            self.blocked,
        )

    def _reason(self, place: int) -> str:
        """Why the candidate at this place of the order was taken."""
        if place:
            return f"overdue: it has waited for more than max_wait = {self._limit:g}, whatever its priority"
        if len(self.ranked) == 1:
            return "no other segment has work"
        equals = self._keys.count(self._keys[0])
        if equals == 1:
            return "the highest priority"
        alike = f"{equals} have the highest priority"
        if not self._by_age:
            return f"{alike}: the first in the policy's list"
        ages = [candidate.oldest for candidate in self.candidates[:equals]]
        if ages.count(ages[0]) == 1:
            return f"{alike}: it has the oldest tuple (number {ages[0]})"
        among = f"{alike}, {ages.count(ages[0])} of them the oldest tuple (number {ages[0]})"
        return f"{among}: it is further downstream, or comes first in the plan"


class Decisions(Observer):
    """Counts decisions, and looks closely at one of them: all the others cost next to nothing."""

    trusted = True

    def __init__(self, number: int = 0) -> None:
        self.number = number  # of the decision to look at; 0: none
        self.instants: tuple[float, float] = (-math.inf, -math.inf)  # of the last two
        self.count = 0
        self.look: Look | None = None  # at that one

    def attach(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, now: float) -> None:
        self.count += 1
        self.instants = (self.instants[1], now)
        if self.count == self.number:
            self.look = Look(self._engine)

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self.look is not None and self.count == self.number:
            self.look.close(start, segment, steps)


def why(
    plan: Plan | str | Path | Mapping[str, Any],
    policy: str | Policy,
    at: float,
    *,
    until: float | None = None,
    cut: bool = False,
    seed: int | None = None,
    runner: RunnerFactory | None = None,
) -> Decision:
    """The decision in force at an instant of a run in virtual time; the other options are those of `simulate`.

    The run is made twice up to there: which decision is the last one by then shows only when the next is made.
    """
    plan = plan_given(plan)
    if not is_number(at) or at < 0:
        raise DsmsError(f"why at {at!r}: an instant, a number from 0, is wanted")
    if seed is not None:
        plan = replace(plan, settings=replace(plan.settings, seed=seed))
    until = plan.settings.until if until is None else until
    stop = until if cut and until is not None else math.inf

    def followed(seen: Decisions, over: Callable[[], bool]) -> bool:
        """Run until that is so; False if the run ends before."""
        engine = Engine(plan, policy_given(policy), runner=runner, observers=[seen], until=until, cut=stop)
        try:
            while not over():
                if not engine.step():
                    return False
            return True
        finally:
            engine.runner.close()

    first = Decisions()
    more = followed(first, lambda: first.instants[1] > at)
    before, following = first.instants if more else (first.instants[1], math.inf)
    number = first.count - more
    name = policy if isinstance(policy, str) else policy.name
    if not number:
        text = f"none had been made by then: the first is at {following:g}" if more else "none was made in this run"
        return Decision(name, None, at, None, None, 0, None, text, [], [], [])
    seen = Decisions(number)
    followed(seen, lambda: seen.look is not None and seen.look.done < math.inf)
    assert seen.look is not None  # the second run is the same as the first
    return seen.look.decision(name, at, before, number, _since(at, seen.look.done, following))


def _since(at: float, done: float, following: float) -> str:
    """What else is to be said where the decision's turn was over at the instant asked for."""
    if at < done or math.isinf(done):
        return ""
    if math.isinf(following):
        return f"; it was the last: nothing was left to do from {done:g} on"
    return f"; its turn was over at {done:g}, and nothing was waiting until {following:g}"
