"""Every block that a document shows is run or compared: here what needs neither Ray nor Spark."""

from __future__ import annotations

import importlib
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from support.markdown import FENCE, Suite, block_with, blocks, documents, lines, suites
from support.paths import ROOT

import dsms
from dsms.arrivals import ARRIVAL_KINDS
from dsms.cli import main
from dsms.query.plan_file import plan_from
from dsms.run_plan import run

PLANS = [
    (match[1], block)
    for block in blocks()
    if block.language == "toml" and (match := re.search(r"\(`(tests/plans/[\w-]+\.toml)`\):$", block.before))
]
TABLES = [block for block in blocks() if block.language == "toml" and block not in [shown for _, shown in PLANS]]
COMMANDS = [line for line in lines(Suite.LOCAL) if "reproduce --quick" not in line]  # tests/papers runs all papers
PRINTED = {  # a program by what is in it: what it prints
    "run.latency.p99": "",
    "engine.swap": "cheap 100",
    "dsms.explain": "['o1'] 0.8",
    "dsms.stream": "{'src': 0, 'n': 50}",
    "what_if": "2420 steps",
}


@pytest.mark.parametrize("block", blocks(), ids=[block.place for block in blocks()])
def test_a_suite_runs_or_compares_every_block(block) -> None:
    assert None not in suites(block), block.place


def test_links_lead_to_files_that_exist() -> None:
    broken = [
        f"{file.relative_to(ROOT)}: {target}"
        for file in documents()
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", FENCE.sub("", file.read_text(encoding="utf-8")))
        if "://" not in target and not (file.parent / target.replace("\\", "")).exists()
    ]
    assert broken == []


@pytest.mark.parametrize(("file", "block"), PLANS, ids=[file for file, _ in PLANS])
def test_the_plans_shown_are_the_files_and_they_run(file, block) -> None:
    assert (ROOT / file).read_text(encoding="utf-8") == block.text
    if "cql" in block.text:
        names = ("high", "best", "busy", "met", "unasked")
        report = run(ROOT / file, sinks=dict.fromkeys(names, len))
        assert min(report.results[name] for name in names) > 0
    else:
        assert dsms.simulate(ROOT / file, "fifo").outputs > 0


def test_a_path_a_fork_a_join_and_a_multi_query_plan_are_shown() -> None:
    assert {Path(file).stem for file, _ in PLANS} == {"auction", "path", "fork", "join", "queries"}


@pytest.mark.parametrize("block", TABLES, ids=[block.place for block in TABLES])
def test_the_tables_of_plans_shown_can_be_read(block) -> None:
    table = tomllib.loads(block.text)
    if "project" in table:
        [target] = table["project"]["entry-points"]["dsms.policies"].values()
        assert re.fullmatch(r"[\w.]+:\w+", target)
        return
    streams = {
        "bids": {"schema": {"auction": "int64", "price": "int64"}},
        "clicks": {"schema": {"page": "string"}},
        "s": {},
    }
    queries = {"q": {"from": "s", "operators": [{"name": "o", "cost": 1.0}]}}
    table.pop("sources", None)
    for stream in table.get("streams", {}).values():
        stream.pop("source", None)
    plan = plan_from(
        {**table, "streams": streams | table.get("streams", {}), "queries": queries | table.get("queries", {})}
    )
    assert plan.queries


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder that commands write to, where later commands find it."""
    return tmp_path_factory.mktemp("written")


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_shown_work(line, written, monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(line.replace("/tmp/", f"{written}/"), comments=True)[1:]
    if words[0] == "reproduce" and "--out" not in words:
        words += ["--out", str(written / "reproduction")]
    assert main(words) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("marker", PRINTED)
def test_the_python_shown_works(marker, monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    exec(block_with("python", marker).text, {})
    assert PRINTED[marker] in capsys.readouterr().out


def test_all_python_shown_is_run() -> None:
    shown = [block for block in blocks() if block.language == "python" and suites(block) == {Suite.LOCAL}]
    assert len(shown) == len(PRINTED) + 1  # and the policy below


def test_the_policy_shown_is_short_and_runs(plans, tmp_path, monkeypatch) -> None:
    code = block_with("python", "class WeightedRate").text
    assert len(code.splitlines()) < 40
    (tmp_path / "weighted_rate.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    policy = importlib.import_module("weighted_rate").WeightedRate
    done = dsms.simulate(plans / "queries.toml", policy(power=2.0))
    assert done.policy == "weighted-rate"
    assert done.outputs == dsms.simulate(plans / "queries.toml", "fifo").outputs
    assert done.turns < dsms.simulate(plans / "queries.toml", "fifo").turns  # a turn is a whole query


def squeezed(text: str) -> list[str]:
    """The lines of a table without their padding, rules left out."""
    return [" ".join(line.split()) for line in text.splitlines() if set(line.strip()) - {"─"}]


@pytest.mark.parametrize(
    ("marker", "commands"),
    [
        (
            "recorded (fifo)",
            [
                "sim tests/plans/bursts.toml --policy fifo --record OUT",
                "whatif OUT --policy chain,qos-chain:memory=0.5,delay=0.5",
            ],
        ),
        (
            "not explained",
            [
                "sim tests/plans/bursts.toml --policy rr-query --turn-cost 0.001 --hop-cost 0.0005 --record OUT",
                "whatif OUT",
            ],
        ),
        ("the envelope turns", ["explain tests/plans/chain-example.toml --policy chain"]),
        ("dashed edges", ["explain tests/plans/auction.toml --dataflow"]),
    ],
)
def test_the_output_shown_is_what_is_printed(marker, commands, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    for command in commands:
        assert main(command.replace("OUT", str(tmp_path)).split()) == 0
    printed = squeezed(capsys.readouterr().out)
    assert [line for line in squeezed(block_with("text", marker).text) if line not in printed] == []


def test_the_demo_s_table_has_the_columns_that_the_demo_prints() -> None:
    shown = squeezed(block_with("text", "memory mean     max   latency mean      p99   stale").text)
    source = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "actors").rglob("*.py"))
    assert all(
        f'"{column}"' in source for column in ("memory mean", "latency mean", "p99", "stale", "results", "turns")
    )
    assert [line.split()[0] for line in [shown[0], *shown[1::2]]] == ["policy", "fifo", "chain", "fas-mcq", "adaptive"]
    assert [line.split()[0] for line in shown[2::2]] == ["simulated"] * 4


def test_every_output_shown_is_compared() -> None:
    compared = (
        "recorded (fifo)",
        "not explained",
        "the envelope turns",
        "dashed edges",
        "memory mean     max",
        "delivered:",
        "samples ",
    )
    shown = [block for block in blocks() if block.language == "text" and suites(block) == {Suite.OUTPUT}]
    assert [block.place for block in shown if not any(text in block.text for text in compared)] == []


def test_the_diagrams_name_what_exists() -> None:
    design = block_with("text", "leaves: import nothing of ours").text
    folders = {path.stem for path in (ROOT / "dsms").iterdir()} | {"run"}
    for line in design.split("───")[0].splitlines():
        for name in line.split("   ")[0].split():
            assert name in folders, name
    for block in blocks():
        if suites(block) == {Suite.DIAGRAM} and "segments(plan)" in block.text:
            assert all(hasattr(dsms.Policy, name) for name in ("segments", "priority", "share"))
        if suites(block) == {Suite.DIAGRAM} and "now, spend" in block.text:
            assert all(hasattr(dsms.Clock, name) for name in ("now", "spend"))


@pytest.mark.parametrize("line", lines(Suite.MAKE))
def test_the_make_targets_shown_exist(line) -> None:
    target = shlex.split(line, comments=True)[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("line", lines(Suite.DEPLOY))
def test_the_scripts_shown_take_these_options(line) -> None:
    script, *options = shlex.split(line, comments=True)
    source = (ROOT / script).read_text(encoding="utf-8")
    assert [option for option in options if option.startswith("--") and option not in source] == []


def test_every_policy_and_every_kind_of_arrivals_is_documented() -> None:
    guide = (ROOT / "dsms/README.md").read_text(encoding="utf-8")
    assert [name for name in (*dsms.policies(), *ARRIVAL_KINDS) if f"`{name}`" not in guide] == []
