"""Recordings contain all events of a run, in whole parts, even if the run crashes."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.live.domains import PushedDomain
from support.paths import TESTS

import dsms
from dsms import Batch, Engine, PacedClock, plan_from, policy_named
from dsms.cli import main
from dsms.clock import RealClock
from dsms.config.live import LiveConfig
from dsms.data.batch_ref import BatchRef
from dsms.engine.runners import BatchRunner
from dsms.errors import DsmsError
from dsms.io.table_parts import DictionaryColumn, read_parts, write_part
from dsms.live.monitor.status import RecordingStatus
from dsms.live.query_set import QuerySet
from dsms.recording import RunRecorder, read_recordings, recorder
from dsms.recording import part_writer as parts
from dsms.recording.manifest import safe_name
from dsms.recording.recording import Recording

SCHEMAS = {
    "turns": {"turn": "int64", "at": "double", "station": "string", "taken": "double", "made": "double",
              "cost": "double", "policy": "string"},
    "arrivals": {"at": "double", "stream": "string", "rows": "int64", "lag": "double"},
    "outputs": {"at": "double", "query": "string", "arrived": "double", "rows": "int64"},
    "memory": {"at": "double", "held": "double", "held_bytes": "double"},
    "phases": {"at": "double", "policy": "string", "reason": "string"},
}  # fmt: skip
STREAM = {"schema": {"id": "int64"}}
QUERY = {"cql": "SELECT id FROM s WHERE id % 2 = 0"}


def whole(recording: Recording, table: str) -> dict[str, np.ndarray]:
    """All parts of a table together, with names as texts."""
    parts = list(recording.table(table))
    each = [{n: c.each() if isinstance(c, DictionaryColumn) else c for n, c in part.items()} for part in parts]
    return {name: np.concatenate([part[name] for part in each]) for name in each[0]}


def held_mean(memory: dict[str, np.ndarray], column: str, length: float) -> float:
    return float((memory[column][1:] * np.diff(memory["at"])).sum() / length)


@pytest.mark.parametrize("small", [False, True], ids=["one part", "many parts"])
@pytest.mark.parametrize("plan", ["bursts", "fork", "join", "queries"])
@pytest.mark.parametrize("policy", ["fifo", "chain", "rr-query", "adaptive"])
def test_a_recording_has_all_that_the_run_had(plans, tmp_path, monkeypatch, plan, policy, small):
    if small:
        monkeypatch.setattr(recorder, "PART_ROWS", 100)
    run = dsms.simulate(plans / f"{plan}.toml", policy, record=tmp_path, until=60)
    [recording] = read_recordings(tmp_path)
    turns, outputs, memory = (whole(recording, table) for table in ("turns", "outputs", "memory"))
    assert recording.complete
    assert recording.about["until"] == run.elapsed
    assert whole(recording, "arrivals")["rows"].sum() == run.admitted
    assert outputs["rows"].sum() == run.outputs
    assert {name: outputs["rows"][outputs["query"] == name].sum() for name in run.queries} == {
        name: query.outputs for name, query in run.queries.items()
    }
    assert len(np.unique(turns["turn"])) == run.turns == turns["turn"][-1] + 1
    late = ((outputs["at"] - outputs["arrived"]) * outputs["rows"]).sum() / outputs["rows"].sum()
    assert late == pytest.approx(run.latency.mean, rel=1e-12)
    assert held_mean(memory, "held", run.elapsed) == pytest.approx(run.memory.tuples.mean, rel=1e-12)
    if recording.about["streams"][0]["size"] != 1:
        assert held_mean(memory, "held_bytes", run.elapsed) == pytest.approx(run.memory.bytes.mean, rel=1e-12)
    for table in ("turns", "arrivals", "outputs", "memory"):
        assert (np.diff(whole(recording, table)["at"]) >= -1e-12).all(), table


def test_steps_begin_one_after_the_other_within_a_turn(tmp_path):
    dsms.simulate(TESTS / "plans/fork.toml", "rr-query", record=tmp_path)
    turns = whole(read_recordings(tmp_path)[0], "turns")
    same = np.diff(turns["turn"]) == 0
    assert same.any()
    assert np.diff(turns["at"])[same] == pytest.approx(turns["cost"][:-1][same])


def test_the_columns_are_those_of_the_contract(plans, tmp_path):
    dsms.simulate(plans / "path.toml", "rr:tuples=30", record=tmp_path, until=50)
    for table, columns in SCHEMAS.items():
        [part] = (tmp_path / "rr-tuples-30" / table).iterdir()
        schema = parquet.read_schema(part)
        types = {f.name: f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in schema}
        assert {name: str(kind) for name, kind in types.items()} == columns, table
    about = json.loads((tmp_path / "rr-tuples-30/run.json").read_text())
    assert about["version"] == 1
    assert about["complete"] is True
    assert [about[key] for key in ("runtime", "clock", "name")] == ["sim", "virtual", "rr-tuples-30"]
    assert about["stations"][1] == {
        "name": "match", "query": "heavy", "inputs": ["large"], "sink": True, "size": 1.0, "cost": 5.0,
        "selectivity": 1.0, "startup": 0.0, "take": None, "host": None,
    }  # fmt: skip
    assert np.isnan(whole(read_recordings(tmp_path)[0], "memory")["held_bytes"]).all()


def test_phases_tell_who_was_in_charge_and_turns_who_decided(tmp_path):
    plan = plan_from({
        "streams": {"s": {"arrivals": {"kind": "constant", "every": 1, "count": 40}}},
        "queries": {"q": {"from": "s", "operators": [{"name": "o", "cost": 0.5}]}},
    })  # fmt: skip
    watching = RunRecorder(tmp_path / "r", "sim")
    engine = Engine(plan, policy_named("fifo"), observers=[watching])
    for _ in range(20):
        engine.step()
    watching.reason = "it was time"
    engine.swap(policy_named("mtiq"))
    swapped = engine.clock.now()
    engine.run()
    engine.finish(engine.clock.now())
    watching.finish(engine.clock.now())
    [recording] = read_recordings(tmp_path)
    assert recording.phases() == [(0.0, "fifo", "first"), (swapped, "mtiq", "it was time")]
    turns = whole(recording, "turns")
    assert (turns["policy"] == np.where(turns["at"] < swapped, "fifo", "mtiq")).all()


def test_a_selector_is_one_phase_and_its_candidates_decide(plans, tmp_path):
    run = dsms.simulate(plans / "bursts.toml", "adaptive", record=tmp_path, until=60)
    [recording] = read_recordings(tmp_path)
    assert [policy for _, policy, _ in recording.phases()] == ["adaptive"]
    assert set(whole(recording, "turns")["policy"]) == {choice["chosen"] for choice in run.choices}


def test_a_folder_in_which_something_is_is_refused_before_anything_runs(plans, tmp_path, capsys):
    dsms.simulate(plans / "path.toml", "fifo", record=tmp_path, until=20)
    arguments = ["sim", str(plans / "path.toml"), "--policy", "chain", "--policy", "fifo", "--record", str(tmp_path)]
    assert main(arguments) == 2
    assert f"recording to '{tmp_path}/fifo': the folder is not empty; give another folder" in capsys.readouterr().err
    assert not (tmp_path / "chain").exists()


def test_two_runs_cannot_go_to_one_folder(plans, tmp_path, capsys):
    arguments = ["--policy", "rr:tuples=3", "--policy", "rr:tuples=3", "--record", str(tmp_path)]
    assert main(["sim", str(plans / "path.toml"), *arguments]) == 2
    assert "--record writes 2 policies to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("fifo", "fifo"),
        ("qos-chain:memory=0.5,delay=0.5", "qos-chain-memory-0.5-delay-0.5"),
        ("../x", "x"),
        ("::", "run"),
    ],
)
def test_a_policy_gives_a_safe_name_to_a_folder(text, name):
    assert safe_name(text) == name


def test_rows_are_recorded_with_their_counts_and_measured_costs(tmp_path):
    done = dsms.run(
        TESTS / "plans/auction.toml",
        sinks=dict.fromkeys(("high", "best", "busy", "met", "unasked"), len),
        record=tmp_path,
    )
    [recording] = read_recordings(tmp_path)
    arrivals, outputs, turns = (whole(recording, table) for table in ("arrivals", "outputs", "turns"))
    assert (recording.name, recording.about["clock"], recording.about["runtime"]) == ("run", "wall", "run")
    assert abs(recording.about["began"] - time.time()) < 60
    for stream, rows in done.rows.items():
        assert arrivals["rows"][arrivals["stream"] == stream].sum() == rows
    for query, rows in done.results.items():
        assert outputs["rows"][outputs["query"] == query].sum() == rows
    assert len(np.unique(turns["turn"])) == done.turns
    assert turns["cost"].sum() > 0


def domain_with(folder, setup, table=None):
    table = table or {"streams": {"s": STREAM}, "queries": {"even": QUERY}}
    watching = RunRecorder(folder / "0", "live", strict=False, began=0.0)
    domain = PushedDomain("0", QuerySet(table), setup, recorder=watching)
    domain.start()
    return domain


def rows(start, count=10):
    return Batch.of({"id": np.arange(start, start + count)})


def test_a_recording_goes_on_when_queries_come_and_go_and_policies_change(tmp_path):
    domain = domain_with(tmp_path, LiveConfig())
    domain.admit([("s", rows(0))])
    domain.ask(lambda: domain.engine.run()).result()
    domain.add({"queries": {"odd": {"cql": "SELECT id FROM s WHERE id % 2 = 1"}}})
    domain.admit([("s", rows(10))])
    domain.ask(lambda: domain.engine.run()).result()
    domain.swap("mtiq", "a burst")
    domain.remove("even")
    domain.admit([("s", rows(20))])
    domain.ask(lambda: domain.engine.run()).result()
    assert domain.status().recorded == RecordingStatus(str(tmp_path / "0"))
    domain.close()
    [recording] = read_recordings(tmp_path)
    outputs, arrivals = whole(recording, "outputs"), whole(recording, "arrivals")
    assert recording.complete
    assert arrivals["rows"].tolist() == [10, 10, 10]
    assert {name: outputs["rows"][outputs["query"] == name].sum() for name in ("even", "odd")} == {
        "even": 10,
        "odd": 10,
    }
    assert {one["query"] for one in recording.about["stations"]} == {"even", "odd"}
    assert [phase[1:] for phase in recording.phases()] == [("fifo", "first"), ("mtiq", "a burst")]


def test_the_reason_of_a_swap_is_kept_though_a_selector_swaps_again_at_once(tmp_path):
    domain = domain_with(tmp_path, LiveConfig())
    for start, policy in enumerate(("adaptive", "chain", "adaptive")):
        domain.admit([("s", rows(10 * start))])
        domain.swap(policy, f"turn {start}")
        domain.ask(lambda: domain.engine.run()).result()
    domain.close()
    reasons = [reason for *_, reason in read_recordings(tmp_path)[0].phases()]
    assert reasons == ["first", "turn 0", "turn 1", "turn 2"]


def test_the_least_that_had_to_be_held_is_recorded_on_a_real_clock(tmp_path):
    operators = [{"name": "a", "cost": 1e-3, "selectivity": 0.2}, {"name": "b", "cost": 1e-3, "selectivity": 0.5}]
    streams = {"s": {"arrivals": {"kind": "list", "at": [0.0] * 100 + [0.15] * 100}}}
    run = {"tuples": "fractional", "slice": 0.004}
    plan = plan_from({"streams": streams, "queries": {"q": {"from": "s", "operators": operators}}, "run": run})

    class Scripted(RealClock):
        """Counts as a real clock, but takes no time."""

        budget = 1.0
        at = 0.0

        def now(self):
            return self.at

        def wait_until(self, instant):
            self.at = instant

        def spend(self, cost):
            self.at += cost
            return self.at

    watching = RunRecorder(tmp_path / "live", "live")
    engine = Engine(plan, policy_named("fifo"), clock=Scripted(), observers=[watching])
    engine.run()
    engine.fold()
    watching.finish(engine.clock.now())
    recording = read_recordings(tmp_path)[0]
    schema = parquet.read_schema(tmp_path / "live/bound/part-00000.parquet")
    assert {field.name: str(field.type) for field in schema} == {"at": "double", "tuples": "double"}
    bound, memory = whole(recording, "bound"), whole(recording, "memory")
    assert len(bound["at"]) > 20
    assert (np.diff(bound["at"]) > 0).all()
    held = memory["held"][np.searchsorted(memory["at"], bound["at"])]
    assert (bound["tuples"] <= held + 1e-9).all()
    # Both operators are one piece: a fifth of the rows reaches the second, and is gone after it; 1.2 ms for a row.
    first = bound["at"] <= 0.1
    assert first.sum() > 10
    assert bound["tuples"][first] == pytest.approx(100 - bound["at"][first] / 1.2e-3)


def test_a_plan_that_the_policy_refuses_leaves_the_recording_with_the_engine_there_is(tmp_path):
    domain = domain_with(tmp_path, LiveConfig(policy="mtiq"))
    refused = {"queries": {"odd": {"cql": "SELECT id FROM s WHERE id % 2 = 1"}}}

    def refuse(*_):
        raise DsmsError("not this one")

    before = domain.engine.control.policy
    type(before).segments, kept = refuse, type(before).segments
    try:
        with pytest.raises(DsmsError, match="not this one"):
            domain.add(refused)
    finally:
        type(before).segments = kept
    domain.admit([("s", rows(0))])
    domain.ask(lambda: domain.engine.run()).result()
    domain.close()
    [recording] = read_recordings(tmp_path)
    assert whole(recording, "outputs")["rows"].sum() == 5
    assert {one["query"] for one in recording.about["stations"]} == {"even"}


def test_the_lag_says_how_long_ago_rows_were_due(tmp_path):
    plan = plan_from(
        {"streams": {"s": {}}, "queries": {"q": {"from": "s", "operators": [{"name": "o", "cost": 1e-3}]}}}
    )
    watching = RunRecorder(tmp_path / "r", "live")
    engine = Engine(plan, policy_named("fifo"), clock=PacedClock(), observers=[watching], runner=BatchRunner)
    due = engine.clock.now() - 0.5
    engine.push("s", BatchRef("a", 3, 24.0, due=due))
    engine.push("s", BatchRef("b", 2, 16.0))
    engine.finish(engine.clock.now())
    watching.finish(engine.clock.now())
    arrivals = whole(read_recordings(tmp_path)[0], "arrivals")
    assert arrivals["rows"].tolist() == [3, 2]
    assert arrivals["lag"] == pytest.approx([0.5, 0.0], abs=0.1)
    assert arrivals["lag"][0] == arrivals["at"][0] - due


KILLED = """
import os, pathlib, signal, sys, time
import dsms
from dsms.recording import recorder
recorder.PART_ROWS = 2000
def kill(now):
    if now > 100:
        run, tables = pathlib.Path(sys.argv[2], "fifo"), ("turns", "arrivals", "memory")
        while not all(any(run.glob(table + "/part-*")) for table in tables):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
dsms.simulate(sys.argv[1], "fifo", record=sys.argv[2], progress=kill)
"""


def test_a_run_that_is_killed_leaves_whole_parts_that_can_be_read(plans, tmp_path, capsys):
    plan = str(plans / "bursts.toml")
    ended = subprocess.run([sys.executable, "-c", KILLED, plan, str(tmp_path)], timeout=60, check=False)
    assert ended.returncode == -9
    [recording] = read_recordings(tmp_path)
    assert not recording.complete
    arrivals, turns = whole(recording, "arrivals"), whole(recording, "turns")
    full = dsms.simulate(plan, "fifo", record=tmp_path / "full")
    [same] = read_recordings(tmp_path / "full")
    assert 1000 < len(turns["at"]) < len(whole(same, "turns")["at"]) == full.turns
    for name, column in turns.items():
        assert (column == whole(same, "turns")[name][: len(column)]).all(), name
    assert arrivals["at"].tolist() == whole(same, "arrivals")["at"][: len(arrivals["at"])].tolist()
    assert main(["whatif", str(tmp_path / "fifo"), "--policy", "fifo"]) == 0
    assert "the recording is incomplete" in capsys.readouterr().out


def test_a_disk_that_cannot_be_written_to_ends_a_simulation_with_the_reason(plans, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "PART_ROWS", 100)
    with pytest.raises(DsmsError, match=r"recording to '.*fifo' failed: File exists"):
        Spoiled(tmp_path / "fifo/memory").run(plans / "path.toml", tmp_path)


class Spoiled(dsms.Observer):
    """Puts a file where a table's folder would be, before the first part is written."""

    def __init__(self, place):
        self._place = place

    def begin(self, now):
        if not self._place.exists():
            self._place.touch()

    def run(self, plan, folder):
        return dsms.simulate(plan, "fifo", record=folder, observers=[self])


def test_a_live_domain_goes_on_when_its_recording_fails_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "PART_ROWS", 1)
    monkeypatch.setattr(parts, "MAX_QUEUED_PARTS", 0)  # as many as there are: how fast the disk is does not matter here
    found = []
    watching = RunRecorder(tmp_path / "0", "live", strict=False)
    (tmp_path / "0/memory").touch()
    table = {"streams": {"s": STREAM}, "queries": {"even": QUERY}}
    domain = PushedDomain(
        "0", QuerySet(table), LiveConfig(), recorder=watching, sink=lambda query, batch: found.append(len(batch))
    )
    domain.start()
    rounds = 0
    deadline = time.monotonic() + 30
    while rounds < 10 or (domain.status().recorded.error is None and time.monotonic() < deadline):
        domain.admit([("s", rows(10 * rounds))])
        domain.ask(lambda: domain.engine.run()).result()
        rounds += 1
    status = domain.status()
    domain.close()
    assert sum(found) == 5 * rounds
    assert status.error is None
    assert status.recorded.error.endswith("failed: File exists")
    assert not read_recordings(tmp_path)[0].complete


def test_a_folder_that_cannot_be_made_is_said_at_once(plans, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DsmsError, match=r"recording to '.*file/fifo': Not a directory"):
        dsms.simulate(plans / "path.toml", "fifo", record=tmp_path / "file")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda run: (run / "run.json").unlink(), "no run.json in it"),
        (lambda run: (run / "run.json").write_text("{"), "run.json cannot be read"),
        (lambda run: (run / "run.json").write_text('{"version": 7}'), "version 7; this dsms reads version 1"),
        (lambda run: (run / "turns/part-00000.parquet").write_bytes(b"PAR1"), "cannot be read as a part"),
        (lambda run: write_part(run / "turns", 0, {"at": np.zeros(3)}), "no column 'turn'; there are ['at']"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_recording_is_said(plans, tmp_path, capsys, spoil, said):
    dsms.simulate(plans / "path.toml", "fifo", record=tmp_path, until=20)
    spoil(tmp_path / "fifo")
    assert main(["whatif", str(tmp_path), "--policy", "chain"]) == 2
    assert said in capsys.readouterr().err


def test_where_there_is_no_recording_it_is_said_how_to_make_one(tmp_path, capsys):
    assert main(["whatif", str(tmp_path / "none"), "--policy", "chain"]) == 2
    assert "there is no such folder; make one with `--record DIR` of sim, run or up" in capsys.readouterr().err


def test_a_part_is_not_there_before_it_is_whole(tmp_path):
    with pytest.raises(pa.ArrowInvalid):
        write_part(tmp_path, 0, {"at": np.zeros(3), "rows": np.zeros(2)})
    assert list(read_parts(tmp_path, ["at"])) == []


def test_tables_are_read_in_step(tmp_path):
    for table, instants in {"memory": ([0, 1], [2, 3], [9]), "arrivals": ([0, 5], [6, 7])}.items():
        for number, at in enumerate(instants):
            none, names = np.zeros(len(at)), DictionaryColumn(np.zeros(len(at), np.int64), ["s"])
            others = {"held": none, "held_bytes": None, "stream": names, "rows": none, "lag": none}
            write_part(tmp_path / table, number, {"at": np.array(at, np.float64), **others})
    steps = [
        {name: part["at"].tolist() for name, part in parts.items()}
        for parts in Recording(tmp_path, {}).together("memory", "arrivals")
    ]
    assert steps == [
        {"memory": [0, 1], "arrivals": [0]},
        {"memory": [2, 3]},
        {"arrivals": [5]},
        {"arrivals": [6, 7]},
        {"memory": [9]},
    ]
