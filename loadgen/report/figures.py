"""Draws recorded runs and comparisons of policies with matplotlib, as SVG for the report page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loadgen.report.comparison import GAP_MEASURE, MEASURES
from loadgen.report.flow import Burstiness
from loadgen.report.periods import RecordedRun
from loadgen.report.tally import Figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK_COLOUR, MUTED_COLOUR = "#33415c", "#8d99ae"
PALETTE = ("#3a6ea5", "#d1495b", "#3f8f5b", "#c98a1b", "#7a5aa8", "#2a9d9d", "#b0562f", "#5d6b7a", "#c25a9b", "#7d8f2e")
TITLES = {
    "memory_mean": "memory: mean tuples held",
    GAP_MEASURE: "gap to the least possible",
    "latency_mean": "latency: mean ({unit})",
    "staleness": "stale: share of time",
    "output_rate": "results a {one}",
}
WIDTH_INCHES = 9.4
REM_PER_INCH = 7  # size of a picture in the page
PHASE_LABEL_SHARE_MIN = 0.07  # a shorter phase, as a share of the run, has no label


class Colours:
    """A colour for each policy, the same in all pictures."""

    def __init__(self, policies: Sequence[str]) -> None:
        self._of = {policy: PALETTE[place % len(PALETTE)] for place, policy in enumerate(policies)}

    def __getitem__(self, policy: str) -> str:
        return self._of.get(policy, MUTED_COLOUR)


def plot_over_time(run: RecordedRun, windows: Sequence[Figures], colours: Colours, unit: str) -> str:
    """Plot memory, latency, staleness and rates of one run, with its phases as bands."""
    bound = any(row["bound_mean"] is not None for row in windows)
    figure = _figure(WIDTH_INCHES, 7.8 if bound else 6.6)
    panels = figure.subplots(4 + bound, 1, sharex=True)
    edges = np.array([windows[0]["since"], *(row["until"] for row in windows)]) - run.since
    busy = [place for place, row in enumerate(windows) if row["arrived"] or row["memory_max"]]
    first = float(edges[max(min(busy, default=0) - 1, 0)])  # leave out the time before the first arrival
    memory, *others, latency, stale, rates = panels
    _plot_steps(memory, edges, windows, "memory_max", MUTED_COLOUR, "most", width=0.8)
    _plot_steps(memory, edges, windows, "memory_mean", INK_COLOUR, "mean")
    for gap in others:
        _plot_steps(memory, edges, windows, "bound_mean", PALETTE[2], "least possible")
        _plot_steps(gap, edges, windows, GAP_MEASURE, PALETTE[1], "")
    for name, colour, label in (
        ("p99", MUTED_COLOUR, "p99"),
        ("p90", PALETTE[3], "p90"),
        ("p50", INK_COLOUR, "median"),
    ):
        _plot_steps(latency, edges, windows, f"latency_{name}", colour, label)
    _plot_steps(stale, edges, windows, "staleness", INK_COLOUR, "", times=100)
    spans = np.diff(edges)
    arrival_rate = np.array([row["arrived"] for row in windows]) / np.where(spans > 0, spans, 1)
    rates.stairs(arrival_rate, edges, color=MUTED_COLOUR, linewidth=0.9, label="arrivals")
    _plot_steps(rates, edges, windows, "output_rate", INK_COLOUR, "results")
    labels = ("tuples held", *(["gap (tuples)"] * bound), f"latency ({unit})", "stale (%)", f"rows a {_one(unit)}")
    for axes, label in zip(panels, labels, strict=True):
        _plot_bands(axes, run, colours, first, named=axes is memory)
        axes.set_ylabel(label, fontsize=8, color=INK_COLOUR)
        _tidy(axes)
        if axes.get_legend_handles_labels()[0]:
            beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}  # above are the policies' names
            axes.legend(frameon=False, fontsize=7, **beside)
    rates.set_xlabel(f"time since the beginning ({unit})", fontsize=8, color=INK_COLOUR)
    rates.set_xlim(first, run.duration or 1)
    return _svg(figure, f"{run.label}: memory, latency, staleness and rates over time")


def plot_runs(runs: Sequence[RecordedRun], windows: dict[str, list[Figures]], colours: Colours, unit: str) -> str:
    """Plot runs with the same arrivals over each other."""
    figure = _figure(WIDTH_INCHES, 5.2)
    panels = figure.subplots(3, 1, sharex=True)
    latency = f"latency ({unit})"
    measures = (("memory_mean", "tuples held", 1), ("latency_mean", latency, 1), ("staleness", "stale (%)", 100))
    for axes, (name, label, times) in zip(panels, measures, strict=True):
        for run in runs:
            rows, policy = windows[run.label], run.phases[0].policy
            edges = np.array([rows[0]["since"], *(row["until"] for row in rows)]) - run.since
            _plot_steps(axes, edges, rows, name, colours[policy], policy, times=times)
        axes.set_ylabel(label, fontsize=8, color=INK_COLOUR)
        _tidy(axes)
    handles, labels = panels[0].get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), frameon=False, fontsize=8, loc="outside upper center", ncols=6)
    panels[-1].set_xlabel(f"time since the beginning ({unit})", fontsize=8, color=INK_COLOUR)
    panels[-1].set_xlim(0, max(run.duration for run in runs) or 1)
    return _svg(figure, "runs with the same arrivals over time")


def plot_intervals(rows: Sequence[Figures], colours: Colours, unit: str) -> str:
    """Plot the mean of each measure with its confidence interval, by policy."""
    known = any(row[GAP_MEASURE] is not None for row in rows)
    measures = (MEASURES[0], GAP_MEASURE, *MEASURES[1:]) if known else MEASURES
    figure = _figure(WIDTH_INCHES, 1.1 + 0.28 * len(rows))
    panels = figure.subplots(1, len(measures), sharey=True)
    for axes, name in zip(panels, measures, strict=True):
        for place, row in enumerate(rows):
            if row[name] is not None:
                colour, half = colours[row["policy"]], row[f"{name}_half"]
                axes.errorbar(row[name], place, xerr=half, fmt="o", color=colour, markersize=5, capsize=3)
        title = TITLES[name].format(unit=unit, one=_one(unit))
        axes.set_title(title, fontsize=7.5 if known else 8.5, color=INK_COLOUR)
        axes.set_yticks(range(len(rows)), [_short(row["policy"]) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, axes.get_xlim()[1] * 1.06)  # room for marks at the edge
        _tidy(axes, from_zero=False)
    return _svg(figure, "policies compared")


def plot_variance_time(flows: Sequence[tuple[str, str, Burstiness]], unit: str) -> str:
    """Plot the variance of counts against the length of the counting interval; flows are label, colour, burstiness."""
    figure = _figure(WIDTH_INCHES * 0.62, 3.4)
    axes = figure.add_subplot()
    for label, colour, flow in flows:
        positive = {scale: variance for scale, variance in flow.variances.items() if variance > 0}
        if positive:
            scales = np.array(list(positive)) * flow.width
            style = "-o" if label.startswith("arrivals") else "--o"
            axes.plot(scales, list(positive.values()), style, markersize=2.5, linewidth=1, color=colour, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"counted over ({unit})", fontsize=8, color=INK_COLOUR)
    axes.set_ylabel("variance by mean²", fontsize=8, color=INK_COLOUR)
    if flows:
        axes.legend(frameon=False, fontsize=6.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _tidy(axes, from_zero=False)
    return _svg(figure, "variance over scale")


def _plot_steps(
    axes: Axes, edges: NDArray[np.float64], rows: Sequence[Figures], name: str, colour: str, label: str,
    times: float = 1, width: float = 1.2,
) -> None:  # fmt: skip
    values = np.array([np.nan if row[name] is None else row[name] * times for row in rows], dtype=np.float64)
    axes.stairs(values, edges, baseline=None, color=colour, linewidth=width, label=label or None)


def _plot_bands(axes: Axes, run: RecordedRun, colours: Colours, first: float, named: bool) -> None:
    """Draw each phase as a band in its policy's colour, with the policy's name where there is room."""
    for phase in run.phases:
        since, until = max(phase.since - run.since, first), phase.until - run.since
        if until <= since:
            continue
        axes.axvspan(since, until, color=colours[phase.policy], alpha=0.13, linewidth=0, zorder=0)
        if named and until - since > PHASE_LABEL_SHARE_MIN * (run.duration - first):
            where = axes.get_xaxis_transform()
            axes.text(since, 1.02, f" {_short(phase.policy)}", transform=where, fontsize=7, color=INK_COLOUR)


def _tidy(axes: Axes, from_zero: bool = True) -> None:
    if from_zero:
        axes.set_ylim(0, axes.get_ylim()[1] * 1.06)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e8ee", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=7, colors=INK_COLOUR)


def _short(policy: str) -> str:
    return policy if len(policy) <= 26 else f"{policy[:25]}…"


def _one(unit: str) -> str:
    return "second" if unit == "s" else "time unit"


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _svg(figure: Figure, about: str) -> str:
    """The figure as an SVG element for a page; text stays text, and the title describes the picture."""
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({"svg.hashsalt": about, "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Title": about})
    svg = text.getvalue()
    size = f'role="img" style="max-width:{figure.get_figwidth() * REM_PER_INCH:.0f}rem"'  # the page scales it down
    plain = re.sub(r'height="[^"]*"', "", svg[svg.index("<svg ") :], count=1)
    return re.sub(r'width="[^"]*"', size, plain, count=1)
