"""Runs two minutes of overload and ten of endurance, prints both reports, and fails on a fault.

cd tests && python -m soak.run [--overload SECONDS] [--soak SECONDS]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.live.deployments import run_ray

from soak.endurance import run_endurance
from soak.overload import run_overload


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both parts; answers the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--overload", type=float, default=120.0, help="seconds of overload; 0 skips it")
    parser.add_argument("--soak", type=float, default=600.0, help="seconds of endurance; 0 skips it")
    options = parser.parse_args(arguments)
    faults = list[str]()
    with run_ray():
        for seconds, run in ((options.overload, run_overload), (options.soak, run_endurance)):
            if seconds:
                report = run(seconds)
                print(report, flush=True)
                faults += report.faults
    for fault in faults:
        print(f"fault: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
