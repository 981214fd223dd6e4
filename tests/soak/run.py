"""Overload for two minutes, then the soak of ten: prints what came of them, and fails if something is not right.

cd tests && python -m soak.run [--overload SECONDS] [--soak SECONDS]
"""

from __future__ import annotations

import argparse

from benchmarks.deployed import own_ray

from soak.endurance import endured
from soak.overload import overloaded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--overload", type=float, default=120.0, help="seconds of it; 0: none")
    parser.add_argument("--soak", type=float, default=600.0, help="seconds of it; 0: none")
    given = parser.parse_args()
    faults = list[str]()
    with own_ray():
        for seconds, run in ((given.overload, overloaded), (given.soak, endured)):
            if seconds:
                report = run(seconds)
                print(report, flush=True)
                faults += report.faults
    for fault in faults:
        print(f"wrong: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
