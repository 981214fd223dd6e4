"""What a selector is told beside the requirements: the `[adaptive]` table of a plan, or a policy text's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dsms.errors import PlanError, PolicyError, existing
from dsms.policies.base import Policy
from dsms.selection.heuristics import HEURISTICS
from dsms.settings import is_number

FADES = ("z", "score")
POSITIVE = ("every", "period")
MAY_BE_LEFT_OPEN = ("starvation", "horizon")
Candidates = str | Sequence[str | Policy]


@dataclass(frozen=True)
class Tuning:
    """Times are in the plan's units; the defaults are Raindrop's where it says."""

    select: str = "roulette"
    candidates: Candidates = "chain+fifo+mtiq+rr"
    every: float = 2.0  # how long an algorithm is kept before there is a choice again
    period: float = 1.0  # how often statistics are gathered
    warmup: float = 5.0  # the first algorithm runs so long before anything counts
    explore: float = 1.0  # then each runs so long in turn, and the first once more
    decay: float = 0.9  # of what is known of one that has not run, per evaluation
    fade: str = "z"  # towards neither good nor bad; "score": towards 0, the other way to read eq. 5.1
    horizon: float | None = None  # "predictive": how far it looks ahead; None: five times `every`
    hysteresis: float = 0.02  # and by how much another must be better to be chosen
    starvation: float | None = None  # more decisions than this for want of work: the algorithm is changed at once

    def __post_init__(self) -> None:
        for field in fields(self):
            check(field.name, getattr(self, field.name))

    @staticmethod
    def read(table: Mapping[str, Any]) -> dict[str, Any]:
        """What a plan's `[adaptive]` table gives, checked."""
        names = [field.name for field in fields(Tuning)]
        for key, value in table.items():
            if key not in names:
                raise PlanError(f"no parameter {key!r}{existing(key, names)}", key)
            try:
                check(key, value)
            except PolicyError as error:
                raise PlanError(str(error), key) from None
        return dict(table)


def check(key: str, value: Any) -> None:
    """Refuse what a parameter cannot be."""
    what = f"adaptive: {key} is {value!r}"
    if key == "candidates":
        candidates(value)
    elif key == "select":
        if not isinstance(value, str) or value not in HEURISTICS:
            raise PolicyError(f"{what}: no such way to select{existing(str(value), HEURISTICS)}")
    elif key == "fade":
        if value not in FADES:
            raise PolicyError(f"{what}: one of {list(FADES)} is wanted")
    elif key == "decay":
        if not is_number(value) or not 0 < value <= 1:
            raise PolicyError(f"{what}: a number above 0 and up to 1 is wanted")
    elif key in POSITIVE:
        if not is_number(value) or not value > 0:
            raise PolicyError(f"{what}: a positive number is wanted")
    elif not (value is None and key in MAY_BE_LEFT_OPEN) and (not is_number(value) or value < 0):
        raise PolicyError(f"{what}: a number from 0 is wanted")


def candidates(given: Candidates) -> list[Policy]:
    """The policies to choose among: texts joined by `+`, or a list of texts and policies."""
    from dsms.policies.registry import policy_named  # which lists the adaptive policy, and so needs this file first

    entries = given.split("+") if isinstance(given, str) else given
    if not isinstance(entries, list | tuple) or not entries:
        raise PolicyError(f"adaptive: candidates is {given!r}: policies are wanted, as in 'chain+fifo' or a list")
    found = []
    for entry in entries:
        if not isinstance(entry, str | Policy):
            raise PolicyError(f"adaptive: candidates: {entry!r} is not a policy: a text or a Policy is wanted")
        if (entry.partition(":")[0] if isinstance(entry, str) else entry.name) == "adaptive":
            raise PolicyError(
                "adaptive: candidates: 'adaptive' cannot be chosen by itself: name those it chooses among"
            )
        try:
            policy = policy_named(entry.strip()) if isinstance(entry, str) else entry
        except PolicyError as error:
            raise PolicyError(f"adaptive: candidates: {error}") from None
        if policy.clairvoyant:
            raise PolicyError(f"adaptive: candidates: {policy.name!r} knows every tuple's fate: a yardstick, no choice")
        found.append(policy)
    return found
