"""The console's server and its command, without Ray and without a browser."""

from __future__ import annotations

import io
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from support.live.fake_deployment import FakeCluster, FakeDeployment

from actors.cli.console import Finder
from actors.console.server import Server, serve
from actors.console.source import DeploymentSource
from actors.control import client as asking
from actors.control.client import ControlClient
from dsms.cli import COMMANDS, main
from dsms.errors import DsmsError

HOST = "127.0.0.1"


@pytest.fixture
def asked(monkeypatch):
    """Systems are plain objects."""
    monkeypatch.setattr(asking, "ask", lambda handle, method, *a, timeout, **n: getattr(handle, method)(*a, **n))


def found():
    return ControlClient("dsms", FakeDeployment())


def fetched(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.status, answer.read().decode()


def test_the_page_is_served_until_it_is_stopped_and_again(asked):
    for _ in range(2):
        with serve(found, HOST, 0) as url:
            code, text = fetched(url)
            assert code == 200
            assert "dsms console" in text
        with pytest.raises(urllib.error.URLError):
            fetched(url)


def test_a_process_serves_one_console_at_a_time(asked):
    with serve(found, HOST, 0) as url:
        second = Server(DeploymentSource(found), HOST, 0)
        with pytest.raises(DsmsError, match=f"already serves a console, at {url}"):
            second.start()
        second.stop()
        assert fetched(url)[0] == 200


def test_a_port_that_is_taken_is_refused(asked):
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DsmsError, match=f"cannot be served at {HOST}:{port}"):
            Server(DeploymentSource(found), HOST, port)


@pytest.fixture
def live(asked, monkeypatch):
    """The command talks to this instead of Ray."""
    cluster = FakeCluster()
    monkeypatch.setattr(asking, "import_runtime", lambda name: cluster)
    monkeypatch.setitem(COMMANDS, "console", "actors.cli.console")
    monkeypatch.setattr("dsms.cli.command_table.entry_points", lambda group: [])
    return cluster


def interrupted(out, reading, number):
    """Send a signal once the page has been read."""

    def press():
        while not (said := out.getvalue()).endswith("\n"):
            time.sleep(0.02)
        reading.append((said, fetched("http" + said.split("http")[1].split()[0])[0]))
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


@pytest.mark.parametrize(("with_token", "number"), [(False, signal.SIGINT), (True, signal.SIGTERM)])
def test_the_command_serves_until_ctrl_c_or_term_and_leaves(live, monkeypatch, tmp_path, with_token, number):
    out = io.StringIO()  # not `capsys`: reading it loses concurrent output
    monkeypatch.setattr("sys.stdout", out)
    file = tmp_path / "token"
    file.write_text("secret")
    file.chmod(0o600)
    read = []
    thread = interrupted(out, read, number)
    assert main(["console", "--port", "0", *(["--token-file", str(file)] if with_token else [])]) == 0
    thread.join()
    [(said, code)] = read
    assert code == 200
    assert said.startswith("console of dsms: http://127.0.0.1:")
    assert ("read-only" in said) is not with_token
    assert live.log == [("connect", "auto"), "disconnect"]


def test_a_token_that_others_may_read_is_refused_before_anything_begins(live, capsys, tmp_path):
    file = tmp_path / "token"
    file.write_text("secret")
    file.chmod(0o644)
    assert main(["console", "--token-file", str(file)]) == 2
    assert "chmod 600" in capsys.readouterr().err
    assert live.log == []


def test_a_system_that_is_not_there_is_said_by_the_command(live, capsys):
    assert main(["console", "--name", "other", "--port", "0"]) == 2
    assert capsys.readouterr().err == "dsms: no deployment 'other'; there are ['dsms']\n"


def test_without_nicegui_the_command_says_what_to_install(live, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("actors.console.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("actors.console.server", raising=False)
    monkeypatch.setitem(sys.modules, "nicegui", None)
    assert main(["console"]) == 2
    assert "install dsms[console]" in capsys.readouterr().err


class RestartedCluster(FakeCluster):
    """A cluster whose head is gone, and back at the second attempt to connect."""

    attempts = 0

    def connect(self, address, timeout=10.0):
        super().connect(address, timeout)
        self.attempts += 1
        if self.attempts < 2:
            raise DsmsError("no Ray cluster at head:6379")

    def check_reachable(self):
        if self.attempts < 2:
            raise DsmsError("no Ray cluster at head:6379")


def test_a_cluster_that_has_gone_is_left_at_once_and_connected_to_when_it_is_back():
    cluster = RestartedCluster()
    finder = Finder(cluster, "dsms", "head:6379")
    for _ in range(2):
        with pytest.raises(DsmsError, match="no Ray cluster"):
            finder.find()
    assert finder.find().name == "dsms"
    assert cluster.log == ["disconnect", ("connect", "head:6379"), ("connect", "head:6379")]
