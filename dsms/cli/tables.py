"""Tables on the console: whole lines however narrow the window, names as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table


def table(title: str, columns: Sequence[str], left: Iterable[str] = (), caption: str = "") -> Table:
    """An empty table; figures stand on the right, these columns on the left."""
    made = Table(title=escape(title), box=SIMPLE_HEAD, caption=caption or None)
    texts = set(left)
    for column in columns:
        made.add_column(escape(column), justify="left" if column in texts else "right", no_wrap=True)
    return made


def show(made: Table) -> None:
    """Print it; a narrow window wraps whole lines rather than cutting every column."""
    console = Console()
    console.width = max(console.width, Measurement.get(console, console.options.update(width=1000), made).maximum)
    with console.capture() as written:
        console.print(made)
    print(written.get(), end="")


def figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def seconds(time: float | None) -> str:
    """A short time in the unit that suits it."""
    if time is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if time >= size:
            return f"{time / size:.3g} {unit}"
    return f"{time / 1e-9:.3g} ns" if time else "0 s"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def input_names(inputs: Iterable[Mapping[str, object]]) -> list[str]:
    """The columns for what priorities are made of; a slope is the priority itself."""
    return [name for name in dict.fromkeys(name for each in inputs for name in each) if name != "slope"]


def cell(value: float | str | None) -> str:
    return escape(value) if isinstance(value, str) else figure(value)
