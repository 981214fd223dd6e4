"""Explains one scheduling decision of a run: all segments with work, their priorities, and why one was chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsms.advice.explain import resolve_plan, resolve_policy, segments_of
from dsms.advice.reasons import Inputs, PathChart, PriorityExplainer, finite_or_none, oldest_sequence, path_charts
from dsms.config.fields import is_number
from dsms.engine.engine import Engine, RunnerFactory
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.engine.runners.runner import Step
from dsms.errors import DsmsError
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment


@dataclass(frozen=True)
class Candidate:
    """A segment that had work when the decision was made."""

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
    decides: str | None  # the policy itself or, for the adaptive policy, its candidate
    asked: float
    at: float | None  # when it was made; None: no decision yet
    done: float | None  # when its turn ended
    number: int  # its number in the run
    chosen: list[str] | None
    reason: str
    candidates: list[Candidate]  # by rank
    idle: list[list[str]]  # segments without work
    blocked: list[list[str]]  # segments whose work must wait for an older tuple at another input

    def to_json(self) -> dict[str, Any]:
        """The decision as plain data; a figure that does not exist is None."""
        found = {**vars(self), "candidates": [dict(vars(candidate)) for candidate in self.candidates]}
        for candidate in found["candidates"]:
            candidate["inputs"] = {
                n: v if isinstance(v, str) else finite_or_none(v) for n, v in candidate["inputs"].items()
            }
        return found


class DecisionProbe:
    """Captures a decision before its turn: the candidates, their priorities and the reasons for them."""

    def __init__(self, engine: Engine) -> None:
        segments, charts = segments_of(engine.ledger), list[PathChart]()
        if any(segment.slope for segment in segments):
            charts = path_charts(engine.plan, engine.statistics)
        reasons = PriorityExplainer(engine.control.policy, segments, charts)
        self.decides = engine.control.policy.name
        self.reason = "the run was cut in its turn"
        self.done = math.inf  # when the turn ended
        self.ranked = sorted((s for s in segments if s.ranked is not None), key=lambda s: (s.ranked or ())[:3])
        out = [segment for segment in segments if segment.ranked is None]
        self.idle = [segment.names for segment in out if not segment.pending]
        self.blocked = [segment.names for segment in out if segment.pending]
        self.candidates = [
            Candidate(s.names, finite_or_none(-s.key), s.pending, oldest_sequence(s), *reasons.of(s))
            for s in self.ranked
        ]
        self._limit = engine.plan.settings.max_wait
        self._by_age, self._keys = engine.control.policy.traits.by_age, [segment.key for segment in self.ranked]

    def close(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        """Note the chosen segment and the end of its turn."""
        place = next(place for place, other in enumerate(self.ranked) if other is segment)
        self.done = start + sum(step.cost for step in steps)
        self.reason = self._reason(place)
        self.candidates[place] = replace(self.candidates[place], chosen=True)

    def decision(self, policy: str, asked: float, at: float, number: int, more: str = "") -> Decision:
        """Make the decision's description; `more` is added to its reason."""
        return Decision(
            policy,
            self.decides,
            asked,
            at,
            finite_or_none(self.done),
            number,
            next((candidate.stations for candidate in self.candidates if candidate.chosen), None),
            self.reason + more,
            self.candidates,
            self.idle,
            self.blocked,
        )

    def _reason(self, place: int) -> str:
        """Why the candidate at this rank was chosen."""
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


class DecisionRecorder(Observer):
    """Counts decisions and captures one of them; all others cost next to nothing."""

    trusted = True

    def __init__(self, number: int = 0) -> None:
        self.number = number  # of the decision to capture; 0: none
        self.instants: tuple[float, float] = (-math.inf, -math.inf)  # of the last two decisions
        self.count = 0
        self.look: DecisionProbe | None = None  # of that decision

    def attach(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, now: float) -> None:
        self.count += 1
        self.instants = (self.instants[1], now)
        if self.count == self.number:
            self.look = DecisionProbe(self._engine)

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
    """Find the decision in force at an instant of a run in virtual time; the other options are those of `simulate`.

    The run is simulated twice: only the next decision shows which one was the last by that instant.
    """
    plan = resolve_plan(plan)
    if not is_number(at) or at < 0:
        raise DsmsError(f"why at {at!r}: the instant is not a number from 0")
    if seed is not None:
        plan = replace(plan, settings=replace(plan.settings, seed=seed))
    until = plan.settings.until if until is None else until
    stop = until if cut and until is not None else math.inf

    def run_until(seen: DecisionRecorder, over: Callable[[], bool]) -> bool:
        """Run until `over()` holds; False if the run ends before."""
        engine = Engine(plan, resolve_policy(policy), runner=runner, observers=[seen], until=until, cut=stop)
        try:
            while not over():
                if not engine.step():
                    return False
            return True
        finally:
            engine.row_runner.close()

    first = DecisionRecorder()
    more = run_until(first, lambda: first.instants[1] > at)
    before, following = first.instants if more else (first.instants[1], math.inf)
    number = first.count - more
    name = policy if isinstance(policy, str) else policy.name
    if not number:
        text = f"none had been made by then: the first is at {following:g}" if more else "none was made in this run"
        return Decision(name, None, at, None, None, 0, None, text, [], [], [])
    seen = DecisionRecorder(number)
    run_until(seen, lambda: seen.look is not None and seen.look.done < math.inf)
    assert seen.look is not None  # the second run is the same as the first
    return seen.look.decision(name, at, before, number, _format_age(at, seen.look.done, following))


def _format_age(at: float, done: float, following: float) -> str:
    """A note for a decision whose turn had ended by the instant asked for."""
    if at < done or math.isinf(done):
        return ""
    if math.isinf(following):
        return f"; it was the last: nothing was left to do from {done:g} on"
    return f"; its turn was over at {done:g}, and nothing was waiting until {following:g}"
