"""Ctrl-C or TERM ends `dsms up` with a Ray of its own: recordings are complete, and no process is left."""

from __future__ import annotations

import signal

import pytest
from support.live.marked_command import MarkedCommand
from support.paths import PLANS

import dsms
from actors.deployment.actor_handles import wait_until
from dsms.recording import read_recordings

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]
CODE = "import sys; from dsms.cli import main; sys.exit(main())"
GONE_S = 10.0  # for Ray's processes to end
ROWS = 50


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_deployment_in_order_with_a_whole_recording(number, tmp_path):
    words = ("up", str(PLANS / "live.toml"), "--address", "local", "--actors", "1", "--port", "0")
    running = MarkedCommand(CODE, *words, "--record", str(tmp_path))
    try:
        running.until("Ctrl-C ends it")
        address = next(line for line in running.process.stdout if line.startswith("rows to: ")).split()[-1]
        with dsms.connect(address) as client:
            client.push("clicks", [{"auction": n, "person": 1} for n in range(ROWS)])
            client.flush(60.0)
    finally:
        # A terminal sends Ctrl-C to all processes, which Ray's ignore; TERM goes to the command.
        running.interrupt(number) if number == signal.SIGINT else running.process.send_signal(number)
        _, err = running.process.communicate(timeout=90)
    assert running.process.returncode == 0, err
    assert "Traceback" not in err
    [recording] = read_recordings(tmp_path)
    assert recording.complete
    assert sum(int(part["rows"].sum()) for part in recording.table("arrivals")) == ROWS
    assert wait_until(lambda: not running.left(), GONE_S), running.left()
