"""A maintainer's check, `make grafana-check`: dashboards by Grafana's own types and components, on live data.

The types are those of @grafana/schema. Then there are a small Ray, the demonstration's plan under three bursts with a
policy each, and a real Prometheus; the dashboards are drawn from it with @grafana/ui in a headless Chromium. Pictures
go to build/grafana, that of the Overview also to where `--picture` says. `tests` and the root are on the path.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from watched_run import watched

from actors import cluster
from grafana.generate import DASHBOARDS, file_of

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BUILT = ROOT / "build/grafana"
POLICIES = ("fifo", "chain", "adaptive")
BURST = 6.0  # seconds in which the plan's load has one
LARGEST = 300_000  # bytes of a picture that is committed


def main() -> None:
    """Check, and say what was done; a fault ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="where the Overview's picture goes too")
    given = parser.parse_args()
    files = [str(file_of(dashboard)) for dashboard in DASHBOARDS]
    subprocess.run(["node", HERE / "types.mjs", BUILT, *files], check=True)
    cluster.local()
    try:
        with tempfile.TemporaryDirectory() as folder, watched(Path(folder) / "run", "pictured") as live:
            for number, policy in enumerate(POLICIES):
                live.ask("swap", policy, "to be seen")
                live.push(number * BURST, (number + 1) * BURST)
                live.drain()
            live.scraped()
            told = [live.prometheus.address, live.system, str(live.begun), str(time.time())]
            subprocess.run(["node", HERE / "draw.mjs", BUILT, *told, *files], check=True)
    finally:
        cluster.disconnect()
    if given.picture is not None:
        made = BUILT / "overview.png"
        if made.stat().st_size > LARGEST:
            sys.exit(f"{made} has {made.stat().st_size:,} bytes, more than {LARGEST:,}")
        shutil.copy(made, given.picture)


if __name__ == "__main__":
    main()
