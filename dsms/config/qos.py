"""Quality of service: weighted goals to maximise or minimise statistics, and scores of policies by these goals.

Sutherland, Raindrop thesis, chapter 5. Goals are relative, never absolute: a requirement says what to prefer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from dsms.config.fields import AnyField, ChoiceField, NumberField, read_fields
from dsms.errors import PlanError, PolicyError, QosError, existing

T = TypeVar("T")
GOALS = {"maximise": "max", "minimise": "min"}
GOAL_SYNONYMS = {
    **{goal: goal for goal in GOALS},
    "maximize": "maximise",
    "minimize": "minimise",
    "max": "maximise",
    "min": "minimise",
}
# Short names of plan statistics, and which way is better.
STATISTIC_ALIASES = {
    "memory": ("queued", "minimise"),
    "delay": ("delay", "minimise"),
    "rate": ("output_rate", "maximise"),
    "throughput": ("throughput", "maximise"),
    "age": ("age", "minimise"),
    "freshness": ("freshness", "maximise"),
}
WEIGHT_SUM_TOLERANCE = 5e-6  # how far from 1 the sum may be: weights are written with six digits and read again
GOAL, WEIGHT = ChoiceField(GOAL_SYNONYMS), NumberField(above=0)
REQUIREMENT_FIELDS = {"weight": AnyField(), "goal": AnyField()}  # checked by Requirement


@dataclass(frozen=True)
class Requirement:
    """A plan statistic to maximise or minimise, and its weight."""

    statistic: str
    goal: str  # "maximise" or "minimise"
    weight: float

    def __post_init__(self) -> None:
        for name, field, value in (("goal", GOAL, self.goal), ("weight", WEIGHT, self.weight)):
            try:
                field.read(value)
            except PlanError as error:
                raise QosError(f"the {name} of {self.statistic}: {error.message}") from None
        object.__setattr__(self, "goal", GOAL_SYNONYMS[self.goal])

    def __str__(self) -> str:
        for short, meant in STATISTIC_ALIASES.items():
            if meant == (self.statistic, self.goal):
                return f"{short}={self.weight:.6g}"
        return f"{GOALS[self.goal]}:{self.statistic}={self.weight:.6g}"


@dataclass(frozen=True)
class Qos:
    """The requirements of a plan; their weights add up to 1."""

    requirements: tuple[Requirement, ...]

    def __post_init__(self) -> None:
        names = [requirement.statistic for requirement in self.requirements]
        if not names:
            raise QosError("no requirement: give at least one, as in 'memory=1'")
        for name in names:
            if names.count(name) > 1:
                raise QosError(f"{name!r} is required twice: each statistic is named once")
        total = math.fsum(requirement.weight for requirement in self.requirements)
        if abs(total - 1) > WEIGHT_SUM_TOLERANCE:
            shown = ", ".join(str(requirement) for requirement in self.requirements)
            raise QosError(f"the weights add up to {total:.9g}, not to 1: {shown}")

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)

    def weight_of(self, name: str) -> float:
        """The weight of a statistic, by its full or short name; 0 if nothing is required of it."""
        statistic = STATISTIC_ALIASES[name][0] if name in STATISTIC_ALIASES else name
        return next((r.weight for r in self.requirements if r.statistic == statistic), 0.0)

    def check(self, statistics: Iterable[str]) -> None:
        """Refuse a requirement on a statistic that is not gathered."""
        known = list(statistics)
        for requirement in self.requirements:
            if requirement.statistic not in known:
                name = requirement.statistic
                raise QosError(f"no plan statistic {name!r} is gathered{existing(name, known)}")

    @classmethod
    def of(cls, given: Qos | str | Mapping[str, Any]) -> Qos:
        """Make requirements of a text or a table."""
        if isinstance(given, Qos):
            return given
        if isinstance(given, str):
            return cls.parse(given)
        if isinstance(given, Mapping):
            return cls.read(given)
        raise PolicyError(f"qos is {given!r}: it must be a Qos, a table, or a text such as 'memory=0.5,delay=0.5'")

    @classmethod
    def parse(cls, text: str) -> Qos:
        """Parse a template's name, or `memory=0.5,delay=0.3,max:STATISTIC=0.2`; `+` may replace the comma."""
        if "=" not in text:
            return find_template(text)
        requirements = []
        for part in text.replace("+", ",").split(","):
            name, _, value = part.strip().partition("=")
            try:
                weight = float(value)
            except ValueError:
                raise QosError(f"{part!r} in {text!r}: expected NAME=WEIGHT, as in 'memory=0.5'") from None
            goal, colon, statistic = name.partition(":")
            requirements.append(
                Requirement(statistic, goal, weight) if colon else _parse_short_requirement(name, weight)
            )
        return cls(tuple(requirements))

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Qos:
        """Read a plan's `[qos]`: `memory = 0.5`, `NAME = { weight = 0.5, goal = "maximise" }`, or a template."""
        if "template" in table:
            others = [key for key in table if key != "template"]
            if others:
                raise PlanError(f"a template cannot be combined with other keys: remove {others}", "template")
            return _read_at("template", lambda: find_template(table["template"]))
        requirements = [_read_at(key, partial(_read_requirement, key, value)) for key, value in table.items()]
        return _read_at("", lambda: cls(tuple(requirements)))


def z_score(mean: float | None, history: tuple[float, float, float] | None, faded: float = 1.0) -> float:
    """Compare an algorithm's mean with the whole history (mean, minimum, maximum): eq. 5.1, between 0 and 1.

    `faded` is decay^delay: an old score approaches 0.5, which is neutral.
    """
    if mean is None or history is None:
        return 0.5
    middle, low, high = history
    if high <= low:
        return 0.5
    return min(1.0, max(0.0, (mean - middle) / (high - low) * faded + 0.5))


def score_qos(qos: Qos, z_scores: Mapping[str, float]) -> float:
    """Score an algorithm by the requirements, from its z-score in each statistic: eq. 5.2, between 0 and 1."""
    return math.fsum(
        r.weight * (z_scores[r.statistic] if r.goal == "maximise" else 1 - z_scores[r.statistic])
        for r in qos.requirements
    )


def find_template(name: Any) -> Qos:
    """The requirements of a template."""
    if not isinstance(name, str) or name not in TEMPLATES:
        raise QosError(f"no template {name!r}{existing(str(name), TEMPLATES)}; or give weights, as in 'memory=1'")
    return TEMPLATES[name]


def _parse_short_requirement(name: str, weight: Any) -> Requirement:
    if name in STATISTIC_ALIASES:
        return Requirement(*STATISTIC_ALIASES[name], weight)
    for statistic, goal in STATISTIC_ALIASES.values():
        if statistic == name:
            return Requirement(statistic, goal, weight)
    known = existing(name, STATISTIC_ALIASES)
    raise QosError(f"no short name {name!r}{known}; write other statistics as 'max:NAME' or 'min:NAME'")


def _read_requirement(key: str, value: Any) -> Requirement:
    if not isinstance(value, Mapping):
        return _parse_short_requirement(key, value)
    read_fields(value, REQUIREMENT_FIELDS)
    if "goal" not in value:
        return _parse_short_requirement(key, value.get("weight"))
    statistic = STATISTIC_ALIASES[key][0] if key in STATISTIC_ALIASES else key
    return Requirement(statistic, value["goal"], value.get("weight", math.nan))


def _read_at(place: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except PlanError as error:
        raise error.within(place) from None
    except PolicyError as error:
        raise PlanError(error.reason if isinstance(error, QosError) else str(error), place) from None


def _weights(**weights: float) -> Qos:
    return Qos(tuple(_parse_short_requirement(name, weight) for name, weight in weights.items()))


DEFAULT = _weights(memory=1 / 3, delay=1 / 3, rate=1 / 3)
TEMPLATES = {
    "balanced": DEFAULT,
    "memory": _weights(memory=1.0),
    "delay": _weights(delay=1.0),
    "rate": _weights(rate=1.0),
    "memory-delay": _weights(memory=0.5, delay=0.5),
    "memory-rate": _weights(memory=0.5, rate=0.5),
    "delay-rate": _weights(delay=0.5, rate=0.5),
    "delay70-rate30": _weights(delay=0.7, rate=0.3),  # Raindrop's figures 6.4 and 6.5
    "delay30-rate70": _weights(delay=0.3, rate=0.7),
}
