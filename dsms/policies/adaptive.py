"""Adaptive: several algorithms take turns at deciding, and the requirements say which one decides how often.

Sutherland, Raindrop thesis, chapter 5. The requirements come from the plan's `[qos]`, or are given; candidates with
parameters, like every other parameter, may stand in the plan's `[adaptive]`.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from dsms.errors import PolicyError
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.qos import Qos
from dsms.segment import Segment, Share
from dsms.selection.gatherer import Gatherer, Statistic, text_of
from dsms.selection.selector import Choice, Experience, Selector
from dsms.selection.tuning import Tuning, candidates, check

if TYPE_CHECKING:
    from dsms.engine import Engine
    from dsms.statistics import Statistics

log = logging.getLogger("dsms")


@dataclass
class Adaptive(Policy):
    """What is not given stands in the plan, or is as in `Tuning`."""

    name: ClassVar[str] = "adaptive"

    select: str | None = None
    candidates: str | None = None  # in Python also a list of texts and policies
    every: float | None = None
    period: float | None = None
    warmup: float | None = None
    explore: float | None = None
    decay: float | None = None
    fade: str | None = None
    horizon: float | None = None
    hysteresis: float | None = None
    starvation: float | None = None
    qos: Qos | str | None = None  # may be changed while running; the next evaluation goes by it
    _selector: Selector | None = field(default=None, init=False, repr=False, compare=False)
    _statistics: tuple[Statistic, ...] = field(default=(), init=False, repr=False, compare=False)
    _told: tuple[Callable[[Choice], None], ...] = field(default=(), init=False, repr=False, compare=False)
    _active: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for key, value in self._given().items():
            check(key, value)
        if self.candidates is None:
            check("candidates", Tuning.candidates)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "qos" and value is not None:
            value = Qos.of(value)
            self.consider(value)
            if self.selector is not None and self.selector.running:
                self.selector.engine.require(value)
        super().__setattr__(name, value)

    @property
    def selector(self) -> Selector | None:
        """Of the present run, or the last: its gatherer, choices, scores, and who decides."""
        return self._selector

    @property
    def choices(self) -> list[Choice]:
        """Every choice of the run so far, with the scores it went by."""
        return list(self.selector.choices) if self.selector else []

    def define(self, statistic: Statistic) -> None:
        """Gather a statistic of the user's own too, so that something may be required of it."""
        self._statistics += (statistic,)
        if self.selector is not None:
            self.selector.gatherer.define(statistic)

    def listen(self, told: Callable[[Choice], None]) -> None:
        """Tell this one of every choice as it is made."""
        self._told += (told,)

    def begin(self, engine: Engine) -> Policy:
        tuning = self._tuning(engine.plan)
        gatherer = Gatherer(engine.plan, tuning.period, self._statistics)
        wanted = engine.qos if self.qos is None else Qos.of(self.qos)
        wanted.check(gatherer.statistics())
        among = self._candidates(tuning)
        engine.qos = wanted
        selector = Selector(engine, tuning, among, gatherer, self._tell)
        self.end(engine)  # it may be in charge already
        self._selector = selector
        return selector.start().begin(engine)

    def end(self, engine: Engine) -> None:
        # What it did stays to be read; who decided last is the engine's to end.
        if self._selector is not None and self._selector.running and self._selector.engine is engine:
            self._selector.stop()

    def consider(self, qos: Qos) -> None:
        if self.selector is not None:  # better now than in the middle of the run
            qos.check(self.selector.gatherer.statistics())

    def learnt(self) -> Experience | None:
        return None if self.selector is None else self.selector.learnt()

    def recall(self, learnt: Any) -> None:
        if self.selector is not None and learnt is not None:
            self.selector.recall(learnt)

    def segments(self, plan: Plan) -> list[Segment]:
        return self._first(plan).segments(plan)

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        return self._first(plan).cut(plan, statistics)

    def priority(self, segment: Segment) -> float:
        return self._deciding().priority(segment)

    def share(self, segment: Segment) -> Share | None:
        return self._deciding().share(segment)

    def shares(self) -> bool:
        return self._deciding().shares()

    def served(self, segment: Segment) -> None:
        self._deciding().served(segment)

    def _deciding(self) -> Policy:
        """The one that decides now; before any run, the one that would begin."""
        if self.selector is not None:
            return self.selector.candidates[self.selector.active]
        return self._active or next(iter(self._candidates(Tuning(**self._given())).values()))

    def _first(self, plan: Plan) -> Policy:
        """Asked by itself, outside a run, it answers as the candidate it would begin with."""
        if self.selector is not None:
            return self._deciding()
        self._active = next(iter(self._candidates(self._tuning(plan)).values()))
        return self._active

    def _candidates(self, tuning: Tuning) -> dict[str, Policy]:
        """Its own copies, by what people would type: a policy keeps its place in a round, and runs differ."""
        found = [copy.copy(policy) for policy in candidates(tuning.candidates)]
        named = {text_of(policy): policy for policy in found}
        if len(named) < len(found):
            raise PolicyError(f"adaptive: candidates are {[text_of(p) for p in found]}: each is wanted once")
        return named

    def _tuning(self, plan: Plan) -> Tuning:
        return Tuning(**(dict(plan.adaptive) | self._given()))

    def _given(self) -> dict[str, Any]:
        known = {f.name: getattr(self, f.name) for f in fields(Tuning)}
        return {key: value for key, value in known.items() if value is not None}

    def _tell(self, choice: Choice) -> None:
        for told in self._told:
            try:
                told(choice)
            except Exception:
                log.exception("%r failed when told of a choice; the run goes on", told)
