"""The plots of the Chain paper: the size of all queues over time, one line per policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsms.papers.chain.data import REAL, SYNTHETIC
from dsms.papers.chain.runs import LABELS
from dsms.papers.experiment import Plot, PlotLine
from dsms.papers.measurements import Measurements


def queues(name: str, title: str, **at: Any) -> tuple[Plot, Plot]:
    """Two plots, as in the paper: synthetic data, and real data or its stand-in."""
    x, y = "time", "queue size (tuples)"
    return (
        Plot(f"{name}-synthetic", f"{title}: synthetic data", x, y, sizes(SYNTHETIC, **at)),
        Plot(f"{name}-real", f"{title}: real data (or on/off sources, if labelled stand-in)", x, y, _real(**at)),
    )


def sizes(data: str, note: str = "", **at: Any) -> Callable[[Measurements], list[PlotLine]]:
    """The queue size over time under each policy, of the first seed."""

    def lines(measured: Measurements) -> list[PlotLine]:
        runs = measured.where(data=data, **at)
        return [
            PlotLine(label + note, runs.series("at", policy=policy), runs.series("held", policy=policy))
            for policy, label in LABELS.items()
            if runs.where(policy=policy).rows
        ]

    return lines


def _real(**at: Any) -> Callable[[Measurements], list[PlotLine]]:
    def lines(measured: Measurements) -> list[PlotLine]:
        (data,) = set(measured.values("data")) & set(REAL)
        return sizes(data, f" ({REAL[data]})", **at)(measured)

    return lines
