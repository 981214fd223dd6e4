"""The papers' figures, drawn; matplotlib is needed here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dsms.advice.figures import INK, check, new_figure, save, tidy
from dsms.papers.experiment import Line, Plot
from dsms.papers.measured import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#33415c", "#d1495b", "#2a9d8f", "#e09f3e", "#7b5ea7", "#6c8f3c", "#3f88c5", "#8d99ae")
MARKS = "osD^vPX*"
MOST_MARKED = 30  # points of a line that are each shown


def draw(plot: Plot, measured: Measured, file: Path) -> None:
    """One figure with the paper's axes."""
    check(file)
    figure = new_figure(6.4, 4.0)
    axes = figure.add_subplot()
    lines = plot.lines(measured)
    if plot.bars:
        _bars(axes, lines)
    else:
        for place, line in enumerate(lines):
            _line(axes, line, place)
    if plot.ticks:
        axes.set_xticks(range(len(plot.ticks)), plot.ticks)
    if plot.log:
        axes.set_yscale("log")
    elif all(y >= 0 for line in lines for y in line.ys):
        axes.set_ylim(bottom=0)
    axes.set_xlabel(plot.x, color=INK)
    axes.set_ylabel(plot.y, color=INK)
    axes.set_title(plot.title, fontsize=10, color=INK, wrap=True)
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=8)
    tidy(axes)
    save(figure, file)


def _line(axes: Axes, line: Line, place: int) -> None:
    colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
    ys = np.array(line.ys, dtype=float)
    axes.plot(
        line.xs, ys, color=colour, linewidth=1.4, label=line.label, markersize=4.5,
        marker=mark if len(ys) <= MOST_MARKED else None, drawstyle="steps-post" if line.steps else "default",
    )  # fmt: skip
    if len(line.spread):
        spread = np.array(line.spread, dtype=float)
        axes.fill_between(line.xs, ys - spread, ys + spread, color=colour, alpha=0.15, linewidth=0)


def _bars(axes: Axes, lines: Sequence[Line]) -> None:
    width = 0.8 / len(lines) if lines else 0.8
    for place, line in enumerate(lines):
        shift = (place - (len(lines) - 1) / 2) * width
        axes.bar(
            np.array(line.xs, dtype=float) + shift, line.ys, width, color=COLOURS[place % len(COLOURS)],
            label=line.label, yerr=line.spread if len(line.spread) else None, error_kw={"elinewidth": 0.8},
        )  # fmt: skip
