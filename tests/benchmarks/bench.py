"""How fast we are, each figure beside its peer's from the same run; then how good our own policies are beside others'.

Fails on wrong work only, not on a low figure.
"""

from __future__ import annotations

import time

from benchmarks.against import against
from benchmarks.freshness import freshness
from benchmarks.report import table
from benchmarks.rows import rows
from benchmarks.shape import shape
from benchmarks.turns import turns
from rich.console import Console


def main() -> None:
    start = time.monotonic()
    out = Console(width=max(Console().width, 140))  # a pipe says it is 80 wide
    with Console(stderr=True).status("ours and the peers run alternately: a minute or two"):
        measured = table(section() for section in (turns, shape, rows))
    measured.caption = f"the work of every run was checked; {time.monotonic() - start:.0f} s in all"
    out.print(measured)
    with Console(stderr=True).status("policies are compared in virtual time: a dozen minutes"):
        for found in against():
            out.print(found)
        out.print(freshness())
    out.print(f"{time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    main()
