"""Prints tables and formats numbers, times and shares for the console; imports rich when a table is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def make_table(title: str, columns: Sequence[str], left: Iterable[str] = (), caption: str = "") -> Table:
    """Make an empty table; the columns in `left` are left-aligned, all others right-aligned."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    made = Table(title=escape(title), box=SIMPLE_HEAD, caption=caption or None)
    texts = set(left)
    for column in columns:
        made.add_column(escape(column), justify="left" if column in texts else "right", no_wrap=True)
    return made


def show(made: Table) -> None:
    """Print a table; a narrow window wraps whole lines instead of cutting columns."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    console.width = max(console.width, Measurement.get(console, console.options.update(width=1000), made).maximum)
    with console.capture() as written:
        console.print(made)
    print(written.get(), end="")


def format_number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def format_seconds(time: float | None) -> str:
    """Format a time in the unit that suits it."""
    if time is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if time >= size:
            return f"{time / size:.3g} {unit}"
    return f"{time / 1e-9:.3g} ns" if time else "0 s"


def format_percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def list_input_names(inputs: Iterable[Mapping[str, object]]) -> list[str]:
    """The names of the inputs of priorities, without the slope, which is the priority itself."""
    return [name for name in dict.fromkeys(name for each in inputs for name in each) if name != "slope"]


def format_cell(value: float | str | None) -> str:
    from rich.markup import escape

    return escape(value) if isinstance(value, str) else format_number(value)
