"""Checks the dashboards by Grafana's own types, and draws them on live data: `make grafana-check`.

The types are those of @grafana/schema. The demonstration's plan runs on a small Ray under three bursts with a policy
each, a real Prometheus scrapes it, and @grafana/ui draws the dashboards in a headless Chromium. Pictures go to
build/grafana, that of the Overview also to the file of `--picture`. `tests` and the root are on the path.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.live.watched_run import run_monitored

from actors.cluster import cluster
from grafana.generate import DASHBOARDS, dashboard_path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BUILT = ROOT / "build/grafana"
POLICIES = ("fifo", "chain", "adaptive")
BURST_PERIOD_S = 6.0  # in which the plan's load has one burst
PICTURE_LIMIT_BYTES = 300_000  # of a picture that is committed


def check_types(files: list[str]) -> None:
    """Compile the dashboards against the types of @grafana/schema."""
    subprocess.run(["node", HERE / "types.mjs", BUILT, *files], check=True)


def main() -> None:
    """Check the types, draw the dashboards, and copy the picture; a fault ends the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="also copy the picture of the Overview to FILE")
    options = parser.parse_args()
    files = [str(dashboard_path(dashboard)) for dashboard in DASHBOARDS]
    check_types(files)
    cluster.start_local_ray()
    try:
        with tempfile.TemporaryDirectory() as folder, run_monitored(Path(folder) / "run", "pictured") as live:
            for number, policy in enumerate(POLICIES):
                live.ask("swap", policy, "to be seen")
                live.push(number * BURST_PERIOD_S, (number + 1) * BURST_PERIOD_S)
                live.drain()
            live.scraped()
            context = [live.prometheus.address, live.system, str(live.begun), str(time.time())]
            subprocess.run(["node", HERE / "draw.mjs", BUILT, *context, *files], check=True)
    finally:
        cluster.disconnect()
    if options.picture is not None:
        made = BUILT / "overview.png"
        if made.stat().st_size > PICTURE_LIMIT_BYTES:
            sys.exit(f"{made} has {made.stat().st_size:,} bytes, more than {PICTURE_LIMIT_BYTES:,}")
        shutil.copy(made, options.picture)


if __name__ == "__main__":
    main()
