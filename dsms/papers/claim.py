"""A paper's claim as data: the printed number, the function that computes ours, and the band that decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from dsms.papers.measurements import Measurements

Band = tuple[float, float]  # lowest and highest value, both inside
Figure = Callable[[Measurements], float]  # computes a claim's number from the measured runs


class Verdict(StrEnum):
    """How our number compares with the paper's."""

    REPRODUCED = "reproduced"
    DIRECTION = "direction only"
    NOT = "not reproduced"


def band_near(value: float, tolerance: float) -> Band:
    """The values at most `tolerance` away from `value`."""
    return value - tolerance, value + tolerance


def band_from(value: float) -> Band:
    """The values of at least `value`."""
    return value, math.inf


def band_up_to(value: float) -> Band:
    """The values of at most `value`."""
    return -math.inf, value


def band_above(value: float) -> Band:
    """The values strictly greater than `value`."""
    return math.nextafter(value, math.inf), math.inf


def band_below(value: float) -> Band:
    """The values strictly less than `value`."""
    return -math.inf, math.nextafter(value, -math.inf)


@dataclass(frozen=True)
class ClaimValue:
    """The mean of one number over the seeds, and its standard deviation."""

    name: str  # of the reading of the paper; "" for the one we chose
    mean: float
    spread: float | None  # standard deviation over seeds; None for a single seed

    def off(self, band: Band) -> float:
        """The distance from the band: 0 inside it, infinite for NaN."""
        return math.inf if math.isnan(self.mean) else max(band[0] - self.mean, self.mean - band[1], 0.0)


@dataclass(frozen=True)
class Judgement:
    """A claim, our number for it, and the verdict."""

    claim: Claim
    ours: ClaimValue
    verdict: Verdict
    band: Band  # the one that decided: shorter runs may have a wider one
    others: tuple[ClaimValue, ...]  # our number in other readings of the paper, the nearest to the band first

    @property
    def nearest(self) -> ClaimValue | None:
        """The other reading whose number is nearest to the band."""
        return self.others[0] if self.others else None

    @property
    def why(self) -> str:
        """The reading we chose, and for a claim that is not reproduced the reason."""
        sentences = [self.claim.reading]
        if self.verdict is not Verdict.REPRODUCED:
            sentences.append(self.claim.because)
        return " ".join(filter(None, sentences))


@dataclass(frozen=True)
class Claim:
    """A statement of a paper that can be checked: `judge` compares our number with the paper's."""

    name: str  # short, unique in its experiment
    text: str
    paper: str  # the paper's number, as printed
    ours: Figure  # computes our number: once per seed, or once over all seeds if `pooled`
    band: Band  # values that count as reproduced
    direction: Band | None = None  # values that have at least the right direction
    reading: str = ""  # the reading chosen where the paper is ambiguous or its digits are lost
    because: str = ""  # the reason shown if the claim is not reproduced
    others: Mapping[str, Figure] = field(default_factory=dict)  # other readings of the paper, by their description
    pooled: bool = False
    quick: Band | None = None  # replaces `band` in short runs
    form: str = ".3g"  # format of the numbers

    def judge(self, measured: Measurements, quick: bool = False) -> Judgement:
        """Compute our number and those of the other readings, and decide the verdict."""
        band = self.quick if quick and self.quick is not None else self.band
        ours = self._compute("", self.ours, measured)
        others = [self._compute(name, figure, measured) for name, figure in self.others.items()]
        if not ours.off(band):
            verdict = Verdict.REPRODUCED
        elif self.direction is not None and not ours.off(self.direction):
            verdict = Verdict.DIRECTION
        else:
            verdict = Verdict.NOT
        return Judgement(self, ours, verdict, band, tuple(sorted(others, key=lambda other: other.off(band))))

    def _compute(self, name: str, figure: Figure, measured: Measurements) -> ClaimValue:
        groups = [measured] if self.pooled else measured.by_seed()
        numbers = np.array([float(figure(group)) for group in groups])
        return ClaimValue(name, float(numbers.mean()), float(numbers.std(ddof=1)) if len(numbers) > 1 else None)
