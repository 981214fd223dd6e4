"""Draws the table of a benchmark: what was measured, beside which peer, and whether the goal is met."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

VERDICTS = {True: "ok", False: "[bold]short[/]", None: ""}


class BenchmarkRow(NamedTuple):
    """A row of the table."""

    what: str
    ours: str
    peer: str
    ratio: float
    goal: str = "–"
    met: bool | None = None  # None: there is no goal


def table(sections: Iterable[Iterable[BenchmarkRow]]) -> Table:
    drawn = Table(box=SIMPLE_HEAD, title="ours and its peer by turns in one run: medians ± half the range")
    for column in ("what", "ours", "peer/limit", "ratio", "goal", ""):
        drawn.add_column(column, justify="left" if column in ("what", "goal", "") else "right", no_wrap=True)
    for section in sections:
        for row in section:
            drawn.add_row(escape(row.what), row.ours, row.peer, f"{row.ratio:.2f}", row.goal, VERDICTS[row.met])
        drawn.add_section()
    return drawn
