"""`dsms demo` runs to its end or until Ctrl-C, and leaves no process behind."""

from __future__ import annotations

import signal
import time

import pytest
from pyarrow import parquet
from support.live.marked_command import MarkedCommand

from actors.cli.demo import POLICIES
from actors.deployment.actor_handles import wait_until

pytestmark = [pytest.mark.ray, pytest.mark.timeout(320)]
BEGIN = """
import sys
from actors.cli import demo
from dsms.cli import COMMANDS, main
read_table = demo.read_table
demo.read_table = lambda path: {**(table := read_table(path)), "live": {**table["live"], "actors": 3}}
COMMANDS["demo"] = "actors.cli.demo"  # also where the package is not installed
sys.exit(main())
"""
GONE = 10.0  # seconds for Ray's processes to end


@pytest.fixture
def start():
    runs = []

    def started(*options: str) -> MarkedCommand:
        runs.append(MarkedCommand(BEGIN, "demo", *options))
        return runs[-1]

    yield started
    for run in runs:
        if run.process.poll() is None:
            run.interrupt()
        run.process.communicate(timeout=60)


def test_the_demo_shows_a_phase_for_each_policy_and_leaves_its_report_and_nothing_running(start, tmp_path):
    run = start("--seconds", "1", "--out", str(tmp_path))
    out, err = run.process.communicate(timeout=280)
    assert run.process.returncode == 0, err
    assert "in the browser: http://127.0.0.1:" in out
    rows = [line.split() for line in out.splitlines()]
    shown = [row[0] for row in rows if row and row[0] in POLICIES]
    assert shown == list(POLICIES)
    (folder,) = tmp_path.iterdir()
    assert str(folder / "report.html") in out
    assert "least possible" in (folder / "report.html").read_text(encoding="utf-8")
    policies = parquet.read_table(folder / "aggregates/policies.parquet").to_pylist()
    assert [(row["policy"], row["samples"]) for row in policies] == [(policy, 1) for policy in POLICIES]
    assert all(0 < row["bound_mean"] <= row["memory_mean"] for row in policies)
    assert wait_until(lambda: not run.left(), GONE), run.left()


@pytest.mark.parametrize(("moment", "number"), [("starting Ray", signal.SIGTERM), ("6 of 7", signal.SIGINT)])
def test_ctrl_c_or_term_ends_the_demo_soon_and_leaves_nothing_behind(start, moment, number, tmp_path):
    run = start("--seconds", "5", "--out", str(tmp_path))
    run.until(moment)
    time.sleep(1.0)  # somewhere inside that step
    run.interrupt(number)
    _, err = run.process.communicate(timeout=60)
    assert run.process.returncode == 130, err
    assert "Traceback" not in err
    assert wait_until(lambda: not run.left(), GONE), run.left()
