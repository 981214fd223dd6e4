"""Every target of the Makefile has a short form that `make test` runs, so that none can rot."""

from __future__ import annotations

import importlib.util
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.paths import ROOT, TESTS

MAKEFILE = (ROOT / "Makefile").read_text()
HERE = "tests/unit/repository/test_make_targets.py"
README = "tests/unit/repository/test_documents.py"

SHORT_FORMS = {
    "bench": "tests/benchmarks/test_bench_short.py",
    "chaos": "tests/chaos/test_chaos_short.py",
    "clean": HERE,
    "compare": README,
    "constraints": HERE,
    "dashboards": "tests/unit/grafana/test_dashboards.py",
    "demo": "tests/on_ray/test_demo.py",
    "demo-metrics": HERE,
    "fidelity": "tests/benchmarks/test_bench_short.py",
    "fuzz": HERE,
    "grafana-check": "tests/browser/test_grafana_check_short.py",
    "help": HERE,
    "lint": HERE,
    "pictures": "tests/browser/test_console_picture_short.py",
    "quick": HERE,
    "reproduce": "tests/unit/dsms/cli/test_reproduce_command.py",
    "soak": "tests/soak/test_overload.py",
    "test": HERE,
    "types": HERE,
}


def make(*arguments: str) -> str:
    """Run make in the repository; answers its output."""
    done = subprocess.run(["make", "-s", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def recipe(target: str) -> str:
    """Return the commands of a target, without the commands of its prerequisites."""
    lines = re.search(rf"^{target}:.*\n((?:\t.*\n?)*)", MAKEFILE, re.MULTILINE)
    assert lines, f"no target {target!r}"
    return lines[1]


def test_every_target_has_a_short_form() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony
    assert sorted(phony[1].split()) == sorted(SHORT_FORMS)
    assert [file for file in SHORT_FORMS.values() if not (ROOT / file).exists()] == []


def test_help_lists_every_target() -> None:
    listed = re.findall(r"^  make ([a-z-]+)", make("help"), re.MULTILINE)
    assert sorted(listed) == sorted(SHORT_FORMS)


@pytest.mark.parametrize("target", SHORT_FORMS)
def test_make_can_say_what_a_target_would_run(target: str) -> None:
    make("-n", target)


@pytest.mark.parametrize("target", SHORT_FORMS)
def test_files_and_modules_that_a_target_names_exist(target: str) -> None:
    commands = recipe(target)
    files = re.findall(r"(?:tests|deploy)/[\w./-]+", commands)
    modules = re.findall(r"python -m ([\w.]+)", commands)
    assert [file for file in files if not (ROOT / file).exists() and "node_modules" not in file] == []
    assert [module for module in modules if importlib.util.find_spec(module) is None] == []


@pytest.mark.targets
@pytest.mark.parametrize(("what", "runs"), [("frames", 500), ("queries", 20)])
def test_fuzzing_by_coverage_tries_inputs_and_none_fails(what: str, runs: int) -> None:
    pytest.importorskip("atheris", reason="needs Atheris, which has wheels for Linux only: pip install 'dsms[fuzz]'")
    command = [sys.executable, "-m", "fuzz.by_coverage", what, str(runs)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"{what}: {runs} inputs, \d+ of them reach new code; none failed", done.stdout)


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus (Debian's package of that name)")
def test_a_prometheus_with_our_rules_runs_beside_a_command() -> None:
    """As `make demo-metrics` starts it, beside a command that asks for its rules."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    ask = f"from urllib.request import urlopen; print(urlopen('http://127.0.0.1:{port}/api/v1/rules').read().decode())"
    command = [ROOT / "deploy/prometheus", "--interval", "1s", "--port", port, "--", sys.executable, "-c", ask]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert '"status":"success"' in done.stdout
    assert '"type":"alerting"' in done.stdout


def test_every_dependency_has_a_pin_that_satisfies_it() -> None:
    """Where this fails, `make constraints` mends it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    pins = {pin.name: pin for line in (ROOT / "constraints.txt").read_text().splitlines() if (pin := Requirement(line))}
    for dependency in (Requirement(text) for texts in lists for text in texts):
        pin = pins[dependency.name]
        (version,) = (specifier.version for specifier in pin.specifier)
        assert dependency.specifier.contains(version), f"{pin} does not satisfy {dependency}"


@pytest.mark.targets
def test_uv_pins_what_constraints_say(tmp_path: Path) -> None:
    """As `make constraints` does, but without looking for newer versions."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("needs uv: pip install 'dsms[dev]'")
    pinned = tmp_path / "constraints.txt"
    shutil.copy(ROOT / "constraints.txt", pinned)
    options = re.sub(r"\\\n|--upgrade|--output-file.*", " ", recipe("constraints").split("pip compile")[1]).split()
    command = [uv, "pip", "compile", *options, "--output-file", str(pinned)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if done.returncode and re.search("network|connect|dns|No solution|fetch", done.stderr, re.IGNORECASE):
        pytest.skip(f"uv cannot reach the packages: {done.stderr.strip()[:200]}")
    assert done.returncode == 0, done.stderr
    assert pinned.read_text() == (ROOT / "constraints.txt").read_text()
