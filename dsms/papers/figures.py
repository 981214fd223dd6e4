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
    from matplotlib.figure import Figure

COLOURS = ("#33415c", "#d1495b", "#2a9d8f", "#e09f3e", "#7b5ea7", "#6c8f3c", "#3f88c5", "#8d99ae")
MARKS = "osD^vPX*"
MOST_MARKED = 30  # points of a line that are each shown
SAME = 0.004  # of the height: lines no farther apart are seen as one
DASHES = (0, (4, 4))
LEGEND_WIDTH, MARK_WIDTH = 100, 6  # letters that a row of a legend has room for, and what a line's mark takes of it


def draw(plot: Plot, measured: Measured, file: Path) -> None:
    """One figure with the paper's axes."""
    check(file)
    save(drawn(plot, measured), file)


def drawn(plot: Plot, measured: Measured) -> Figure:
    """The same, not yet in a file."""
    lines = plot.lines(measured)
    columns = _columns([line.label for line in lines])
    rows = -(-len(lines) // columns) if len(lines) > 1 else 0
    figure = new_figure(6.4, 3.8 + 0.19 * rows)
    axes = figure.add_subplot()
    if plot.bars:
        _bars(axes, lines)
    else:
        for place, line in enumerate(lines):
            _line(axes, line, place, any(_as_one(line, other, lines) for other in lines[:place]))
    if plot.ticks:
        axes.set_xticks(range(len(plot.ticks)), plot.ticks)
    if all(y >= 0 for line in lines for y in line.ys):
        axes.set_ylim(bottom=0)
    axes.set_xlabel(plot.x, color=INK)
    axes.set_ylabel(plot.y, color=INK)
    axes.set_title(plot.title, fontsize=10, color=INK, wrap=True)
    if rows:  # below, where it covers nothing
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=columns)
    tidy(axes)
    return figure


def _columns(labels: Sequence[str]) -> int:
    """So many labels as go into one row."""
    wide = max(map(len, labels), default=0) + MARK_WIDTH
    return max(1, min(len(labels), LEGEND_WIDTH // wide))


def _as_one(line: Line, other: Line, lines: Sequence[Line]) -> bool:
    """Whether a line would hide another, were it not broken."""
    if list(line.xs) != list(other.xs):
        return False
    height = np.ptp([y for each in lines for y in each.ys]) or 1.0
    return bool(np.mean(np.abs(np.subtract(line.ys, other.ys))) <= SAME * height)


def _line(axes: Axes, line: Line, place: int, broken: bool) -> None:
    colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
    ys = np.array(line.ys, dtype=float)
    axes.plot(
        line.xs, ys, color=colour, linewidth=1.4, label=line.label, markersize=4.5,
        linestyle=DASHES if broken else "-",
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
