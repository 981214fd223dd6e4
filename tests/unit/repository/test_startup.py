"""Commands start fast: each imports only what it needs. Modules are counted, as times depend on the machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

import pytest
from support.paths import PLANS, ROOT

import dsms
from dsms.cli import COMMANDS

HEAVY = {
    "duckdb", "matplotlib", "msgpack", "nicegui", "numpy", "pandas", "psutil", "pyarrow", "pyspark", "ray", "rich",
    "sqlglot",
}  # fmt: skip
COMMAND_MODULES = 250  # of Python's library and ours, for the parser and the list of commands
SIMULATION_MODULES = 550
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
LIVE_COMMANDS = sorted(name for name, place in POINTS["dsms.commands"].items() if place.startswith("actors."))
PROBE = """
import contextlib, io, json, sys
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    {code}
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(code: str) -> set[str]:
    """The modules that a new process has imported once it has run this."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(code=code)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def modules_of(*words: str) -> set[str]:
    """The modules that a command imports."""
    return modules_after(f"from dsms.cli import main; main({list(words)!r})")


def heavy(modules: set[str]) -> set[str]:
    return modules & HEAVY


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["no-such-command"], []])
def test_the_list_of_commands_imports_no_command_and_no_large_library(words) -> None:
    modules = modules_of(*words)
    assert heavy(modules) == set()
    assert not set(COMMANDS.values()) & modules
    assert len(modules) <= COMMAND_MODULES


def test_a_simulation_imports_neither_file_formats_nor_the_query_language_nor_drawing() -> None:
    modules = modules_of("sim", str(PLANS / "path.toml"))
    assert heavy(modules) == {"numpy", "rich"}
    assert len(modules) <= SIMULATION_MODULES
    assert {name for name in modules if name.startswith("dsms.policies.") and name.count(".") == 2} == {
        "dsms.policies.adaptive",  # reads the plan's table of this name
        "dsms.policies.chart_policy",  # explains decisions
        "dsms.policies.fifo",
        "dsms.policies.registry",
        "dsms.policies.workload_rule",
    }


@pytest.mark.parametrize("command", ["status", "policy", "pause", "down"])
def test_the_help_of_a_live_command_imports_no_large_library(command) -> None:
    assert heavy(modules_of(command, "--help")) == set()


def test_a_deployment_starts_without_file_formats_or_the_query_language() -> None:
    modules = modules_after("import actors.control.deploy, dsms.live.domain")
    assert heavy(modules) <= {"msgpack", "numpy", "psutil", "ray"}


def test_importing_the_package_imports_no_part_of_it_that_is_not_used() -> None:
    assert {name for name in modules_after("import dsms") if name.startswith("dsms.")} == {
        "dsms.errors", "dsms.policies", "dsms.policies.registry",
    }  # fmt: skip
    assert heavy(modules_after("import dsms; dsms.PlanError, dsms.policies")) == set()


def test_every_public_name_is_found_and_a_wrong_one_is_refused() -> None:
    assert [name for name in dsms.__all__ if getattr(dsms, name, None) is None] == []
    assert set(dsms.LAZY_NAMES) | {"policies", "policy_named"} == set(dsms.__all__)
    with pytest.raises(AttributeError, match="module 'dsms' has no attribute 'simulat'"):
        _ = dsms.simulat  # type: ignore[attr-defined]


@pytest.mark.parametrize("first", ["dsms.simulation", "dsms.policies.chain", "dsms.run_plan", "dsms.advice.why"])
def test_a_public_function_is_never_hidden_by_a_module(first) -> None:
    code = f"import {first}, dsms; assert all(map(callable, (dsms.simulate, dsms.policies, dsms.run, dsms.why)))"
    modules_after(code)
