"""Lays out a deployment's status to fill a terminal screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from actors.control.status_tables import (
    StatusTable,
    build_domains_table,
    build_operators_table,
    build_phases_table,
    build_queries_table,
    describe_uptime,
    list_failures,
    list_problems,
)
from dsms.live.monitor.status import DeploymentStatus

STATES = {"running": "green", "paused": "yellow", "failed": "bold red"}
TABLE_FRAME_LINES = 2  # of a table besides its rows: a blank line and the header
COLUMN_GAP_CHARS = 2  # between columns
MIN_TEXT_CHARS = 8  # the least to which a text is cut


def render_status(status: DeploymentStatus, height: int) -> RenderableType:
    """The status in at most `height` lines; a table that is cut shows how many rows it has."""
    problems = [_failure(text) for text in (*list_failures(status), *list_problems(status))]
    lines = [_header(status), *problems][: max(height, 1)]
    builders = (build_domains_table, build_queries_table, build_operators_table, build_phases_table)
    shown = [table for build in builders if (table := build(status.domains)).rows]
    room = height - len(lines)
    while shown and room < len(shown) * (TABLE_FRAME_LINES + 1):
        shown.pop()
    rows = fit_rows([len(table.rows) for table in shown], room - len(shown) * TABLE_FRAME_LINES)
    return Group(
        *lines, *(part for table, most in zip(shown, rows, strict=True) for part in ("", TableView(table, most)))
    )


def fit_rows(needed: Sequence[int], room: int) -> list[int]:
    """Divide `room` lines fairly: no table gets more than it needs, and none less than another unless it needs less."""
    granted = [0] * len(needed)
    open_places = [place for place, rows in enumerate(needed) if rows]
    while room > 0 and open_places:
        each = max(room // len(open_places), 1)
        for place in open_places[:room]:
            more = min(each, needed[place] - granted[place])
            granted[place] += more
            room -= more
        open_places = [place for place in open_places if granted[place] < needed[place]]
    return granted


def _header(status: DeploymentStatus) -> Text:
    addresses = ", ".join(gateway.address for gateway in status.gateways if gateway.address)
    header = Text(no_wrap=True, overflow="ellipsis")
    header.append(status.name, "bold")
    return header.append(f"  up {describe_uptime(status)}" + (f"  rows to {addresses}" if addresses else ""))


def _failure(text: str) -> Text:
    return Text(text.splitlines()[0], STATES["failed"], no_wrap=True, overflow="ellipsis")


class TableView:
    """A table cut to its first rows and, when drawn, to the columns that fit from the left."""

    def __init__(self, table: StatusTable, most: int) -> None:
        self._rows = table.rows[:most]
        left_out = f" ({most} of {len(table.rows)})" if most < len(table.rows) else ""
        self._titles = [table.columns[0] + left_out, *table.columns[1:]]
        self._left = [column in table.left for column in table.columns]
        self._state = table.columns.index("state") if "state" in table.columns else -1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        made = Table(box=None, padding=(0, COLUMN_GAP_CHARS, 0, 0), pad_edge=False, header_style="bold dim")
        widths = self._widths(options.max_width)
        for title, width, left in zip(self._titles, widths, self._left, strict=False):
            justify: Literal["left", "right"] = "left" if left else "right"
            made.add_column(Text(title), justify=justify, no_wrap=True, overflow="ellipsis", width=width)
        for row in self._rows:
            cells = enumerate(row[: len(widths)])
            made.add_row(*(Text(text, STATES.get(text, "") if place == self._state else "") for place, text in cells))
        yield made

    def _widths(self, room: int) -> list[int]:
        """The widths of the columns that fit; text in the last may be cut."""
        widths: list[int] = []
        for place, title in enumerate(self._titles):
            width = max(cell_len(text) for text in (title, *(row[place] for row in self._rows)))
            width = width if place else min(width, max(room // 3, MIN_TEXT_CHARS))
            if width > room:
                return [*widths, room] if self._left[place] and room >= MIN_TEXT_CHARS else widths
            widths.append(width)
            room -= width + COLUMN_GAP_CHARS
        return widths
