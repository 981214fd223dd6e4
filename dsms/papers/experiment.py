"""An experiment of a paper: the points of its sweep, the function that measures one, its plots and its claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dsms.papers.claim import Claim
from dsms.papers.measurements import Measurements

T = TypeVar("T")
Point = Mapping[str, Any]  # parameters of one run, `seed` among them: plain data, which identifies the run on resume


@dataclass(frozen=True)
class Scale:
    """The size of a reproduction: the papers' run lengths or short ones, and the number of seeds."""

    quick: bool = False
    seeds: int = 1
    traces: tuple[str, ...] = ()  # packet traces of the Internet Traffic Archive, if the user has any

    def of(self, full: T, quick: T) -> T:
        """The first value in a full reproduction, the second in a quick one."""
        return quick if self.quick else full

    def numbers(self) -> range:
        """The seeds: 1, 2, …"""
        return range(1, self.seeds + 1)


@dataclass(frozen=True)
class PlotLine:
    """One line of a plot; `spread` is the standard deviation over seeds at each x."""

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    spread: Sequence[float] = ()
    steps: bool = False  # draw a step function: each y holds until the next x


@dataclass(frozen=True)
class Plot:
    """One figure of the paper: its title, its axes, and the function that makes its lines."""

    name: str  # as in "figure-12"
    title: str
    x: str
    y: str
    lines: Callable[[Measurements], Sequence[PlotLine]]
    bars: bool = False  # draw bars: each line gives one bar at each of its xs
    ticks: Sequence[str] = ()  # labels of x = 0, 1, …


@dataclass(frozen=True)
class Experiment:
    """A sweep of runs, and the plots and claims computed from it.

    `measure` is a module-level function, so that it can be pickled for another process.
    """

    name: str  # as in "two-operators"
    title: str
    setup: str  # sentences: what is run, and which values we chose where the paper's are lost
    points: Callable[[Scale], Sequence[Point]]
    measure: Callable[[Point], dict[str, Any]]
    plots: tuple[Plot, ...] = ()
    claims: tuple[Claim, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names that `dsms reproduce` accepts for it: its own and those of its plots."""
        return (self.name, *(plot.name for plot in self.plots))


@dataclass(frozen=True)
class Paper:
    """One paper and its experiments."""

    name: str
    citation: str
    experiments: tuple[Experiment, ...]
    notes: str = ""


def lines_over(
    figure: str, parameter: str, by: str, labels: Mapping[Any, str]
) -> Callable[[Measurements], list[PlotLine]]:
    """Make a plot's line function: one line for each value of `by`, the figure over the parameter."""

    def lines(measured: Measurements) -> list[PlotLine]:
        return [
            spread_line(label, measured.where(**{by: value}), figure, parameter)
            for value, label in labels.items()
            if measured.where(**{by: value}).rows
        ]

    return lines


def spread_line(label: str, measured: Measurements, figure: str, parameter: str) -> PlotLine:
    """One line: the figure's mean at each value of the parameter, and its standard deviation over seeds."""
    xs, ys = measured.line(figure, parameter)
    seeds = measured.by_seed()
    if len(seeds) < 2:
        return PlotLine(label, xs, ys)
    ys_by_seed = np.array([seed.line(figure, parameter)[1] for seed in seeds])
    return PlotLine(label, xs, ys, ys_by_seed.std(axis=0, ddof=1).tolist())
