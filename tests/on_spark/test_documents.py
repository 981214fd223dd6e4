"""What the documents show of loads, traces and reports is run, in its order, on the shared Spark."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.live.in_process_domain import run_plan
from support.load.packet_lines import Packets
from support.markdown import Suite, block_with, lines
from support.paths import ROOT

from dsms.cli import main
from dsms.query.plan_file import plan_from, read_table

pytestmark = pytest.mark.spark

LOADS = [line for line in lines(Suite.SPARK) if "dsms load" in line]
REPORTS = [shlex.split(line, comments=True)[1:] for line in lines(Suite.SPARK) if "dsms load" not in line]
PYTHON = block_with("python", "import loadgen").text


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plan's streams behind a gateway; the commands find it by DSMS_ADDRESS."""
    table = read_table(ROOT / "tests/plans/load.toml")
    for stream in table["streams"].values():
        del stream["arrivals"], stream["values"]
    with run_plan(plan_from(table)) as running:
        monkeypatch.chdir(ROOT)
        monkeypatch.setenv("DSMS_ADDRESS", running[2])
        yield running


def test_the_load_shown_is_pushed_and_every_row_arrives(
    live: Any, formats: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, gateway, address = live
    exec(PYTHON.replace("127.0.0.1:7411", address), {})
    assert "['_due', '_number', '_stream', 'at', 'auction'" in capsys.readouterr().out
    before = gateway.status()["rows"]
    assert before > 100
    for line in LOADS:
        words = shlex.split(re.sub(r"--duration \d", "--duration 2", line).replace("/tmp/", f"{tmp_path}/"))
        assert main(words[1:]) == 0
        output = capsys.readouterr().out
        delivered, due = re.search(r"delivered: ([\d,]+) rows of ([\d,]+) acknowledged", output).groups()
        assert delivered == due
        assert gateway.status()["rows"] - before == int(delivered.replace(",", ""))
        before = gateway.status()["rows"]
    assert formats.sql("select 1").count() == 1  # the command does not stop a session that it did not start
    assert main(["push", "bids", str(ROOT / "tests/plans/bids.csv")]) == 2
    assert "rows for 'bids' after its end" in capsys.readouterr().err


def test_a_simulation_a_report_and_a_trace_are_shown() -> None:
    assert [words[0] for words in REPORTS] == ["sim", "report", "trace", "trace"]


def test_the_reports_and_traces_shown_work_in_their_order(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    packets = Packets.made(30).lines("source", "destination", "source_port", "destination_port", "size")
    (tmp_path / "lbl-pkt-4.tcp").write_text("\n".join(packets) + "\n", encoding="utf-8")
    printed = ""
    for words in REPORTS:
        assert main([word.replace("/tmp", str(tmp_path)) for word in words]) == 0, words
        printed += capsys.readouterr().out
    told = [" ".join(line.split()) for line in printed.splitlines()]
    shown = [line for line in block_with("text", "samples ").text.splitlines() if set(line.strip()) != {"─"}]
    assert [line for line in shown if " ".join(line.split()) not in told] == []
    assert (tmp_path / "runs" / "report" / "report.html").exists()
