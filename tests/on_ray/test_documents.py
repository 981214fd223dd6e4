"""What the documents show of the live system is run, in its order, on the shared Ray."""

from __future__ import annotations

import json
import shlex
import socket
from contextlib import nullcontext

import pytest
from support.markdown import Suite, block_with, lines
from support.paths import ROOT

from actors.cluster import cluster
from dsms.cli import main

pytestmark = pytest.mark.ray

ELSEWHERE = ("--address local", "dsms doctor", "--runner ray")  # run in other tests, or without end
COMMANDS = [
    shlex.split(line, comments=True)[1:]
    for line in lines(Suite.RAY, "actors/README.md")
    if not any(words in line for words in ELSEWHERE)
]
PYTHON = block_with("python", "dsms.connect").text
PRINTED = {
    "status": '"domains": [',
    "top": "high.where",
    "policy": "fas-mcq",
    "why": "ecision",
    "qos": "memory=0.7",
    "weights": "high",
    "queries": "",
    "move": "busy",
    "pause": "",
    "resume": "",
    "down": "",
    "checkpoint": "turns paused",
}


@pytest.fixture
def here(ray_cluster, monkeypatch):
    """Let commands join the Ray of this process, and not end it."""
    monkeypatch.setattr(cluster, "connect", lambda *_, **__: None)
    monkeypatch.setattr(cluster, "disconnect", lambda: None)
    monkeypatch.setattr("actors.cluster.cluster_exit.leave_cluster_on_exit", lambda _: nullcontext())
    monkeypatch.chdir(ROOT)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


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
        assert main([*words, "--name", "readme", *extra]) == 0, words
        said = capsys.readouterr()
        if words[0] == "up":
            assert f"127.0.0.1:{port}" in said.out
        else:
            assert PRINTED[words[0]] in said.out, words
        if words[0] == "status":
            assert len(json.loads(said.out)["domains"]) == 2
    assert cluster.list_deployments() == []


def test_the_commands_of_the_front_page_are_among_them():
    front = [shlex.split(line, comments=True)[1:] for line in lines(Suite.RAY, "README.md")]
    assert [words for words in front if words[0] not in {"up", *PRINTED}] == []


@pytest.mark.parametrize("line", [line for line in lines(Suite.RAY) if "--runner ray" in line])
def test_a_simulation_on_actors_runs(ray_cluster, line, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(line)[1:]) == 0
    assert "greedy" in capsys.readouterr().out
