"""The running system on a screenful: who decides, what waits where, what comes out; a function of its status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from actors.cli import grids
from actors.cli.grids import Grid

STATES = {"running": "green", "paused": "yellow", "failed": "bold red"}
EDGE = 2  # lines of a part beside its rows: a blank one, and the columns' names
GAP = 2  # between columns
SHORT = 8  # a text cut to less says nothing


def view(status: dict[str, Any], height: int) -> RenderableType:
    """What there is to see in so many lines; where rows are left out, their number is said."""
    domains = status["domains"]
    lines = [_header(status), *(_failure(said) for said in (*grids.failures(status), *grids.troubles(status)))][
        : max(height, 1)
    ]
    shown = [grids.domains(domains), grids.queries(domains), grids.stations(domains), grids.phases(domains)]
    shown = [grid for grid in shown if grid.rows]
    room = height - len(lines)
    while shown and room < len(shown) * (EDGE + 1):
        shown.pop()
    rows = fitted([len(grid.rows) for grid in shown], room - len(shown) * EDGE)
    return Group(*lines, *(part for grid, most in zip(shown, rows, strict=True) for part in ("", Part(grid, most))))


def fitted(wanted: Sequence[int], room: int) -> list[int]:
    """Share out a room: nobody gets more than is wanted, and none less than another unless that is all it wants."""
    given = [0] * len(wanted)
    open_places = [place for place, rows in enumerate(wanted) if rows]
    while room > 0 and open_places:
        each = max(room // len(open_places), 1)
        for place in open_places[:room]:
            more = min(each, wanted[place] - given[place])
            given[place] += more
            room -= more
        open_places = [place for place in open_places if given[place] < wanted[place]]
    return given


def _header(status: dict[str, Any]) -> Text:
    doors = ", ".join(str(gateway["address"]) for gateway in status["gateways"] if gateway["address"])
    header = Text(no_wrap=True, overflow="ellipsis")
    header.append(str(status["name"]), "bold")
    return header.append(f"  up {grids.uptime(status)}" + (f"  rows to {doors}" if doors else ""))


def _failure(said: str) -> Text:
    return Text(said.splitlines()[0], STATES["failed"], no_wrap=True, overflow="ellipsis")


class Part:
    """A grid cut to its rows and, when it is drawn, to the columns that fit: the ones on the left matter most."""

    def __init__(self, grid: Grid, most: int) -> None:
        self._rows = grid.rows[:most]
        left_out = f" ({most} of {len(grid.rows)})" if most < len(grid.rows) else ""
        self._titles = [grid.columns[0] + left_out, *grid.columns[1:]]
        self._left = [column in grid.left for column in grid.columns]
        self._state = grid.columns.index("state") if "state" in grid.columns else -1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        made = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold dim")
        widths = self._widths(options.max_width)
        for title, width, left in zip(self._titles, widths, self._left, strict=False):
            justify: Literal["left", "right"] = "left" if left else "right"
            made.add_column(Text(title), justify=justify, no_wrap=True, overflow="ellipsis", width=width)
        for row in self._rows:
            cells = enumerate(row[: len(widths)])
            made.add_row(*(Text(text, STATES.get(text, "") if place == self._state else "") for place, text in cells))
        yield made

    def _widths(self, room: int) -> list[int]:
        """Of the columns that fit; a text in the last of them may be cut short."""
        found: list[int] = []
        for place, title in enumerate(self._titles):
            width = max(cell_len(text) for text in (title, *(row[place] for row in self._rows)))
            width = width if place else min(width, max(room // 3, SHORT))
            if width > room:
                return [*found, room] if self._left[place] and room >= SHORT else found
            found.append(width)
            room -= width + GAP
        return found
