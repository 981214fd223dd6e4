"""Adaptive: switches between candidate policies, more often to candidates that met the QoS goal better.

Sutherland, Raindrop thesis, chapter 5. The requirements come from the plan's `[qos]`, or are given; candidates with
parameters, like every other parameter, may stand in the plan's `[adaptive]`.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from dsms.config.qos import Qos
from dsms.engine.engine import Engine
from dsms.engine.policy import Policy, StatefulPolicy, as_stateful
from dsms.engine.statistics import Statistics
from dsms.errors import PolicyError
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment, Share
from dsms.policies.adaptive.gatherer import Gatherer, Statistic, format_policy
from dsms.policies.adaptive.selector import Choice, Selector, SelectorState
from dsms.policies.adaptive.settings import Tuning, parse_candidates, validate

log = logging.getLogger("dsms")


@dataclass
class Adaptive(StatefulPolicy):
    """Parameters that are not given come from the plan's `[adaptive]` table, else from the defaults of `Tuning`."""

    name: ClassVar[str] = "adaptive"

    select: str | None = None
    candidates: str | None = None  # from Python also a list of texts and policies
    every: float | None = None
    period: float | None = None
    warmup: float | None = None
    explore: float | None = None
    decay: float | None = None
    fade: str | None = None
    horizon: float | None = None
    hysteresis: float | None = None
    starvation: float | None = None
    qos: Qos | str | None = None  # may change during a run; the next evaluation uses it
    _selector: Selector | None = field(default=None, init=False, repr=False, compare=False)
    _statistics: tuple[Statistic, ...] = field(default=(), init=False, repr=False, compare=False)
    _listeners: tuple[Callable[[Choice], None], ...] = field(default=(), init=False, repr=False, compare=False)
    _active: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for key, value in self._given().items():
            validate(key, value)
        if self.candidates is None:
            validate("candidates", Tuning.candidates)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "qos" and value is not None:
            value = Qos.of(value)
            self.check_qos(value)
            if self.selector is not None and self.selector.running:
                self.selector.engine.control.require(value)
        super().__setattr__(name, value)

    @property
    def selector(self) -> Selector | None:
        """The selector of the current or last run: its gatherer, choices, scores and active candidate."""
        return self._selector

    @property
    def choices(self) -> list[Choice]:
        """Every choice of the run so far, with its scores."""
        return list(self.selector.choices) if self.selector else []

    def define(self, statistic: Statistic) -> None:
        """Gather a user-defined statistic as well, so that QoS requirements can name it."""
        self._statistics += (statistic,)
        if self.selector is not None:
            self.selector.gatherer.define(statistic)

    def listen(self, listener: Callable[[Choice], None]) -> None:
        """Call this listener with every choice as it is made."""
        self._listeners += (listener,)

    def begin(self, engine: Engine) -> Policy:
        tuning = self._tuning(engine.plan)
        gatherer = Gatherer(engine.plan, tuning.period, self._statistics)
        qos = engine.control.qos if self.qos is None else Qos.of(self.qos)
        qos.check(gatherer.statistics())
        among = self._candidates(tuning)
        engine.control.qos = qos
        selector = Selector(engine, tuning, among, gatherer, self._tell)
        self.end(engine)  # it may be in charge already
        self._selector = selector
        return as_stateful(selector.start()).begin(engine)

    def end(self, engine: Engine) -> None:
        # The selector stays readable; the engine ends the candidate that decided last.
        if self._selector is not None and self._selector.running and self._selector.engine is engine:
            self._selector.stop()

    def check_qos(self, qos: Qos) -> None:
        if self.selector is not None:  # raise now rather than in the middle of the run
            qos.check(self.selector.gatherer.statistics())

    def snapshot(self) -> SelectorState | None:
        return None if self.selector is None else self.selector.snapshot()

    def restore(self, state: Any) -> None:
        if self.selector is not None and state is not None:
            self.selector.restore(state)

    def segments(self, plan: Plan) -> list[Segment]:
        return self._first(plan).segments(plan)

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        return as_stateful(self._first(plan)).cut(plan, statistics)

    def priority(self, segment: Segment) -> float:
        return self._deciding().priority(segment)

    def share(self, segment: Segment) -> Share | None:
        return self._deciding().share(segment)

    def on_served(self, segment: Segment) -> None:
        as_stateful(self._deciding()).on_served(segment)

    def _deciding(self) -> Policy:
        """Return the candidate that decides now; before any run, the one that would start."""
        if self.selector is not None:
            return self.selector.candidates[self.selector.active]
        return self._active or next(iter(self._candidates(Tuning(**self._given())).values()))

    def _first(self, plan: Plan) -> Policy:
        """Return the candidate that would start; outside a run the policy answers like it."""
        if self.selector is not None:
            return self._deciding()
        self._active = next(iter(self._candidates(self._tuning(plan)).values()))
        return self._active

    def _candidates(self, tuning: Tuning) -> dict[str, Policy]:
        """Return copies of the candidates by text; a copy, because a policy keeps state between turns."""
        copies = [copy.copy(policy) for policy in parse_candidates(tuning.candidates)]
        named = {format_policy(policy): policy for policy in copies}
        if len(named) < len(copies):
            raise PolicyError(f"adaptive: candidates are {[format_policy(p) for p in copies]}: name each once")
        return named

    def _tuning(self, plan: Plan) -> Tuning:
        return Tuning(**(dict(plan.adaptive) | self._given()))

    def _given(self) -> dict[str, Any]:
        known = {f.name: getattr(self, f.name) for f in fields(Tuning)}
        return {key: value for key, value in known.items() if value is not None}

    def _tell(self, choice: Choice) -> None:
        for listener in self._listeners:
            try:
                listener(choice)
            except Exception:
                log.exception("listener %r failed on a choice; the run continues", listener)
