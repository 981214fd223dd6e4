"""Draws the progress charts of a plan, and the comparison of policies, with matplotlib."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsms.advice.reasons import PathChart
from dsms.advice.recommend import METRICS, Recommendation, Trial
from dsms.errors import DsmsError, existing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")
MAX_CHARTS = 36  # in one picture
INK, ENVELOPE, CHOSEN, QUIET = "#33415c", "#d1495b", "#d1495b", "#8d99ae"


def check_image_file(file: str | Path) -> None:
    """Refuse a picture that cannot be drawn or written, before anything is computed."""
    suffix = Path(file).suffix.lower()
    if suffix not in SUFFIXES:
        raise DsmsError(f"picture {str(file)!r}: unknown suffix {suffix!r}{existing(suffix, SUFFIXES)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise DsmsError(f"picture {str(file)!r}: matplotlib is not installed; install dsms[plot]")
    if not Path(file).resolve().parent.is_dir():
        raise DsmsError(f"picture {str(file)!r} cannot be written: there is no folder {str(Path(file).parent)!r}")


def draw_charts(charts: Sequence[PathChart], file: str | Path, title: str = "") -> None:
    """Draw a panel for every path: bytes left of a tuple over the time spent on it, and the lower envelope."""
    check_image_file(file)
    shown = charts[:MAX_CHARTS]
    wide = min(len(shown), 3)
    high = math.ceil(len(shown) / wide)
    figure = new_figure(4.4 * wide + 0.4, 3.1 * high + 0.7)
    more = f" (the first {MAX_CHARTS} of {len(charts)} paths)" if len(charts) > MAX_CHARTS else ""
    figure.suptitle(f"{title}{more}", fontsize=11, color=INK)
    for place, chart in enumerate(shown):
        _draw_chart(figure.add_subplot(high, wide, place + 1), chart, legend=place == 0)
    save_figure(figure, file)


def draw_comparison(found: Recommendation, file: str | Path) -> None:
    """Draw memory against latency, a mark for each policy; bars are the deviation over seeds."""
    check_image_file(file)
    figure = new_figure(8.2, 5.4)
    axes = figure.add_subplot()
    latency, memory = METRICS["delay"].cost, METRICS["memory"].cost
    marks = [(t, t.over_seeds(memory), t.over_seeds(latency)) for t in found.trials]
    placed: list[tuple[list[Trial], float, float]] = []
    for trial, x, y in marks:
        if x.mean is None or y.mean is None:
            continue
        chosen = trial.policy == found.policy
        colour = CHOSEN if chosen else QUIET if trial.yardstick else INK
        axes.errorbar(
            x.mean, y.mean, xerr=x.deviation, yerr=y.deviation, fmt="none", ecolor=colour, elinewidth=0.8, capsize=2,
            alpha=0.45,
        )  # fmt: skip
        axes.plot(
            x.mean, y.mean, "D" if chosen else "o", markersize=8 if chosen else 6, color=colour,
            mfc="white" if trial.yardstick else colour, zorder=4 if chosen else 3,
        )  # fmt: skip
        group = next((p for p in placed if np.allclose(p[1:], (x.mean, y.mean), rtol=0.01)), None)
        if group is None:
            placed.append(([trial], x.mean, y.mean))
        else:
            group[0].append(trial)
    for values, scale in (([p[1] for p in placed], axes.set_xscale), ([p[2] for p in placed], axes.set_yscale)):
        if values and max(values) > 8 * min(values) > 0:
            scale("log")
    axes.set_xlabel("memory: mean queued tuples", color=INK)
    axes.set_ylabel("latency: mean", color=INK)
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in found.qos.items())
    axes.set_title(f"{found.plan or 'plan'}: {found.policy} for {weights}", fontsize=11, color=INK)
    if not placed:
        axes.text(0.5, 0.5, "no result left: no latency to show", ha="center", transform=axes.transAxes, color=INK)
    if any(trial.yardstick for trial in found.trials):
        axes.plot([], [], "o", mfc="white", color=QUIET, label="knows the future")
        axes.plot([], [], "D", color=CHOSEN, label="recommended")
        axes.legend(frameon=False, fontsize=8, loc="best")
    axes.margins(0.12)
    hide_spines(axes)
    _label(figure, axes, placed, found.policy)
    save_figure(figure, file)


def _draw_chart(axes: Axes, chart: PathChart, legend: bool) -> None:
    times, sizes = [time for time, _ in chart.points], [size for _, size in chart.points]
    axes.plot(times, sizes, drawstyle="steps-post", color=INK, linewidth=1.3, label="what is left of a tuple")
    axes.plot(times, sizes, "o", color=INK, markersize=3.5)
    axes.plot(
        [times[i] for i in chart.envelope], [sizes[i] for i in chart.envelope], "-o", color=ENVELOPE, linewidth=1.6,
        markersize=4.5, label="lower envelope",
    )  # fmt: skip
    span, top = times[-1] or 1.0, max(sizes) or 1.0
    last = -math.inf
    for name, (since, size), (until, _) in zip(chart.path, chart.points[:-1], chart.points[1:], strict=True):
        middle = (since + until) / 2
        if until - since > 0.02 * span and middle - last > 0.05 * span:  # narrower steps have no room for a name
            tall = len(name) * 0.028 * span > until - since
            axes.annotate(
                name, (middle, size), (0, 3), textcoords="offset points", ha="center", va="bottom", fontsize=8,
                color=INK, rotation=90 if tall else 0,
            )  # fmt: skip
            last = middle
    for piece, slope in enumerate(chart.slopes):
        (a, high), (b, low) = (chart.points[chart.envelope[piece + end]] for end in (0, 1))
        if b - a > 0.08 * span:
            text = f"{slope:,.0f}" if abs(slope) >= 1000 else f"{slope:.3g}"
            axes.annotate(
                text, ((a + b) / 2, (high + low) / 2), (-4, -4), textcoords="offset points", ha="right",
                va="top", fontsize=8, color=ENVELOPE,
            )  # fmt: skip
    axes.set_title(_shorten_title(chart.title), fontsize=9, color=INK)
    axes.set_xlabel("time spent", fontsize=8, color=INK)
    axes.set_ylabel("bytes left", fontsize=8, color=INK)
    axes.set_ylim(-0.05 * top, 1.3 * top)
    axes.set_xlim(-0.03 * span, 1.05 * span)
    axes.tick_params(labelsize=7)
    if legend:
        axes.legend(frameon=False, fontsize=7, loc="upper right")
    hide_spines(axes)


def _label(figure: Figure, axes: Axes, placed: Sequence[tuple[list[Trial], float, float]], chosen: str) -> None:
    """Place names beside their marks so that none covers another."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()
    spots = [axes.transData.transform((x, y)) for _, x, y in placed]
    taken = [Bbox.from_extents(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    ways = [(x, y, "left" if x > 0 else "right", "bottom" if y > 0 else "top") for y in (5, -5) for x in (5, -5)]
    ways += [(x, y, "left" if x > 0 else "right", "center") for y in (20, -20, 34, -34, 48, -48) for x in (14, -14)]
    frame = axes.get_window_extent()
    for trials, x, y in placed:
        names = [trial.policy for trial in trials]
        own = chosen in names
        best: tuple[int, Any, Any] | None = None
        for dx, dy, across, along in ways:
            text = axes.annotate(
                _wrap_names(names), (x, y), (dx, dy), textcoords="offset points", ha=across, va=along, fontsize=8,
                color=CHOSEN if own else QUIET if trials[0].yardstick else INK, fontweight="bold" if own else "normal",
                arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.5} if abs(dy) > 5 else None,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}, zorder=2.5,
            )  # fmt: skip
            box = text.get_window_extent()
            covered = sum(box.overlaps(other) for other in taken)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            covered += 2 * (not inside)
            if best is None or covered < best[0]:
                if best is not None:
                    best[1].remove()
                best = (covered, text, box)
            else:
                text.remove()
            if not covered:
                break
        assert best is not None
        taken.append(best[2])


def _wrap_names(names: Sequence[str]) -> str:
    """Join names, three a line."""
    return ",\n".join(", ".join(names[i : i + 3]) for i in range(0, len(names), 3))


def _shorten_title(title: str) -> str:
    return title if len(title) <= 52 else f"{title[:32]} … {title[-17:]}"


def hide_spines(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e8ee", linewidth=0.6)
    axes.set_axisbelow(True)


def new_figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=110)


def save_figure(figure: Figure, file: str | Path) -> None:
    from matplotlib import rc_context

    kind = Path(file).suffix.lower()[1:]
    try:
        with rc_context({"svg.hashsalt": "dsms", "svg.fonttype": "none"}):  # equal pictures have equal bytes
            figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)
    except OSError as error:
        raise DsmsError(f"picture {str(file)!r} cannot be written: {error.strerror}") from None
