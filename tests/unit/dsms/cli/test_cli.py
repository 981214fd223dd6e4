"""The command line: its output, its files, its exit codes, and the message of every wrong call."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.paths import PLANS

from dsms import policies
from dsms.cli import main

DSMS = Path(sys.executable).parent / "dsms"
CHAIN = PLANS / "chain-example.toml"

RANDOM = """
[streams.s]
arrivals = { kind = "poisson", rate = 2.0, count = 50 }

[queries.q]
from = "s"
operators = [{ name = "o1", cost = 0.2, selectivity = 0.5 }, { name = "o2", cost = 0.4 }]

[queries.r]
from = "s"
weight = 3.0
operators = [{ name = "p1", cost = 0.1, selectivity = 0.0 }]
"""
LISTED = """
[streams.s]
arrivals = { kind = "list", at = [0, 1, 2, 3] }

[queries.q]
from = "s"
operators = [{ name = "o", cost = 2.0 }]
"""
ENDLESS = """
[streams.quiet]

[streams.ticks]
arrivals = { kind = "constant", rate = 1.0 }

[queries.q]
from = "ticks"
operators = [{ name = "o", cost = 0.5 }]
"""


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def runs(self) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = json.loads(self.out)["runs"]
        return runs


Dsms = Callable[..., CommandResult]


@pytest.fixture
def dsms(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Dsms:
    """Run `dsms sim` on a plan (a text or a file) in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(plan: str | Path, *arguments: str) -> CommandResult:
        if isinstance(plan, str):
            (tmp_path / "plan.toml").write_text(plan)
            plan = Path("plan.toml")
        try:
            code = main(["sim", str(plan), *arguments])
        except SystemExit as stop:  # how argparse leaves
            code = int(stop.code or 0)
        return CommandResult(code, *capsys.readouterr())

    return call


def one(answer: CommandResult) -> dict[str, Any]:
    assert answer.code == 0, answer.err
    (run,) = answer.runs
    return run


def numbers(value: Any) -> list[Any]:
    """All values inside a JSON value that are neither lists nor tables."""
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value]


def keys(value: Any) -> Any:
    return {key: keys(item) for key, item in value.items()} if isinstance(value, dict) else None


def test_the_table_has_a_line_for_every_policy(dsms: Dsms) -> None:
    code, out, err = dsms(RANDOM, "--policy", "fifo", "--policy", "rr:tuples=3", "--policy", "greedy")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [line[0] for line in lines if line and line[0] in ("fifo", "rr:tuples=3", "greedy")] == [
        "fifo", "rr:tuples=3", "greedy",
    ]  # fmt: skip
    assert "plan.toml" in out


def test_the_table_shows_what_the_json_says(dsms: Dsms) -> None:
    run = one(dsms(CHAIN, "--policy", "greedy", "--json"))
    line = next(line for line in dsms(CHAIN, "--policy", "greedy").out.splitlines() if "greedy" in line)
    shown = line.split()
    assert shown[-2:] == [str(run["turns"]), str(run["switches"])]
    assert float(shown[1]) == pytest.approx(run["memory"]["tuples"]["max"], rel=1e-3)
    assert float(shown[2]) == pytest.approx(run["memory"]["tuples"]["mean"], rel=1e-3)


def test_the_table_shows_a_dash_where_nothing_exists(dsms: Dsms) -> None:
    line = next(line for line in dsms(CHAIN).out.splitlines() if "fifo" in line)
    assert line.split()[3:6] == ["–", "–", "–"]  # no result ever leaves: no latency, no p99; fractional: no staleness


def test_the_table_is_not_cut_in_a_narrow_window(dsms: Dsms) -> None:
    out = dsms(RANDOM, "--policy", "mtiq:ratio=0.25,threshold=1000", "--policy", "rr-query:tuples=1000,time=0.125").out
    assert "mtiq:ratio=0.25,threshold=1000" in out
    assert "rr-query:tuples=1000,time=0.125" in out
    assert "…" not in out


def test_the_table_shows_the_plans_name_as_it_is(dsms: Dsms, tmp_path: Path) -> None:
    (tmp_path / "plan[bold].toml").write_text(LISTED)
    assert "plan[bold].toml" in dsms(Path("plan[bold].toml")).out


def test_json_has_exactly_the_keys_of_the_contract(dsms: Dsms) -> None:
    answer = dsms(RANDOM, "--policy", "fifo", "--policy", "rr", "--json")
    level = dict.fromkeys(("max", "mean", "integral"))
    query = dict.fromkeys(("outputs", "latency_mean", "staleness", "shed"))
    assert json.loads(answer.out).keys() == {"plan", "seed", "runs"}
    for run in answer.runs:
        assert keys(run) == {
            **dict.fromkeys(("policy", "elapsed", "turns", "switches", "admitted", "shed", "outputs", "output_rate")),
            "memory": {"tuples": level, "bytes": level, "samples": None},
            "latency": dict.fromkeys(("mean", "p50", "p99", "max")),
            "response": {"mean": None},
            **dict.fromkeys(("longest_wait", "overdue", "starvations", "scheduling", "choices")),
            "staleness": {"mean": None, "weighted": None},
            "queries": {"q": query, "r": query},
        }


def test_json_is_one_line_on_standard_output_and_nothing_else(dsms: Dsms) -> None:
    answer = dsms(RANDOM, "--json")
    assert answer.out.count("\n") == 1
    assert answer.err == ""


def test_json_names_plan_and_policy_as_typed_and_the_seed(dsms: Dsms) -> None:
    answer = dsms(RANDOM, "--policy", "rr:tuples=030", "--json")
    said = json.loads(answer.out)
    assert (said["plan"], said["seed"], said["runs"][0]["policy"]) == ("plan.toml", 1, "rr:tuples=030")
    assert json.loads(dsms(RANDOM + "[run]\nseed = 5", "--json").out)["seed"] == 5
    assert json.loads(dsms(RANDOM + "[run]\nseed = 5", "--seed", "6", "--json").out)["seed"] == 6


def test_fifo_is_the_default_policy(dsms: Dsms) -> None:
    assert one(dsms(RANDOM, "--json")) == one(dsms(RANDOM, "--policy", "fifo", "--json"))


def test_runs_stand_in_the_order_of_the_policies_and_do_not_influence_each_other(dsms: Dsms) -> None:
    alone = [one(dsms(RANDOM, "--policy", name, "--json")) for name in ("rr", "fifo", "rr")]
    together = dsms(RANDOM, "--policy", "rr", "--policy", "fifo", "--policy", "rr", "--json").runs
    assert together == alone


def test_counts_are_whole_numbers_for_individual_tuples(dsms: Dsms) -> None:
    run = one(dsms(LISTED, "--json", "--sample", "1"))
    assert (run["outputs"], run["memory"]["tuples"]["max"], run["queries"]["q"]["outputs"]) == (4, 3, 4)
    for count in (run["outputs"], run["memory"]["tuples"]["max"], run["queries"]["q"]["outputs"]):
        assert isinstance(count, int)
    assert all(isinstance(held, int) for _, held in run["memory"]["samples"])


def test_counts_are_fractions_for_fractional_tuples(dsms: Dsms) -> None:
    run = one(dsms(CHAIN, "--policy", "greedy", "--json"))
    assert isinstance(run["outputs"], float)
    assert isinstance(run["memory"]["tuples"]["max"], float)
    assert isinstance(run["admitted"], int)


def test_figures_of_a_run_that_can_be_done_by_hand(dsms: Dsms) -> None:
    """Arrivals at 0, 1, 2, 3, each taking 2: they leave at 2, 4, 6, 8."""
    run = one(dsms(LISTED, "--json"))
    assert (run["elapsed"], run["turns"], run["switches"], run["admitted"]) == (8, 4, 0, 4)
    assert run["latency"] == pytest.approx({"mean": 3.5, "p50": 3.5, "p99": 4.97, "max": 5})
    assert run["response"] == {"mean": 3.5}
    assert run["memory"]["tuples"] == {"max": 3, "mean": 14 / 8, "integral": 14}
    assert run["memory"]["bytes"] == {"max": 3, "mean": 14 / 8, "integral": 14}
    assert run["output_rate"] == 0.5
    assert run["longest_wait"] == 3
    assert run["staleness"] == {"mean": 1, "weighted": 1}
    assert run["queries"] == {"q": {"outputs": 4, "latency_mean": 3.5, "staleness": 1, "shed": 0}}


def test_staleness_is_weighted_by_query(dsms: Dsms) -> None:
    run = one(dsms(RANDOM, "--json"))
    stale = {name: figures["staleness"] for name, figures in run["queries"].items()}
    assert stale["r"] == 0  # what will be filtered out makes nothing stale
    assert run["staleness"]["mean"] == pytest.approx(stale["q"] / 2)
    assert run["staleness"]["weighted"] == pytest.approx(stale["q"] / 4)


@pytest.mark.parametrize(
    ("plan", "arguments"),
    [
        (LISTED.replace("[0, 1, 2, 3]", "[]"), []),
        (LISTED.replace("[0, 1, 2, 3]", "[]"), ["--until", "5", "--cut"]),
        (LISTED.replace("[0, 1, 2, 3]", "[5]"), ["--until", "3"]),
        (LISTED, ["--until", "0", "--cut"]),
        (LISTED, ["--until", "0"]),
        (LISTED.replace("2.0 }", "2.0, selectivity = 0 }"), []),
        (LISTED + '[run]\ntuples = "fractional"\n', ["--sample", "0.5"]),
        (ENDLESS, ["--until", "5", "--sample", "1"]),
    ],
)
def test_what_does_not_exist_is_null_and_never_nan(dsms: Dsms, plan: str, arguments: list[str]) -> None:
    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} in the JSON")

    answer = dsms(plan, "--json", *arguments)
    assert answer.code == 0, answer.err
    json.loads(answer.out, parse_constant=refuse)


def test_a_run_without_arrivals_has_neither_rate_nor_latency_nor_staleness(dsms: Dsms) -> None:
    run = one(dsms(LISTED.replace("[0, 1, 2, 3]", "[]"), "--json"))
    assert (run["elapsed"], run["turns"], run["admitted"], run["outputs"]) == (0, 0, 0, 0)
    missing = (run["output_rate"], run["response"], run["staleness"], run["queries"]["q"])
    assert [n for n in numbers(list(missing)) if n is not None] == [0, 0]  # the query's outputs, and what it gave up
    assert set(numbers(run["latency"])) == {None}


def test_a_run_without_results_has_no_latency(dsms: Dsms) -> None:
    run = one(dsms(LISTED.replace("2.0 }", "2.0, selectivity = 0 }"), "--json"))
    assert (run["outputs"], run["output_rate"], run["elapsed"]) == (0, 0, 8)
    assert set(numbers(run["latency"])) == {None}
    assert run["queries"]["q"] == {"outputs": 0, "latency_mean": None, "staleness": 0, "shed": 0}


def test_fractional_tuples_have_no_staleness(dsms: Dsms) -> None:
    run = one(dsms(CHAIN, "--json"))
    assert run["staleness"] == {"mean": None, "weighted": None}
    assert run["queries"]["q"]["staleness"] is None


def test_samples_are_empty_without_sample(dsms: Dsms) -> None:
    assert one(dsms(LISTED, "--json"))["memory"]["samples"] == []


def test_samples_are_taken_from_zero_to_the_end(dsms: Dsms) -> None:
    """After the arrivals of the instant: at 2 the first has left, the third has come."""
    run = one(dsms(LISTED, "--json", "--sample", "1"))
    assert run["memory"]["samples"] == [[0, 1], [1, 2], [2, 2], [3, 3], [4, 2], [5, 2], [6, 1], [7, 1], [8, 0]]


@pytest.mark.parametrize(
    ("policy", "expected"), [("greedy", [1, 1.2, 1.4, 1.6, 1.8]), ("fifo", [1, 1.2, 2.0, 2.2, 3.0])]
)
def test_samples_of_the_chain_example_are_the_papers(dsms: Dsms, policy: str, expected: list[float]) -> None:
    samples = one(dsms(CHAIN, "--policy", policy, "--json", "--sample", "1"))["memory"]["samples"]
    assert [held for _, held in samples[:5]] == pytest.approx(expected)


def test_until_admits_an_arrival_at_that_very_instant_and_none_after(dsms: Dsms) -> None:
    for until, admitted in (("0", 1), ("1.999", 2), ("2", 3), ("2.001", 3), ("100", 4)):
        assert one(dsms(LISTED, "--json", "--until", until))["admitted"] == admitted


def test_until_drains_the_queues(dsms: Dsms) -> None:
    run = one(dsms(LISTED, "--json", "--until", "2"))
    assert (run["elapsed"], run["outputs"]) == (6, 3)


def test_until_of_the_plan_gives_way_to_the_option(dsms: Dsms) -> None:
    plan = LISTED + "[run]\nuntil = 2\n"
    assert one(dsms(plan, "--json"))["admitted"] == 3
    assert one(dsms(plan, "--json", "--until", "1"))["admitted"] == 2
    assert one(dsms(plan, "--json", "--until", "9"))["admitted"] == 4


def test_cut_stops_at_until_with_tuples_still_queued(dsms: Dsms) -> None:
    run = one(dsms(LISTED, "--json", "--until", "3", "--cut", "--sample", "1"))
    assert (run["elapsed"], run["admitted"], run["outputs"], run["turns"]) == (3, 4, 1, 1)
    assert run["memory"]["tuples"] == {"max": 2, "mean": 5 / 3, "integral": 5}
    assert run["memory"]["samples"] == [[0, 1], [1, 2], [2, 2], [3, 3]]


def test_cut_counts_a_result_that_leaves_at_that_very_instant(dsms: Dsms) -> None:
    assert one(dsms(LISTED, "--json", "--until", "4", "--cut"))["outputs"] == 2


def test_cut_takes_until_from_the_plan(dsms: Dsms) -> None:
    assert one(dsms(LISTED + "[run]\nuntil = 3\n", "--json", "--cut"))["elapsed"] == 3


def test_cut_without_until_is_refused(dsms: Dsms) -> None:
    message = "dsms: a run can be cut only at an instant: give --until, or `until` in [run]\n"
    assert dsms(LISTED, "--cut") == CommandResult(2, "", message)


def test_an_endless_stream_without_until_is_named(dsms: Dsms) -> None:
    message = "stream 'ticks' never ends: give --until, `until` in [run], or a `count` of its own"
    code, out, err = dsms(ENDLESS)
    assert (code, out) == (2, "")
    assert err.startswith("dsms: ")
    assert message in err


def test_an_endless_stream_ends_at_until(dsms: Dsms) -> None:
    assert one(dsms(ENDLESS, "--until", "10", "--json"))["admitted"] == 11


def test_the_same_seed_gives_the_same_run_and_another_seed_another(dsms: Dsms) -> None:
    first, again, other = (dsms(RANDOM, "--json", "--seed", seed).out for seed in ("3", "3", "4"))
    assert first == again
    assert json.loads(first)["runs"] != json.loads(other)["runs"]


def test_dead_time_is_given_as_a_number_or_a_duration_and_overrides_the_plan(dsms: Dsms) -> None:
    text = RANDOM + "[run]\nturn_cost = '250ms'\nhop_cost = 7"
    (plain,), (own,) = (json.loads(dsms(plan, "--json").out)["runs"] for plan in (RANDOM, text))
    assert own["elapsed"] > plain["elapsed"]
    (number,) = json.loads(dsms(RANDOM, "--turn-cost", "0.25", "--hop-cost", "7", "--json").out)["runs"]
    (without,) = json.loads(dsms(text, "--turn-cost", "0s", "--hop-cost", "0", "--json").out)["runs"]
    assert (number, without) == (own, plain)
    wrong = dsms(RANDOM, "--turn-cost", "-1")
    assert wrong.code == 2
    assert "'-1' is not a number from 0 or a duration, as in '200us'" in wrong.err


def test_a_seed_moves_arrivals_and_fates(dsms: Dsms) -> None:
    listed = LISTED.replace("2.0 }", "2.0, selectivity = 0.5 }")
    outputs = [one(dsms(listed, "--json", "--seed", str(seed)))["outputs"] for seed in range(8)]
    assert len(set(outputs)) > 1
    ends = [one(dsms(RANDOM, "--json", "--seed", str(seed)))["elapsed"] for seed in range(8)]
    assert len(set(ends)) == 8


def test_the_options_seed_goes_before_the_plans(dsms: Dsms) -> None:
    assert one(dsms(RANDOM + "[run]\nseed = 9\n", "--json")) == one(dsms(RANDOM, "--seed", "9", "--json"))


def test_trace_writes_a_line_a_turn(dsms: Dsms, tmp_path: Path) -> None:
    assert dsms(LISTED, "--trace", "turns.jsonl").code == 0
    assert (tmp_path / "turns.jsonl").read_text().splitlines() == [
        f'{{"t": {t}, "stations": ["o"], "consumed": 1, "produced": 1, "cost": 2.0}}' for t in (0.0, 2.0, 4.0, 6.0)
    ]


def test_trace_names_the_stations_of_a_turn_in_the_order_they_ran(dsms: Dsms, tmp_path: Path) -> None:
    run = one(dsms(RANDOM, "--policy", "rr-query", "--trace", "turns.jsonl", "--json"))
    turns = [json.loads(line) for line in (tmp_path / "turns.jsonl").read_text().splitlines()]
    assert len(turns) == run["turns"]
    assert {tuple(turn["stations"]) for turn in turns} == {("o1",), ("o1", "o2"), ("p1",)}
    assert all(list(turn) == ["t", "stations", "consumed", "produced", "cost"] for turn in turns)
    assert sum(turn["produced"] for turn in turns) == run["outputs"]
    assert all(a["t"] + a["cost"] <= b["t"] + 1e-9 for a, b in itertools.pairwise(turns))


def test_trace_has_fractions_for_fractional_tuples(dsms: Dsms, tmp_path: Path) -> None:
    assert dsms(CHAIN, "--policy", "greedy", "--trace", "turns.jsonl").code == 0
    first = json.loads((tmp_path / "turns.jsonl").read_text().splitlines()[0])
    assert first == {"t": 0.0, "stations": ["o1"], "consumed": 1.0, "produced": 0.2, "cost": 1.0}


def test_trace_is_the_same_byte_for_byte(dsms: Dsms, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert dsms(PLANS / "bursts.toml", "--policy", "mtiq", "--until", "20", "--trace", name).code == 0
    assert (tmp_path / "one").stat().st_size > 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_trace_does_not_change_the_run(dsms: Dsms) -> None:
    assert one(dsms(RANDOM, "--json", "--trace", "turns.jsonl")) == one(dsms(RANDOM, "--json"))


def test_trace_wants_a_single_policy(dsms: Dsms, tmp_path: Path) -> None:
    message = "dsms: --trace writes the turns of one run: give one --policy, not 2\n"
    assert dsms(LISTED, "--policy", "fifo", "--policy", "rr", "--trace", "turns.jsonl") == CommandResult(2, "", message)
    assert not (tmp_path / "turns.jsonl").exists()


def test_trace_into_a_folder_that_does_not_exist_is_refused(dsms: Dsms, tmp_path: Path) -> None:
    message = "dsms: the trace 'nowhere/turns.jsonl' cannot be written: No such file or directory\n"
    assert dsms(LISTED, "--trace", "nowhere/turns.jsonl") == CommandResult(2, "", message)


def test_trace_onto_a_folder_is_a_wrong_call(dsms: Dsms, tmp_path: Path) -> None:
    code, out, err = dsms(LISTED, "--trace", str(tmp_path))
    assert (code, out) == (2, "")
    assert str(tmp_path) in err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--sample", "0", "'0' is not a positive number"),
        ("--sample", "-1", "'-1' is not a positive number"),
        ("--sample", "inf", "'inf' is not a positive number"),
        ("--until", "nan", "'nan' is not a number from 0"),
        ("--until", "inf", "'inf' is not a number from 0"),
        ("--until", "-0.5", "'-0.5' is not a number from 0"),
        ("--seed", "-1", "'-1' is not a whole number from 0"),
        ("--seed", "1.5", "'1.5' is not a whole number from 0"),
        ("--seed", "one", "'one' is not a whole number from 0"),
        ("--until", "soon", "'soon' is not a number from 0"),
        ("--sample", "often", "'often' is not a positive number"),
    ],
)
def test_a_wrong_value_of_an_option_is_refused(dsms: Dsms, option: str, value: str, message: str) -> None:
    code, out, err = dsms(LISTED, option, value)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == f"dsms sim: error: argument {option}: {message}"


def test_an_unknown_option_is_refused(dsms: Dsms) -> None:
    code, _, err = dsms(LISTED, "--untill", "3")
    assert code == 2
    assert "--untill" in err


def test_a_call_without_a_plan_or_a_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, missing in ((["sim"], "PLAN"), ([], "COMMAND")):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
        assert f"the following arguments are required: {missing}" in capsys.readouterr().err


def test_help_lists_the_policies(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # names are not broken over lines
    with pytest.raises(SystemExit) as stop:
        main(["sim", "--help"])
    assert stop.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ", ".join(policies()) in said


def test_a_wrong_plan_is_a_wrong_call(dsms: Dsms) -> None:
    message = "dsms: plan.toml: queries.q.operators[0].cost: -2.0 is not a number from 0\n"
    assert dsms(LISTED.replace("cost = 2.0", "cost = -2.0")) == CommandResult(2, "", message)


def test_a_missing_plan_is_a_wrong_call(dsms: Dsms) -> None:
    message = "dsms: nowhere.toml: cannot be read: No such file or directory\n"
    assert dsms(Path("nowhere.toml")) == CommandResult(2, "", message)


def test_a_wrong_policy_is_refused_before_anything_runs(dsms: Dsms, tmp_path: Path) -> None:
    answer = dsms(LISTED, "--policy", "fifo", "--policy", "greedyy", "--json")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("dsms: no policy 'greedyy' (did you mean 'greedy'?); there are ['adaptive', ")
    assert dsms(LISTED, "--policy", "nosuch", "--trace", "turns.jsonl").code == 2
    assert not (tmp_path / "turns.jsonl").exists()


def test_an_unknown_runner_is_told_from_those_that_exist(dsms: Dsms) -> None:
    answer = dsms(LISTED, "--runner", "inlin")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("dsms: no runner 'inlin' (did you mean 'inline'?); there are ['inline', ")


def test_a_function_that_raises_fails_the_run(dsms: Dsms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cli_functions.py").write_text("def fail(batch):\n    raise ValueError('a bad row')\n")
    monkeypatch.syspath_prepend(tmp_path)
    answer = dsms(LISTED.replace("cost = 2.0", 'cost = 2.0, function = "cli_functions:fail"'), "--json")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("dsms: the run failed: ")
    assert "ValueError: a bad row" in answer.err
    assert answer.err.count("\n") == 1


def test_a_failed_run_names_the_operator_that_failed(
    dsms: Dsms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cli_functions.py").write_text("def fail(batch):\n    raise ValueError('a bad row')\n")
    monkeypatch.syspath_prepend(tmp_path)
    plan = LISTED.replace('"o", cost = 2.0', '"cleaner", cost = 2.0, function = "cli_functions:fail"')
    assert "'cleaner'" in dsms(plan).err


def test_the_command_is_installed_and_prints_json(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(LISTED)
    done = subprocess.run(
        [DSMS, "sim", "plan.toml", "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["runs"][0]["outputs"] == 4


def test_ctrl_c_ends_a_long_run_with_one_line_and_130(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(ENDLESS)
    running = subprocess.Popen(
        [DSMS, "sim", "plan.toml", "--until", "1e12", "--trace", "/dev/stdout"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a suite in the background ignores Ctrl-C
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline().startswith('{"t": 0.0, ')  # it is under way
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (running.returncode, err) == (130, "dsms: stopped\n")


@pytest.mark.parametrize("arguments", [["--json"], []])
def test_a_reader_who_has_seen_enough_is_no_failure(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "plan.toml").write_text(LISTED)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [DSMS, "sim", "plan.toml", *arguments],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
