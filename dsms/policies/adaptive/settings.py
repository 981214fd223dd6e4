"""Tuning: the adaptive policy's parameters, from a plan's `[adaptive]` table or a policy text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

from dsms.config.fields import ChoiceField, Field, NumberField, OptionalField, fields_of, read_at, read_fields
from dsms.engine.policy import Policy
from dsms.errors import PlanError, PolicyError
from dsms.policies.adaptive.heuristics import HEURISTICS
from dsms.policies.registry import policy_named

FADE_KINDS = ("z", "score")
Candidates = str | Sequence[str | Policy]


class CandidatesField(Field[Any]):
    """Policies to choose among, as `parse_candidates` takes them."""

    expected = "policies, as in 'chain+fifo' or a list"

    def _convert(self, value: object) -> Any:
        try:
            parse_candidates(value)  # type: ignore[arg-type]  # which checks the type
        except PolicyError as error:
            raise PlanError(str(error)) from None
        return value

    def read(self, value: object, place: str = "") -> Any:
        """Check the candidates and leave them as they are."""
        return read_at(place, self._convert, value)


Positive = Annotated[float, NumberField(above=0)]
NonNegative = Annotated[float, NumberField(least=0)]
Optional = Annotated[float | None, OptionalField(NumberField(least=0))]


@dataclass(frozen=True)
class Tuning:
    """Times are in the plan's units; the defaults are Raindrop's where the thesis gives one."""

    select: Annotated[str, ChoiceField(HEURISTICS)] = "roulette"
    candidates: Annotated[Candidates, CandidatesField()] = "chain+fifo+mtiq+rr"
    every: Positive = 2.0  # how long an algorithm is kept before the next choice
    period: Positive = 1.0  # how often statistics are gathered
    warmup: NonNegative = 5.0  # how long the first algorithm runs before anything counts
    explore: NonNegative = 1.0  # how long each algorithm then runs in turn, and the first once more
    decay: Annotated[float, NumberField(above=0, most=1)] = 0.9  # of the score of one that has not run, per evaluation
    fade: Annotated[str, ChoiceField(FADE_KINDS)] = (
        "z"  # towards the neutral z; "score": towards 0, eq. 5.1 read otherwise
    )
    horizon: Optional = None  # "predictive": how far it looks ahead; None: five times `every`
    hysteresis: NonNegative = 0.02  # and by how much another must be better to be chosen
    starvation: Optional = None  # after more decisions than this without work, another algorithm is chosen at once

    def __post_init__(self) -> None:
        for field in fields(self):
            validate(field.name, getattr(self, field.name))

    @staticmethod
    def read(table: Mapping[str, Any]) -> dict[str, Any]:
        """Check a plan's `[adaptive]` table."""
        read_fields(table, TUNING_FIELDS)
        return dict(table)


TUNING_FIELDS = fields_of(Tuning)


def validate(key: str, value: Any) -> None:
    """Refuse a value that this parameter cannot have."""
    if key == "candidates":
        parse_candidates(value)
        return
    try:
        TUNING_FIELDS[key].read(value)
    except PlanError as error:
        raise PolicyError(f"adaptive: {key}: {error.message}") from None


def parse_candidates(given: Candidates) -> list[Policy]:
    """Return the candidates from texts joined by `+`, or from a list of texts and policies."""
    entries = given.split("+") if isinstance(given, str) else given
    if not isinstance(entries, list | tuple) or not entries:
        raise PolicyError(f"adaptive: candidates is {given!r}: expected policies, as in 'chain+fifo' or a list")
    candidates = []
    for entry in entries:
        if not isinstance(entry, str | Policy):
            raise PolicyError(f"adaptive: candidates: {entry!r} is not a policy: expected a text or a Policy")
        if (entry.partition(":")[0] if isinstance(entry, str) else entry.name) == "adaptive":
            raise PolicyError(
                "adaptive: candidates: 'adaptive' cannot be its own candidate: name the policies to choose among"
            )
        try:
            policy = policy_named(entry.strip()) if isinstance(entry, str) else entry
        except PolicyError as error:
            raise PolicyError(f"adaptive: candidates: {error}") from None
        if policy.traits.clairvoyant:
            raise PolicyError(f"adaptive: candidates: {policy.name!r} is an oracle and cannot be a candidate")
        candidates.append(policy)
    return candidates
