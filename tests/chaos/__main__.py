"""Kill processes of durable deployments at random, run after run, and compare every result with DuckDB's.

`python -m chaos [KILLS] [SEED]`, in `tests`: so many kills (200) in runs of ten, with seeds from SEED (0) on.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

from actors import cluster
from chaos.storm import Storm

EACH = 10  # kills in one run
KINDS = ("host", "host", "scheduler", "gateway", "outlet", "deployment")


def main(kills: int = 200, seed: int = 0) -> None:
    """All runs, and a line for each."""
    cluster.local(budgets=1)
    took: list[float] = []
    killed: Counter[str] = Counter()
    rows = 0
    for number in range((kills + EACH - 1) // EACH):
        with tempfile.TemporaryDirectory() as folder:
            storm = Storm(Path(folder), seed + number)
            try:
                for _ in range(min(EACH, kills - killed.total())):
                    name, seconds = storm.strike(KINDS)
                    killed[name.partition("-")[0]] += 1
                    took.append(seconds)
                storm.finish()
            finally:
                storm.close()
            rows += 2 * storm.pushed
        print(
            f"run {number + 1}: {killed.total()} kills {dict(killed)}, all recovered, 0 lost, 0 doubled, 0 wrong; "
            f"{rows:,} rows; until rebuilt: median {statistics.median(took):.1f} s, worst {max(took):.1f} s",
            flush=True,
        )


main(*map(int, sys.argv[1:]))
