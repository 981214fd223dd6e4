"""A plan run on files: rows in, results out, what is wrong set aside with its reason, nothing lost."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from dsms import Batch
from dsms.cli import main
from dsms.errors import OperatorError, PlanError
from dsms.execution import run
from dsms.files.rejected import RowError

PLAN = """
[streams.packets]
schema = {{ src = "int64", size = "int64", at = "timestamp" }}
timestamp = "at"
late = "10us"
source = {{ csv = "packets.csv" }}

[queries.rates]
cql = "SELECT src, 100 / size AS rate FROM packets"
sink = {sink}

[queries.counts]
cql = "SELECT src, count(*) AS n FROM packets [RANGE 20 MICROSECONDS] GROUP BY src"
sink = {{ jsonl = "counts.jsonl" }}

[run]
on_error = "{on_error}"
"""
GOOD = "src,size,at\n1,10,100\n2,20,105\n1,50,130\n"
BAD = "src,size,at\n1,10,100\n1,0,101\nx,1,102\n2,20\n2,25,120\n7,1,105\n3,4,111\n"


def plan(folder, rows=GOOD, on_error="fail", sink='{ jsonl = "rates.jsonl" }'):
    (folder / "packets.csv").write_text(rows)
    path = folder / "plan.toml"
    path.write_text(PLAN.format(on_error=on_error, sink=sink))
    return path


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("policy", ["fifo", "chain", "rr", "fas-mcq"])
@pytest.mark.parametrize("rows", [1, 2, 10_000])
def test_results_are_the_same_whatever_the_policy_and_the_batches(tmp_path, policy, rows):
    done = run(plan(tmp_path), policy, rows=rows)
    assert (done.rows, done.results, done.aside, done.dead_letters) == (
        {"packets": 3},
        {"rates": 3, "counts": 5},
        {},
        None,
    )
    assert lines(tmp_path / "rates.jsonl") == [
        {"ts": 100, "src": 1, "rate": 10},
        {"ts": 105, "src": 2, "rate": 5},
        {"ts": 130, "src": 1, "rate": 2},
    ]
    assert lines(tmp_path / "counts.jsonl") == [
        {"ts": 100, "sign": 1, "src": 1, "n": 1},
        {"ts": 105, "sign": 1, "src": 2, "n": 1},
        {"ts": 121, "sign": -1, "src": 1, "n": 1},
        {"ts": 126, "sign": -1, "src": 2, "n": 1},
        {"ts": 130, "sign": 1, "src": 1, "n": 1},
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "counts.jsonl",
        "packets.csv",
        "plan.toml",
        "rates.jsonl",
    ]


def test_rows_that_are_wrong_go_to_the_dead_letters_with_a_reason_and_no_others(tmp_path):
    done = run(plan(tmp_path, BAD, "dead-letter"))
    assert done.aside == {("packets", "error"): 2, ("rates.arrange", "late"): 1, ("rates.select", "error"): 1}
    letters = {(letter["where"], letter["reason"].partition(":")[0]): letter for letter in lines(done.dead_letters)}
    assert {where: letter.get("row") or letter["text"] for where, letter in letters.items()} == {
        ("packets", "column 'src'"): "x,1,102",
        ("packets", "2 fields given, 3 wanted"): "2,20",
        ("rates.arrange", "too late by 5 microseconds"): {"src": 7, "size": 1, "at": 105},
        ("rates.select", "division by zero in 100 / size"): {"src": 1, "size": 0, "at": 101},
    }
    assert [row["src"] for row in lines(tmp_path / "rates.jsonl")] == [1, 3, 2]
    assert [row["src"] for row in lines(tmp_path / "counts.jsonl") if row["sign"] > 0] == [1, 1, 3, 2]


def test_the_first_wrong_row_ends_the_run_where_the_plan_says_so(tmp_path):
    with pytest.raises(RowError, match=r"packets\.csv:4: column 'src': 'x' given.*'x,1,102'"):
        run(plan(tmp_path, BAD))
    assert not (tmp_path / "rates.jsonl").exists()
    with pytest.raises(OperatorError, match=r"'rates.select'.*division by zero in 100 / size.*'size': 0"):
        run(plan(tmp_path, "src,size,at\n1,0,5\n"))


@pytest.mark.parametrize(("sink", "read"), [
    ('{ csv = "rates.csv" }', lambda folder: (folder / "rates.csv").read_text().splitlines()[1].split(",")[1:]),
    ('{ parquet = "rates.parquet" }', lambda folder: [
        str(value) for value in list(pq.read_table(folder / "rates.parquet").to_pylist()[0].values())[1:]
    ]),
])  # fmt: skip
def test_results_in_other_formats(tmp_path, sink, read):
    run(plan(tmp_path, sink=sink))
    assert [float(value) for value in read(tmp_path)] == [1, 10]


def test_a_run_that_is_stopped_works_off_what_has_come_in(tmp_path):
    def interrupted():
        yield Batch.of({"src": [1, 2], "size": [4, 5], "at": [1, 2]})
        raise KeyboardInterrupt

    done = run(plan(tmp_path), sources={"packets": interrupted()})
    assert done.stopped
    assert len(lines(tmp_path / "rates.jsonl")) == 2


def test_sources_and_sinks_may_be_python(tmp_path):
    got = []
    rows = [Batch.of({"src": [1], "size": [4], "at": [at]}) for at in range(3)]
    done = run(plan(tmp_path), sources={"packets": rows}, sinks={"rates": got.append, "counts": got.append})
    assert done.results == {"rates": 3, "counts": 5}
    assert sum(map(len, got)) == 8


@pytest.mark.parametrize(("change", "message"), [
    (("source = { csv = \"packets.csv\" }", ""), "streams.packets: no source"),
    (("packets.csv", "pakets.csv"), r"streams\.packets\.source.*pakets\.csv"),
    (("jsonl = \"counts", "json = \"counts"), r"queries\.counts\.sink.*no format 'json'.*'jsonl'"),
    (("timestamp = \"at\"", "timestamp = \"src_\""), r"streams\.packets\.timestamp: no column 'src_'"),
    (("late = \"10us\"", "late = \"10 parsecs\""), r"streams\.packets\.late"),
    (("count(*) AS n FROM packets", "count(*) AS n FROM packet"), r"queries\.counts\.cql: line 1.*'packets'"),
    (("on_error = \"fail\"", "on_error = \"ignore\""), r"run\.on_error: 'ignore' is not one of"),
])  # fmt: skip
def test_a_plan_that_cannot_be_run_is_refused_with_the_place(tmp_path, change, message):
    path = plan(tmp_path)
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(PlanError, match=message):
        run(path)


def test_the_command_says_what_it_did(tmp_path, capsys):
    assert main(["run", str(plan(tmp_path, sink='"stdout"')), "--policy", "chain", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["rate"] for line in out.splitlines()] == [10, 5, 2]
    assert json.loads(err)["results"] == {"rates": 3, "counts": 5}


def test_the_command_fails_with_what_is_wrong(tmp_path, capsys):
    assert main(["run", str(plan(tmp_path, BAD))]) == 2
    assert "packets.csv:4" in capsys.readouterr().err
    assert main(["run", str(plan(tmp_path)), "--policy", "fifo", "--policy", "chain"]) == 2
    assert "one --policy" in capsys.readouterr().err


def test_a_plan_of_rows_is_not_simulated(tmp_path, capsys):
    assert main(["sim", str(plan(tmp_path))]) == 2
    assert "`dsms run`" in capsys.readouterr().err
