"""The demonstration without a cluster: its plan, its load, simulated runs of both, and what it prints."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import dsms
from actors.cli.demo import COLUMNS, PLAN, POLICIES, RECORDED, _report, compare_policies
from actors.cli.live_view import format_line
from actors.demo import functions
from actors.demo.prediction import predict_phase
from dsms.live.monitor.status import DeploymentStatus, DomainStatus, LatencyStatus, PhaseStatus
from dsms.query.plan_file import plan_from, read_table
from loadgen.push.pacing import GRAIN_S, make_frames
from loadgen.spec.load import Load, LoadSpec

TABLE = read_table(PLAN)
SECONDS = 12.0


LOAD = Load(LoadSpec.of(PLAN, duration=SECONDS))


def pushes():
    """What goes when: the rows due in each stretch of time, with the last of them."""
    parts = [(rows.stream, replace(rows.batch, arrived=rows.due)) for rows in LOAD.rows(0.0, SECONDS)]
    return make_frames(parts, GRAIN_S)


def abstract():
    """The plan in figures alone, with the rows of the load arriving as they are pushed."""
    plan = copy.deepcopy({key: value for key, value in TABLE.items() if key != "live"})
    for name, stream in plan["streams"].items():
        del stream["schema"], stream["values"]
        at = [frame.at for frame in pushes() if frame.stream == name for _ in range(frame.rows.rows)]
        stream["arrivals"] = {"kind": "list", "at": at}
    for query in plan["queries"].values():
        for operator in query["operators"]:
            del operator["function"]
    return plan_from(plan)


@pytest.fixture(scope="module")
def runs():
    return {policy: dsms.simulate(abstract(), policy) for policy in POLICIES}


def test_the_plan_has_some_twelve_operators_in_four_queries_of_several_weights():
    plan = plan_from(TABLE, folder=PLAN.parent)
    assert len(plan.stations) in range(12, 16)
    assert len(plan.queries) == 4
    assert len({query.weight for query in plan.queries}) > 1
    assert len(next(station for station in plan.stations if station.name == "valid").consumers) == 3


def test_the_load_takes_three_quarters_of_the_cpu_and_more_than_all_of_it_in_bursts():
    cost = {"clicks": 0.0, "logins": 0.0}
    passing = {}
    for query in TABLE["queries"].values():
        before = query["from"]
        for operator in query["operators"]:
            stream, share = passing.get(before, (before, 1.0))
            cost[stream] += share * operator["cost"]
            passing[operator["name"]] = stream, share * operator.get("selectivity", 1.0)
            before = operator["name"]
    work = Counter()
    for frame in pushes():
        work[int(frame.at)] += frame.rows.rows * cost[frame.stream]
    assert 0.65 < sum(work.values()) / SECONDS < 0.85
    assert max(work.values()) > 1.4


def test_the_functions_let_through_what_the_plan_declares():
    passed = {rows.stream: rows.batch for rows in LOAD.rows(0.0, SECONDS)}
    for query in TABLE["queries"].values():
        before = passed[query["from"]]
        for operator in query["operators"]:
            answer = getattr(functions, operator["function"].partition(":")[2])(before)
            after = before.pick(answer) if isinstance(answer, np.ndarray) else answer
            assert len(after) / len(before) == pytest.approx(operator.get("selectivity", 1.0), rel=0.15)
            passed[operator["name"]] = before = after


def test_every_policy_gives_the_same_results(runs):
    assert len({run.outputs for run in runs.values()}) == 1


def test_chain_holds_the_least(runs):
    memory = {policy: run.memory.tuples.mean for policy, run in runs.items()}
    assert min(memory, key=memory.get) == "chain"
    assert memory["chain"] < 0.6 * memory["fifo"]


def test_fas_mcq_is_the_freshest(runs):
    stale = {policy: run.staleness.mean for policy, run in runs.items()}
    assert min(stale, key=stale.get) == "fas-mcq"
    assert stale["fas-mcq"] < 0.7 * stale["fifo"]


def test_fifo_is_the_slowest_in_the_mean(runs):
    latency = {policy: run.latency.mean for policy, run in runs.items()}
    assert max(latency, key=latency.get) == "fifo"


def test_the_phases_are_shown_side_by_side():
    phase = PhaseStatus(
        "chain", 0.0, memory_mean=150.2, memory_max=900.0, latency_mean=0.094, latency_p99=0.9, staleness=0.364,
        results=7162, turns=493, swap_seconds=0.0011,
    )  # fmt: skip
    simulated = replace(phase, memory_mean=151.0, swap_seconds=None)
    phases = [phase, replace(phase, policy="fifo", staleness=None)]
    table = compare_policies(phases, [simulated, simulated], 12.0)
    assert [str(column.header) for column in table.columns] == list(COLUMNS)
    assert [next(iter(column.cells)) for column in table.columns] == [
        "chain", "150", "900", "94 ms", "900 ms", "36.4%", "7,162", "493", "1.1 ms",
    ]  # fmt: skip
    assert [list(column.cells)[1] for column in table.columns] == [
        "  simulated", "151", "900", "94 ms", "900 ms", "36.4%", "7,162", "493", "–",
    ]  # fmt: skip
    assert list(table.columns[COLUMNS.index("stale")].cells) == ["36.4%", "36.4%", "–", "36.4%"]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_prediction_simulates_the_rows_of_the_load_when_they_are_due(runs, policy):
    """The rows go out in frames of 20 ms, which the prediction does not know."""
    predicted = predict_phase(TABLE, policy, SECONDS)
    assert predicted.results == pytest.approx(runs[policy].outputs, rel=0.02)
    assert predicted.memory_mean == pytest.approx(runs[policy].memory.tuples.mean, rel=0.1)
    assert predicted.latency_mean == pytest.approx(runs[policy].latency.mean, rel=0.1)


def test_a_line_shows_the_policy_and_its_figures():
    latency = LatencyStatus(p50=0.01, p99=0.25)
    domain = DomainStatus(
        domain="0", policy="adaptive", decides="chain", now=12.34, held=1234, latency=latency, staleness=0.5
    )
    line = format_line(DeploymentStatus("dsms", 1e9, "0.1.0", domains=[domain]))
    assert " ".join(line.split()) == "12.3 s adaptive (chain) 1,234 held p50 10 ms p99 250 ms 50.0% stale"


def test_a_report_that_cannot_be_made_does_not_take_the_comparison_with_it(tmp_path):
    (tmp_path / RECORDED).mkdir()
    assert _report(None, tmp_path / RECORDED).startswith("no report: ")
