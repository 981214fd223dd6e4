"""Quality of service: which statistics matter, in which direction, how much; and how an algorithm is scored by them.

Sutherland, Raindrop thesis, chapter 5. Goals are relative, never absolute: a requirement says what to prefer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from dsms.errors import PlanError, PolicyError, existing
from dsms.settings import is_number

T = TypeVar("T")
GOALS = {"maximise": "max", "minimise": "min"}
SPELT = {**{goal: goal for goal in GOALS}, "maximize": "maximise", "minimize": "minimise", "max": "maximise",
         "min": "minimise"}  # fmt: skip
# What people call the plan's statistics, and which way is better.
SHORT = {
    "memory": ("queued", "minimise"),
    "delay": ("delay", "minimise"),
    "rate": ("output_rate", "maximise"),
    "throughput": ("throughput", "maximise"),
    "age": ("age", "minimise"),
    "freshness": ("freshness", "maximise"),
}
SUM = 5e-6  # how far from 1 the weights may add up to: they are written with six digits, and read again


@dataclass(frozen=True)
class Requirement:
    """One statistic of the plan, to be made as large or as small as can be, and how much that counts."""

    statistic: str
    goal: str  # "maximise" or "minimise"
    weight: float

    def __post_init__(self) -> None:
        if not isinstance(self.goal, str) or self.goal not in SPELT:
            raise PolicyError(f"qos: {self.statistic} is to be {self.goal!r}: 'maximise' or 'minimise' is wanted")
        object.__setattr__(self, "goal", SPELT[self.goal])
        if not is_number(self.weight) or not self.weight > 0:
            raise PolicyError(f"qos: the weight of {self.statistic} is {self.weight!r}: a positive number is wanted")

    def __str__(self) -> str:
        for short, meant in SHORT.items():
            if meant == (self.statistic, self.goal):
                return f"{short}={self.weight:.6g}"
        return f"{GOALS[self.goal]}:{self.statistic}={self.weight:.6g}"


@dataclass(frozen=True)
class Qos:
    """What is wanted of a plan as a whole: requirements whose weights add up to 1."""

    requirements: tuple[Requirement, ...]

    def __post_init__(self) -> None:
        names = [requirement.statistic for requirement in self.requirements]
        if not names:
            raise PolicyError("qos: there is no requirement: at least one is wanted, as in 'memory=1'")
        for name in names:
            if names.count(name) > 1:
                raise PolicyError(f"qos: {name!r} is required twice: each statistic is named once")
        total = math.fsum(requirement.weight for requirement in self.requirements)
        if abs(total - 1) > SUM:
            shown = ", ".join(str(requirement) for requirement in self.requirements)
            raise PolicyError(f"qos: the weights add up to {total:.9g}, not to 1: {shown}")

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)

    def weight_of(self, name: str) -> float:
        """How much a statistic, by its own or its short name, counts; 0 where nothing is required of it."""
        wanted = SHORT[name][0] if name in SHORT else name
        return next((r.weight for r in self.requirements if r.statistic == wanted), 0.0)

    def check(self, statistics: Iterable[str]) -> None:
        """Refuse a requirement on what nobody gathers."""
        known = list(statistics)
        for requirement in self.requirements:
            if requirement.statistic not in known:
                name = requirement.statistic
                raise PolicyError(f"qos: no plan statistic {name!r} is gathered{existing(name, known)}")

    @classmethod
    def of(cls, given: Qos | str | Mapping[str, Any]) -> Qos:
        """The requirements that a text or a table stands for."""
        if isinstance(given, Qos):
            return given
        if isinstance(given, str):
            return cls.parse(given)
        if isinstance(given, Mapping):
            return cls.read(given)
        raise PolicyError(f"qos is {given!r}: a Qos, a table, or a text such as 'memory=0.5,delay=0.5' is wanted")

    @classmethod
    def parse(cls, text: str) -> Qos:
        """A template's name, or `memory=0.5,delay=0.3,max:STATISTIC=0.2`; `+` may stand for the comma."""
        if "=" not in text:
            return template(text)
        found = []
        for part in text.replace("+", ",").split(","):
            name, _, value = part.strip().partition("=")
            try:
                weight = float(value)
            except ValueError:
                raise PolicyError(f"qos: {part!r} in {text!r}: NAME=WEIGHT is wanted, as in 'memory=0.5'") from None
            goal, colon, statistic = name.partition(":")
            found.append(Requirement(statistic, goal, weight) if colon else _short(name, weight))
        return cls(tuple(found))

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Qos:
        """A plan's `[qos]`: `memory = 0.5`, `NAME = { weight = 0.5, goal = "maximise" }`, or a template."""
        if "template" in table:
            others = [key for key in table if key != "template"]
            if others:
                raise PlanError(f"a template stands alone, and {others} are given too", "template")
            return _placed("template", lambda: template(table["template"]))
        found = [_placed(key, partial(_read, key, value)) for key, value in table.items()]
        return _placed("", lambda: cls(tuple(found)))


def z(mean: float | None, history: tuple[float, float, float] | None, faded: float = 1.0) -> float:
    """How an algorithm's mean compares with all of history (mean, minimum, maximum): eq. 5.1, between 0 and 1.

    `faded` is decay^delay: what is old approaches 0.5, that is, nothing said for or against.
    """
    if mean is None or history is None:
        return 0.5
    middle, low, high = history
    if high <= low:
        return 0.5
    return min(1.0, max(0.0, (mean - middle) / (high - low) * faded + 0.5))


def score(qos: Qos, found: Mapping[str, float]) -> float:
    """How well an algorithm serves the requirements, from its z by statistic: eq. 5.2, between 0 and 1."""
    return math.fsum(
        r.weight * (found[r.statistic] if r.goal == "maximise" else 1 - found[r.statistic]) for r in qos.requirements
    )


def template(name: Any) -> Qos:
    """The requirements of this name."""
    if not isinstance(name, str) or name not in TEMPLATES:
        raise PolicyError(f"qos: no template {name!r}{existing(str(name), TEMPLATES)}; or weights, as in 'memory=1'")
    return TEMPLATES[name]


def _short(name: str, weight: Any) -> Requirement:
    if name in SHORT:
        return Requirement(*SHORT[name], weight)
    for statistic, goal in SHORT.values():
        if statistic == name:
            return Requirement(statistic, goal, weight)
    known = existing(name, SHORT)
    raise PolicyError(
        f"qos: no statistic {name!r} whose better end is known{known}; others as 'max:NAME' or 'min:NAME'"
    )


def _read(key: str, value: Any) -> Requirement:
    if not isinstance(value, Mapping):
        return _short(key, value)
    for name in value:
        if name not in ("weight", "goal"):
            raise PolicyError(f"qos: no key {name!r} here{existing(name, ('weight', 'goal'))}")
    if "goal" not in value:
        return _short(key, value.get("weight"))
    statistic = SHORT[key][0] if key in SHORT else key
    return Requirement(statistic, value["goal"], value.get("weight", math.nan))


def _placed(place: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except PolicyError as error:
        raise PlanError(str(error).removeprefix("qos: "), place) from None


def _weights(**weights: float) -> Qos:
    return Qos(tuple(_short(name, weight) for name, weight in weights.items()))


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
