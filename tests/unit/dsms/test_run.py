"""A plan run on files: rows in, results out, bad rows rejected with a reason, nothing lost."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet as pq
import pytest

from dsms import Batch
from dsms.cli import main
from dsms.errors import DsmsError, OperatorError, PlanError
from dsms.io.rejected_row import MalformedRowError
from dsms.run_plan import run

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
    assert (done.rows, done.results, done.rejected, done.dead_letters) == (
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
    assert done.rejected == {("packets", "error"): 2, ("rates.arrange", "late"): 1, ("rates.select", "error"): 1}
    letters = {(letter["where"], letter["reason"].partition(":")[0]): letter for letter in lines(done.dead_letters)}
    assert {where: letter.get("row") or letter["text"] for where, letter in letters.items()} == {
        ("packets", "column 'src'"): "x,1,102",
        ("packets", "2 fields, expected 3"): "2,20",
        ("rates.arrange", "too late by 5 microseconds"): {"src": 7, "size": 1, "at": 105},
        ("rates.select", "division by zero in 100 / size"): {"src": 1, "size": 0, "at": 101},
    }
    assert [row["src"] for row in lines(tmp_path / "rates.jsonl")] == [1, 3, 2]
    assert [row["src"] for row in lines(tmp_path / "counts.jsonl") if row["sign"] > 0] == [1, 1, 3, 2]


def test_the_first_wrong_row_ends_the_run_where_the_plan_says_so(tmp_path):
    with pytest.raises(MalformedRowError, match=r"packets\.csv:4: column 'src': 'x' is not a .*'x,1,102'"):
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
    (("on_error = \"fail\"", "on_error = \"ignore\""), r"run\.on_error: 'ignore' is not a valid choice"),
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


def test_ctrl_c_in_the_middle_of_a_turn_waits_for_its_end(tmp_path):
    """It is not raised between the moments when a batch leaves one queue and enters another."""

    def batches():
        for at in range(0, 50, 10):
            yield Batch.of({"src": [1] * 10, "size": [1] * 10, "at": np.arange(at, at + 10)})

    seen = []

    def sink(batch):
        if not seen:
            signal.raise_signal(signal.SIGINT)
        seen.append(len(batch))

    before = signal.getsignal(signal.SIGINT)
    done = run(plan(tmp_path), sources={"packets": batches()}, sinks={"rates": sink, "counts": len})
    assert (done.stopped, done.rows, sum(seen)) == (True, {"packets": 20}, 20)  # the first are out with the second
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("sinks", "message"), [
    (('{ jsonl = "o.jsonl" }', '{ jsonl = "./o.jsonl" }'), r"query 'rates' writes .*o\.jsonl' already"),
    (('{ csv = "packets.csv" }', '{ jsonl = "o.jsonl" }'), r"stream 'packets' reads .*packets\.csv' already"),
])  # fmt: skip
def test_a_file_is_written_by_one_query_and_never_over_a_source(tmp_path, sinks, message):
    path = plan(tmp_path, sink=sinks[0])
    path.write_text(path.read_text().replace('{ jsonl = "counts.jsonl" }', sinks[1]))
    with pytest.raises(PlanError, match=message):
        run(path)
    assert (tmp_path / "packets.csv").read_text() == GOOD


def test_a_sink_inside_a_folder_that_is_read_is_refused(tmp_path):
    path = plan(tmp_path, sink='{ csv = "rows/out.csv" }')
    (tmp_path / "rows").mkdir()
    (tmp_path / "packets.csv").rename(tmp_path / "rows" / "packets.csv")
    path.write_text(path.read_text().replace('csv = "packets.csv"', 'csv = "rows"'))
    with pytest.raises(PlanError, match=r"stream 'packets' reads .*out\.csv' already"):
        run(path)


def test_a_link_stays_one_and_a_pipe_is_written_to(tmp_path):
    (tmp_path / "link.jsonl").symlink_to("target.jsonl")
    run(plan(tmp_path, sink='{ jsonl = "link.jsonl" }'))
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(lines(tmp_path / "target.jsonl")) == 3
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe").read_text)
        run(plan(tmp_path, sink='{ jsonl = "pipe" }'))
        assert len(read.result(timeout=10).splitlines()) == 3
    assert (tmp_path / "pipe").is_fifo()


def test_dead_letters_of_an_earlier_run_do_not_stay_and_must_have_a_place(tmp_path):
    letters = run(plan(tmp_path, BAD, "dead-letter")).dead_letters
    assert letters.exists()
    assert run(plan(tmp_path, GOOD, "dead-letter")).dead_letters is None
    assert not letters.exists()
    with pytest.raises(DsmsError, match="dead letters cannot go to"):
        run(plan(tmp_path), dead_letters=tmp_path / "nowhere" / "letters.jsonl")


def test_two_streams_cannot_both_read_standard_input(tmp_path):
    path = plan(tmp_path)
    stream = '[streams.{}]\nschema = {{ k = "int64" }}\nsource = {{ csv = "-" }}\n'
    path.write_text(stream.format("a") + stream.format("b") + '[queries.q]\ncql = "SELECT a.k FROM a, b"\n')
    with pytest.raises(PlanError, match=r"\['a', 'b'\] all read standard input"):
        run(path)


OPERATORS = """
[streams.packets]
schema = { src = "int64", query = "string", at = "timestamp" }
timestamp = "at"
source = { csv = "packets.csv" }

[queries.mine]
from = "packets"
operators = [{ name = "odd", function = "odd:odd" }]

[queries.all]
cql = "SELECT * FROM packets"
"""


def test_results_of_operators_of_the_users_are_written_too_in_order_and_without_the_late(tmp_path, capfd):
    (tmp_path / "odd.py").write_text("def odd(batch):\n    return batch.columns['src'] % 2 == 1\n")
    (tmp_path / "packets.csv").write_text("src,query,at\n1,a,5\n2,b,6\n3,c,4\n5,d,7\n")
    (tmp_path / "plan.toml").write_text(OPERATORS)
    done = run(tmp_path / "plan.toml")
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(row["ts"], row["query"]) for row in rows if row["_query"] == "mine"] == [(5, "a"), (7, "d")]
    assert [row["query"] for row in rows if row["_query"] == "all"] == ["a", "b", "d"]
    assert list(done.rejected.values()) == [1]


def test_operators_with_a_declared_cost_are_not_run_on_rows(tmp_path, plans):
    with pytest.raises(PlanError, match=r"'large' has a declared cost and no function: use `dsms sim`"):
        run(plans / "path.toml")


def test_a_sum_that_int64_cannot_hold_is_a_dead_letter_and_others_go_on(tmp_path):
    path = plan(tmp_path, f"src,size,at\n1,{2**62},1\n1,{2**62},2\n2,7,3\n", "dead-letter")
    text = path.read_text().replace("count(*) AS n FROM packets [RANGE 20 MICROSECONDS]", "sum(size) AS n FROM packets")
    path.write_text(text)
    done = run(path)
    assert done.rejected == {("counts.group", "error"): 1}
    assert [row["n"] for row in lines(tmp_path / "counts.jsonl") if row["sign"] > 0] == [2**62, None, 7]
    assert len(lines(tmp_path / "rates.jsonl")) == 3


def test_an_empty_source_gives_what_there_is_of_nothing(tmp_path):
    path = plan(tmp_path, "src,size,at\n")
    path.write_text(
        path.read_text().replace("SELECT src, count(*) AS n", "SELECT count(*) AS n").replace("GROUP BY src", "")
    )
    run(path)
    assert lines(tmp_path / "counts.jsonl") == [{"ts": 0, "sign": 1, "n": 0}]
