"""The paper's figures: the size of all queues over time, a line for each policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsms.papers.chain.data import REAL, SYNTHETIC
from dsms.papers.chain.runs import LABELS
from dsms.papers.experiment import Line, Plot
from dsms.papers.measured import Measured


def queues(name: str, title: str, **at: Any) -> tuple[Plot, Plot]:
    """Two figures, as in the paper: synthetic data, and real data or what stands in for it."""
    x, y = "time", "queue size (tuples)"
    return (
        Plot(f"{name}-synthetic", f"{title}: synthetic data", x, y, sizes(SYNTHETIC, **at)),
        Plot(f"{name}-real", f"{title}: real data (or on/off sources, where called a stand-in)", x, y, _real(**at)),
    )


def sizes(data: str, note: str = "", **at: Any) -> Callable[[Measured], list[Line]]:
    """What was held over time under each policy, of the first seed."""

    def lines(measured: Measured) -> list[Line]:
        found = measured.where(data=data, **at)
        return [
            Line(label + note, found.series("at", policy=policy), found.series("held", policy=policy))
            for policy, label in LABELS.items()
            if found.where(policy=policy).rows
        ]

    return lines


def _real(**at: Any) -> Callable[[Measured], list[Line]]:
    def lines(measured: Measured) -> list[Line]:
        (data,) = set(measured.values("data")) & set(REAL)
        return sizes(data, f" ({REAL[data]})", **at)(measured)

    return lines
