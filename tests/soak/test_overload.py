"""The short form of `make soak`: overload and endurance on a real cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.endurance import EnduranceReport, find_unexpected_lines, judge, run_endurance
from soak.overload import run_overload
from soak.run import main

pytestmark = pytest.mark.timeout(300)


@pytest.mark.ray
def test_ten_times_the_capacity_fills_no_memory_and_loses_nothing(ray_cluster) -> None:
    report = run_overload(4.0)
    assert report.faults == [], str(report)
    assert report.sampled > 3


@pytest.mark.ray
def test_a_short_soak_swaps_policies_and_loses_nothing(ray_cluster: object) -> None:
    """Whether memory grows shows only in a long run."""
    report = run_endurance(3.0, swap_interval=0.2)
    assert report.swaps > 3
    assert report.rows > 0
    assert (report.missing, report.doubled, report.said) == (0, 0, [])
    assert "lost: 0, doubled: 0" in str(report)


@pytest.mark.ray
def test_the_command_runs_the_parts_it_is_asked_for(ray_cluster: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--overload", "0", "--soak", "0"]) == 0
    assert capsys.readouterr().out == ""


def test_unexpected_lines_are_found_in_logs(tmp_path: Path) -> None:
    file = tmp_path / "worker-1.err"
    file.write_text("from before\n")
    before = {file: file.stat().st_size}
    file.write_text("from before\n:actor_name:Host\n\n[2026-11-17 23:46:26,1 I 1 2] core_worker.cc:1: usual\nodd\n")
    assert list(find_unexpected_lines(tmp_path, before)) == ["odd"]


@pytest.mark.parametrize(("slope", "files", "faults"), [(0, 100, 0), (200_000, 100, 1), (0, 104, 1), (200_000, 150, 2)])
def test_what_grows_is_a_fault(slope: int, files: int, faults: int) -> None:
    report = EnduranceReport(600.0, memory=[(t, 10**9 + slope * t + 10**6 * (t % 3)) for t in range(600)])
    report.held, report.files = [0.0] * 600, [100, files]
    judge(report)
    assert len(report.faults) == faults
