"""Whatever the README shows of the live system is run, in its order, on the shared Ray."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import threading
import urllib.request
from contextlib import nullcontext
from pathlib import Path

import pytest

from actors import cluster
from actors.parts import wait_for
from dsms.cli import main

pytestmark = pytest.mark.ray

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LIVE = README[README.index("## Running it live") : README.index("## Choosing a policy")]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", LIVE, flags=re.M | re.S)
SHOWN = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
ELSEWHERE = ("local", "dsms doctor")  # run in other tests, or never over
COMMANDS = [
    shlex.split(line, comments=True)[1:]
    for line in SHOWN
    if "dsms " in line and not any(words in line for words in ELSEWHERE)
]
PYTHON = next(text for kind, text in BLOCKS if kind == "python")
PRINTED = {
    "status": '"domains": [',
    "top": "high.where",
    "console": "console of readme: http://127.0.0.1:",
    "policy": "fas-mcq",
    "why": "ecision",
    "qos": "memory=0.7",
    "weights": "high",
    "queries": "",
    "move": "busy",
    "pause": "",
    "resume": "",
    "down": "",
    "checkpoint": "turns waited",
}


@pytest.fixture
def here(ray_cluster, monkeypatch):
    """The commands find the Ray that this process is part of, and leave it there."""
    monkeypatch.setattr(cluster, "connect", lambda *_, **__: None)
    monkeypatch.setattr(cluster, "disconnect", lambda: None)
    monkeypatch.setattr("actors.cli.up.leaving", lambda _: nullcontext())  # what Ray started here is to stay
    monkeypatch.chdir(ROOT)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def interrupted(capsys: pytest.CaptureFixture[str], heard: list[str]) -> None:
    """Press Ctrl-C once the command has said where the page is, and it is there."""

    def said() -> bool:
        heard.append(capsys.readouterr().out)
        return "http" in "".join(heard)

    if wait_for(said, 60.0):
        url = re.search(r"http://\S+", "".join(heard))
        assert url is not None
        urllib.request.urlopen(url[0], timeout=30).close()
    os.kill(os.getpid(), signal.SIGINT)


def test_all_commands_are_shown():
    assert {words[0] for words in COMMANDS} == {"up", *PRINTED}


def test_the_commands_and_the_python_shown_work_in_their_order(here, capsys, tmp_path):
    port, pushed = free_port(), False
    for shown in COMMANDS:
        words = [word.replace("/tmp/", f"{tmp_path}/") for word in shown]
        if words[0] == "down" and not pushed:  # all else is done: now rows, which end
            pushed = True
            exec(PYTHON.replace("7411", str(port)), {})
            assert "[{'auction': 1, 'bidder': 7, 'price': 900, 'at': 1000000}]" in capsys.readouterr().out
        extra = ["--port", str(port), "--actors", "2"] if words[0] == "up" else []
        if words[0] == "console":
            extra = ["--port", "0"]
            threading.Thread(target=interrupted, args=(capsys, heard := list[str]())).start()
        assert main([*words, "--name", "readme", *extra]) == 0, words
        said = capsys.readouterr()
        if words[0] == "up":
            assert f"127.0.0.1:{port}" in said.out
        else:
            assert PRINTED[words[0]] in (said.out if words[0] != "console" else "".join(heard)), words
        if words[0] == "status":
            assert len(json.loads(said.out)["domains"]) == 2
    assert cluster.deployments() == []
