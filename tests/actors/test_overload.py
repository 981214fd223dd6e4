"""The short form of `make soak`: far more than can be done, on a real cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from soak.endurance import Report, judge, unexpected
from soak.overload import overloaded

pytestmark = pytest.mark.timeout(300)


@pytest.mark.ray
def test_ten_times_the_capacity_fills_no_memory_and_loses_nothing(ray_cluster) -> None:
    report = overloaded(10.0)
    assert report.faults == [], str(report)
    assert report.sampled > 3


def test_lines_that_nobody_expects_are_found_in_logs(tmp_path: Path) -> None:
    file = tmp_path / "worker-1.err"
    file.write_text("from before\n")
    before = {file: file.stat().st_size}
    file.write_text("from before\n:actor_name:Host\n\n[2026-11-17 23:46:26,1 I 1 2] core_worker.cc:1: usual\nodd\n")
    assert list(unexpected(tmp_path, before)) == ["odd"]


@pytest.mark.parametrize(("slope", "files", "faults"), [(0, 100, 0), (200_000, 100, 1), (0, 104, 1), (200_000, 150, 2)])
def test_what_grows_is_a_fault(slope: int, files: int, faults: int) -> None:
    report = Report(600.0, memory=[(t, 10**9 + slope * t + 10**6 * (t % 3)) for t in range(600)])
    report.held, report.files = [0.0] * 600, [100, files]
    judge(report)
    assert len(report.faults) == faults
