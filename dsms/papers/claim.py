"""What a paper says, as data: its number, how ours is worked out, and when we call it reproduced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from dsms.papers.measured import Measured

Band = tuple[float, float]  # from, to
Figure = Callable[[Measured], float]


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    DIRECTION = "direction only"
    NOT = "not reproduced"


def near(value: float, tolerance: float) -> Band:
    """No farther from it than so much."""
    return value - tolerance, value + tolerance


def at_least(value: float) -> Band:
    return value, math.inf


def at_most(value: float) -> Band:
    return -math.inf, value


def above(value: float) -> Band:
    """More, be it ever so little: what is merely equal is not in it."""
    return math.nextafter(value, math.inf), math.inf


def below(value: float) -> Band:
    return -math.inf, math.nextafter(value, -math.inf)


@dataclass(frozen=True)
class Reading:
    """One number, over seeds."""

    name: str
    mean: float
    spread: float | None  # standard deviation over seeds

    def off(self, band: Band) -> float:
        """How far outside a band."""
        return math.inf if math.isnan(self.mean) else max(band[0] - self.mean, self.mean - band[1], 0.0)


@dataclass(frozen=True)
class Judgement:
    """A claim, and what came of it here."""

    claim: Claim
    ours: Reading
    verdict: Verdict
    band: Band  # by which it was judged
    others: tuple[Reading, ...]  # other ways to read the paper, what comes nearest to what it says first

    @property
    def nearest(self) -> Reading | None:
        return self.others[0] if self.others else None

    @property
    def why(self) -> str:
        """What the paper left open, and why it did not come out if it did not."""
        told = [self.claim.reading]
        if self.verdict is not Verdict.REPRODUCED:
            told.append(self.claim.because)
        return " ".join(filter(None, told))


@dataclass(frozen=True)
class Claim:
    """`ours` is worked out for each seed on its own; `pooled`, once from all of them."""

    name: str  # short, unique in its experiment
    text: str
    paper: str  # its number, as it stands there
    ours: Figure
    band: Band  # within which it is reproduced
    direction: Band | None = None  # within which at least the direction is right
    reading: str = ""  # chosen where the paper is ambiguous or its digits are lost
    because: str = ""  # shown where it is not reproduced
    others: Mapping[str, Figure] = field(default_factory=dict)  # other ways to read it
    pooled: bool = False
    quick: Band | None = None  # instead of `band` where runs are short
    form: str = ".3g"  # how numbers are shown

    def judge(self, measured: Measured, quick: bool = False) -> Judgement:
        """The verdict, and what other readings give."""
        band = self.quick if quick and self.quick is not None else self.band
        ours = self._read("", self.ours, measured)
        others = [self._read(name, figure, measured) for name, figure in self.others.items()]
        if not ours.off(band):
            verdict = Verdict.REPRODUCED
        elif self.direction is not None and not ours.off(self.direction):
            verdict = Verdict.DIRECTION
        else:
            verdict = Verdict.NOT
        return Judgement(self, ours, verdict, band, tuple(sorted(others, key=lambda other: other.off(band))))

    def _read(self, name: str, figure: Figure, measured: Measured) -> Reading:
        of_seeds = [measured] if self.pooled else measured.by_seed()
        found = np.array([float(figure(of_seed)) for of_seed in of_seeds])
        return Reading(name, float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else None)
