"""Draws the papers' figures with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dsms.advice.figures import INK, check_image_file, hide_spines, new_figure, save_figure
from dsms.papers.experiment import Plot, PlotLine
from dsms.papers.measurements import Measurements

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#33415c", "#d1495b", "#2a9d8f", "#e09f3e", "#7b5ea7", "#6c8f3c", "#3f88c5", "#8d99ae")
MARKS = "osD^vPX*"
MAX_MARKED_POINTS = 30  # a line of more points has no marks
OVERLAP_TOLERANCE = 0.004  # share of the plot's height: closer lines would hide each other
DASHES = (0, (4, 4))
LEGEND_WIDTH, MARK_WIDTH = 100, 6  # in characters: a row of the legend, and the mark before a label


def save_plot(plot: Plot, measured: Measurements, file: Path) -> None:
    """Draw one plot and save it to a file."""
    check_image_file(file)
    save_figure(draw_plot(plot, measured), file)


def draw_plot(plot: Plot, measured: Measurements) -> Figure:
    """Draw one plot with the paper's axes, the legend below it."""
    lines = plot.lines(measured)
    columns = _legend_columns([line.label for line in lines])
    rows = -(-len(lines) // columns) if len(lines) > 1 else 0
    figure = new_figure(6.4, 3.8 + 0.19 * rows)
    axes = figure.add_subplot()
    if plot.bars:
        _draw_bars(axes, lines)
    else:
        for place, line in enumerate(lines):
            _draw_line(axes, line, place, any(_is_overlapping(line, other, lines) for other in lines[:place]))
    if plot.ticks:
        axes.set_xticks(range(len(plot.ticks)), plot.ticks)
    if all(y >= 0 for line in lines for y in line.ys):
        axes.set_ylim(bottom=0)
    axes.set_xlabel(plot.x, color=INK)
    axes.set_ylabel(plot.y, color=INK)
    axes.set_title(plot.title, fontsize=10, color=INK, wrap=True)
    if rows:  # below the plot, where it covers no line
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=columns)
    hide_spines(axes)
    return figure


def _legend_columns(labels: Sequence[str]) -> int:
    """How many labels fit into one row of the legend."""
    label_width = max(map(len, labels), default=0) + MARK_WIDTH
    return max(1, min(len(labels), LEGEND_WIDTH // label_width))


def _is_overlapping(line: PlotLine, other: PlotLine, lines: Sequence[PlotLine]) -> bool:
    """Whether a solid line would hide the other."""
    if list(line.xs) != list(other.xs):
        return False
    height = np.ptp([y for each in lines for y in each.ys]) or 1.0
    return bool(np.mean(np.abs(np.subtract(line.ys, other.ys))) <= OVERLAP_TOLERANCE * height)


def _draw_line(axes: Axes, line: PlotLine, place: int, dashed: bool) -> None:
    colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
    ys = np.array(line.ys, dtype=float)
    axes.plot(
        line.xs, ys, color=colour, linewidth=1.4, label=line.label, markersize=4.5,
        linestyle=DASHES if dashed else "-",
        marker=mark if len(ys) <= MAX_MARKED_POINTS else None, drawstyle="steps-post" if line.steps else "default",
    )  # fmt: skip
    if len(line.spread):
        spread = np.array(line.spread, dtype=float)
        axes.fill_between(line.xs, ys - spread, ys + spread, color=colour, alpha=0.15, linewidth=0)


def _draw_bars(axes: Axes, lines: Sequence[PlotLine]) -> None:
    width = 0.8 / len(lines) if lines else 0.8
    for place, line in enumerate(lines):
        shift = (place - (len(lines) - 1) / 2) * width
        axes.bar(
            np.array(line.xs, dtype=float) + shift, line.ys, width, color=COLOURS[place % len(COLOURS)],
            label=line.label, yerr=line.spread if len(line.spread) else None, error_kw={"elinewidth": 0.8},
        )  # fmt: skip
