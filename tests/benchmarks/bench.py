"""How fast we are, each figure beside its peer's from the same run; then how good our own policies are beside others'.

Fails on wrong work only, not on a low figure.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable

from benchmarks.against import against
from benchmarks.checkpoints import checkpoints
from benchmarks.executions import executions
from benchmarks.freshness import freshness
from benchmarks.held import held
from benchmarks.live import live
from benchmarks.load import load
from benchmarks.metrics import metrics
from benchmarks.predicted import predicted
from benchmarks.queries import queries
from benchmarks.report import Row, table
from benchmarks.rows import rows
from benchmarks.shape import shape
from benchmarks.swaps import swaps
from benchmarks.turns import turns
from rich.console import Console

SECTIONS: dict[str, Callable[[], Iterable[Row]]] = {
    "turns": turns,
    "shape": shape,
    "executions": executions,
    "rows": rows,
    "queries": queries,
    "held": held,
    "predicted": predicted,
    "swaps": swaps,
    "live": live,
    "load": load,
    "metrics": metrics,
    "checkpoints": checkpoints,
}


def main(*wanted: str) -> None:
    """All of it, or only the sections named."""
    start = time.monotonic()
    out = Console(width=max(Console().width, 150))  # a pipe says it is 80 wide
    with Console(stderr=True).status("ours and the peers run alternately: some minutes"):
        measured = table(section() for name, section in SECTIONS.items() if not wanted or name in wanted)
    measured.caption = f"the work of every run was checked; {time.monotonic() - start:.0f} s in all"
    out.print(measured)
    if wanted:
        return
    with Console(stderr=True).status("policies are compared in virtual time: a dozen minutes"):
        for found in against():
            out.print(found)
        out.print(freshness())
    out.print(f"{time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    if unknown := [name for name in sys.argv[1:] if name not in SECTIONS]:
        sys.exit(f"no section {unknown}; there are {list(SECTIONS)}")
    main(*sys.argv[1:])
