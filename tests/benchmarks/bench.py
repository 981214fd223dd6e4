"""How fast we are, each figure beside its peer's from the same run; fails on wrong work only, not on a low figure."""

from __future__ import annotations

import time

from benchmarks.report import table
from rich.console import Console
from benchmarks.rows import rows
from benchmarks.shape import shape
from benchmarks.turns import turns


def main() -> None:
    start = time.monotonic()
    with Console(stderr=True).status("ours and the peers run alternately: a minute or two"):
        measured = table(section() for section in (turns, shape, rows))
    measured.caption = f"the work of every run was checked; {time.monotonic() - start:.0f} s in all"
    Console(width=max(Console().width, 140)).print(measured)  # a pipe says it is 80 wide


if __name__ == "__main__":
    main()
