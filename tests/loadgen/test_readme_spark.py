"""Whatever the README shows of traces and reports is run, in its order, on the shared Spark."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from packet_lines import Packets

from dsms.cli import main

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTIONS = README[README.index("## Reports") : README.index("## Developing")]
BLOCKS = re.findall(r"^```sh\n(.*?)^```", SECTIONS, flags=re.M | re.S)
TABLE = re.findall(r"^```text\n(.*?)^```", SECTIONS, flags=re.M | re.S)[0]
COMMANDS = [shlex.split(line, comments=True)[1:] for text in BLOCKS for line in text.splitlines()]


def test_the_commands_are_shown():
    assert [words[:2] for words in COMMANDS[-2:]] == [["trace", "formats"], ["trace", "convert"]]
    assert [words[0] for words in COMMANDS[:-2]] == ["sim", "report"]


@pytest.mark.spark
def test_the_commands_shown_work_in_their_order(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    lines = Packets.made(30).lines("source", "destination", "source_port", "destination_port", "size")
    (tmp_path / "lbl-pkt-4.tcp").write_text("\n".join(lines) + "\n", encoding="utf-8")
    printed = ""
    for words in COMMANDS:
        assert main([word.replace("/tmp", str(tmp_path)) for word in words]) == 0, words
        printed += capsys.readouterr().out
    told = [" ".join(line.split()) for line in printed.splitlines()]
    assert all(" ".join(line.split()) in told or set(line.strip()) == {"─"} for line in TABLE.splitlines())
    assert (tmp_path / "runs" / "report" / "report.html").exists()
