"""Whatever the README shows is run."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest

import dsms
from dsms.cli import main
from dsms.execution import run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.M | re.S)
COMMANDS = [
    line
    for kind, text in BLOCKS
    if kind == "sh"
    for line in text.splitlines()
    if re.search("dsms (run|sim|explain|recommend|whatif|reproduce (?!--quick))", line)  # tests/papers does all of that
]
PLANS = re.findall(r"\(`(tests/plans/[\w-]+\.toml)`\):\n\n```toml\n(.*?)^```", README, flags=re.M | re.S)


@pytest.mark.parametrize(("file", "shown"), PLANS, ids=[file for file, _ in PLANS])
def test_the_plans_shown_are_the_plans_that_are_there_and_they_run(file, shown):
    assert (ROOT / file).read_text(encoding="utf-8") == shown
    if "cql" in shown:
        names = ("high", "best", "busy", "met", "unasked")
        done = run(ROOT / file, sinks=dict.fromkeys(names, len))
        assert min(done.results[name] for name in names) > 0
    else:
        assert dsms.simulate(ROOT / file, "fifo").outputs > 0


def test_a_path_a_fork_a_join_and_a_multi_query_plan_are_shown():
    assert [Path(file).stem for file, _ in PLANS] == ["auction", "path", "fork", "join", "queries"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Where the commands write to, and one finds what another has written."""
    return tmp_path_factory.mktemp("written")


@pytest.mark.parametrize("line", [line for line in COMMANDS if "ray" not in line])
def test_the_commands_shown_work(line, written, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    words = shlex.split(line.replace("/tmp/", f"{written}/"))
    assert main(words[1:]) == 0
    assert capsys.readouterr().out


def test_the_python_shown_works(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    for marker, printed in (
        ("dsms.simulate", ""),
        ("engine.swap", "cheap 100"),
        ("dsms.explain", "['o1'] 0.8"),
        ("dsms.stream", "{'src': 0, 'n': 50}"),
        ("what_if", "2420 steps"),
    ):
        code = next(text for kind, text in BLOCKS if kind == "python" and marker in text)
        exec(code, {})
        assert printed in capsys.readouterr().out


def test_the_policy_shown_is_short_and_runs(plans, tmp_path, monkeypatch):
    code = next(text for kind, text in BLOCKS if kind == "python" and "class WeightedRate" in text)
    assert len(code.splitlines()) < 40
    (tmp_path / "weighted_rate.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    policy = importlib.import_module("weighted_rate").WeightedRate
    run = dsms.simulate(plans / "queries.toml", policy(power=2.0))
    assert run.policy == "weighted-rate"
    assert run.outputs == dsms.simulate(plans / "queries.toml", "fifo").outputs
    assert run.turns < dsms.simulate(plans / "queries.toml", "fifo").turns  # a turn is a whole query


def test_the_comparison_shown_is_what_make_compare_prints(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    command = re.search(r"dsms (sim .*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    assert command is not None
    assert main(shlex.split(command[1])) == 0
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    shown = next(text for kind, text in BLOCKS if kind == "text" and "memory max" in text)
    for line in shown.splitlines():
        assert " ".join(line.split()) in printed or set(line.strip()) == {"─"}


def test_the_what_if_shown_is_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["sim", "tests/plans/bursts.toml", "--policy", "fifo", "--record", str(tmp_path)]) == 0
    assert main(["whatif", str(tmp_path), "--policy", "chain,qos-chain:memory=0.5,delay=0.5"]) == 0
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    shown = next(text for kind, text in BLOCKS if kind == "text" and "recorded (fifo)" in text)
    for line in shown.splitlines():
        assert " ".join(line.split()) in printed or set(line.strip()) == {"─"}


def test_the_explanation_shown_is_what_is_printed(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["explain", "tests/plans/chain-example.toml", "--policy", "chain"]) == 0
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    shown = next(text for kind, text in BLOCKS if kind == "text" and "the envelope turns" in text)
    for line in shown.splitlines():
        assert " ".join(line.split()) in printed or set(line.strip()) == {"─"}


def test_the_dataflow_shown_is_what_is_printed(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["explain", "tests/plans/auction.toml", "--dataflow"]) == 0
    printed = capsys.readouterr().out.splitlines()
    shown = next(text for kind, text in BLOCKS if kind == "text" and "dashed edges" in text)
    assert all(line in printed for line in shown.splitlines())


def test_every_policy_and_every_kind_of_arrivals_is_documented():
    from dsms.arrivals import KINDS

    for name in (*dsms.policies(), *KINDS):
        assert f"`{name}`" in README
