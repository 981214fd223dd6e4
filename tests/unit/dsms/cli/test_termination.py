"""TERM ends every command as Ctrl-C does: one line, exit code 130, files and recordings whole."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import termios
import threading
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.live.in_process_domain import make_plan, run_plan
from support.paths import ROOT

import dsms
from dsms import cli
from dsms.cli import COMMANDS, main
from dsms.recording import read_recordings

SIGNALS = [signal.SIGINT, signal.SIGTERM]
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
ON_STANDARD_INPUT = """
[streams.s]
schema = { n = "int64" }
source = { jsonl = "-" }

[queries.all]
cql = "SELECT n FROM s"
sink = { csv = "all.csv" }
"""
ENDLESS = """
[streams.s]
arrivals = { kind = "constant", rate = 1.0 }

[queries.q]
from = "s"
operators = [{ name = "o", cost = 0.5 }]
"""


class RunningCommand:
    """A command in a process of its own, which Ctrl-C reaches whatever started it."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dsms", *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def has_read_all(self) -> bool:
        """Whether nothing that was written is left in the pipe."""
        assert self.process.stdin is not None
        return not int.from_bytes(fcntl.ioctl(self.process.stdin, termios.FIONREAD, bytes(4)), sys.byteorder)

    def end(self, number: int) -> tuple[int, str, str]:
        """Send a signal; returns the exit code and what was printed."""
        try:
            self.process.send_signal(number)
            out, err = self.process.communicate(timeout=60)
        finally:
            self.process.kill()
        return self.process.returncode, out, err


def wait_for(condition) -> None:
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < 60
        time.sleep(0.02)


@pytest.mark.parametrize("name", [*COMMANDS, *POINTS["dsms.commands"]])
def test_term_ends_every_command_as_ctrl_c_does(name, monkeypatch, capsys):
    def run(given) -> None:
        signal.raise_signal(signal.SIGTERM)
        time.sleep(20)

    monkeypatch.setattr(cli, "find_commands", lambda: {name: None})
    monkeypatch.setattr(cli, "load_command", lambda point: SimpleNamespace(options=lambda parser: None, run=run))
    before = signal.getsignal(signal.SIGTERM)
    assert main([name]) == 130
    assert capsys.readouterr().err == "dsms: stopped\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_command_runs_in_a_thread_that_no_signal_reaches(tmp_path, monkeypatch):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["sim", str(ROOT / "tests/plans/path.toml")])))
    thread.start()
    thread.join()
    assert codes == [0]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_run_that_waits_for_rows_ends_with_whole_files_and_a_whole_recording(number, tmp_path):
    (tmp_path / "plan.toml").write_text(ON_STANDARD_INPUT)
    words = ("run", "plan.toml", "--record", "recorded", "--batch", "1", "--json")
    running = RunningCommand(tmp_path, *words)
    for row in range(5):
        running.write(json.dumps({"n": row}) + "\n")
    wait_for(running.has_read_all)
    code, _, err = running.end(number)
    report = json.loads(err)
    assert (code, report["stopped"]) == (130, True)
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + report["results"].get("all", 0)
    [recording] = read_recordings(tmp_path / "recorded")
    assert recording.complete


@pytest.mark.parametrize("number", SIGNALS)
def test_a_simulation_that_is_recorded_leaves_a_recording_that_can_be_read(number, tmp_path):
    (tmp_path / "plan.toml").write_text(ENDLESS)
    running = RunningCommand(tmp_path, "sim", "plan.toml", "--until", "1e12", "--record", "recorded")
    wait_for(lambda: list(tmp_path.glob("recorded/*/turns/part-*")))
    assert running.end(number) == (130, "", "dsms: stopped\n")
    [recording] = read_recordings(tmp_path / "recorded")
    assert not recording.complete


@pytest.mark.parametrize("number", SIGNALS)
def test_tail_ends_without_a_word(number, tmp_path):
    with run_plan(make_plan({"s": {"n": "int64"}}, all="SELECT n FROM s")) as (_, gateway, address):
        running = RunningCommand(tmp_path, "tail", "all", "--address", address)
        wait_for(lambda: gateway.status()["subscribers"] == 1)
        assert running.end(number) == (0, "", "")


@pytest.mark.parametrize("number", SIGNALS)
def test_push_ends_although_its_input_does_not(number, tmp_path):
    with run_plan(make_plan({"s": {"n": "int64"}}, all="SELECT n FROM s")) as (_, gateway, address):
        running = RunningCommand(tmp_path, "push", "s", "-", "--address", address)
        wait_for(lambda: gateway.status()["connections"] == 1)
        with dsms.connect(address):
            code, out, err = running.end(number)
        assert (code, out, err) == (130, "", "dsms: stopped\n")
