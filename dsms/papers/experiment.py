"""An experiment: what is swept, how one point of it is measured, what is drawn of it, and what was claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dsms.papers.claim import Claim
from dsms.papers.measured import Measured

T = TypeVar("T")
Point = Mapping[str, Any]  # parameters of one run, among them `seed`: plain data, by which it is known when resumed


@dataclass(frozen=True)
class Scale:
    """How large: the papers' sizes, or short runs for a quick look."""

    quick: bool = False
    seeds: int = 1
    traces: tuple[str, ...] = ()  # files of the Internet Traffic Archive, where the user has them

    def of(self, full: T, quick: T) -> T:
        return quick if self.quick else full

    def numbers(self) -> range:
        """The seeds themselves."""
        return range(1, self.seeds + 1)


@dataclass(frozen=True)
class Line:
    """One line of a figure; `spread` is the deviation over seeds."""

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    spread: Sequence[float] = ()
    steps: bool = False  # held until the next


@dataclass(frozen=True)
class Plot:
    """One figure of the paper, with its axes."""

    name: str  # as in "figure-12"
    title: str
    x: str
    y: str
    lines: Callable[[Measured], Sequence[Line]]
    bars: bool = False  # lines are groups of bars, xs their places
    ticks: Sequence[str] = ()  # names of places on the x axis


@dataclass(frozen=True)
class Experiment:
    """`measure` is a function of a module, so that another process can be given it."""

    name: str  # as in "two-operators"
    title: str
    setup: str  # in sentences: what is run, and which values were chosen where the paper's are lost
    points: Callable[[Scale], Sequence[Point]]
    measure: Callable[[Point], dict[str, Any]]
    plots: tuple[Plot, ...] = ()
    claims: tuple[Claim, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """By which it can be asked for: its own and those of its figures."""
        return (self.name, *(plot.name for plot in self.plots))


@dataclass(frozen=True)
class Paper:
    """One paper and what of it can be run."""

    name: str
    citation: str
    experiments: tuple[Experiment, ...]
    notes: str = ""


def over(figure: str, parameter: str, by: str, labels: Mapping[Any, str]) -> Callable[[Measured], list[Line]]:
    """A line for each value of `by`: a figure over a parameter, its mean and deviation over seeds."""

    def lines(measured: Measured) -> list[Line]:
        return [
            spread_line(label, measured.where(**{by: value}), figure, parameter)
            for value, label in labels.items()
            if measured.where(**{by: value}).rows
        ]

    return lines


def spread_line(label: str, measured: Measured, figure: str, parameter: str) -> Line:
    """A figure's mean over a parameter, and its deviation over seeds."""
    xs, ys = measured.line(figure, parameter)
    seeds = measured.by_seed()
    if len(seeds) < 2:
        return Line(label, xs, ys)
    each = np.array([seed.line(figure, parameter)[1] for seed in seeds])
    return Line(label, xs, ys, each.std(axis=0, ddof=1).tolist())
