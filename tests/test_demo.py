"""The demonstration without a cluster: its plan, its load, what virtual time says of them, and what it prints."""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
import pytest

import dsms
from actors.cli.demo import COLUMNS, PLAN, POLICIES, comparison, deployable
from actors.cli.spectator import line
from actors.demo import functions, load
from dsms.batch import Batch
from dsms.planfile import plan_from, read_table

TABLE = read_table(PLAN)
SECONDS = 12.0


def abstract():
    """The plan in figures alone, with the rows of the load arriving as they are pushed."""
    plan = copy.deepcopy({key: value for key, value in TABLE.items() if key != "live"})
    pushes = load.pushes(TABLE["streams"], SECONDS)
    for name, stream in plan["streams"].items():
        del stream["schema"]
        stream["arrivals"] = {"kind": "list", "at": [p.at for p in pushes if p.stream == name for _ in range(p.count)]}
    for query in plan["queries"].values():
        for operator in query["operators"]:
            del operator["function"]
    return plan_from(plan)


@pytest.fixture(scope="module")
def runs():
    return {policy: dsms.simulate(abstract(), policy) for policy in POLICIES}


def test_the_plan_has_some_twelve_operators_in_four_queries_of_several_weights():
    plan = plan_from(deployable(TABLE), folder=PLAN.parent)
    assert len(plan.stations) in range(12, 16)
    assert len(plan.queries) == 4
    assert len({query.weight for query in plan.queries}) > 1
    assert len(next(station for station in plan.stations if station.name == "valid").consumers) == 3


def test_every_stream_of_the_plan_is_pushed_with_its_columns():
    for push in load.pushes(TABLE["streams"], 1.0):
        assert list(push.rows) == list(TABLE["streams"][push.stream]["schema"])
        assert {len(column) for column in push.rows.values()} == {push.count}


def test_the_load_is_the_same_every_time_and_in_order():
    first, second = (load.pushes(TABLE["streams"], 2.0) for _ in range(2))
    assert [(p.at, p.stream, p.count) for p in first] == [(p.at, p.stream, p.count) for p in second]
    assert all(np.array_equal(a.rows["visitor"], b.rows["visitor"]) for a, b in zip(first, second, strict=True))
    assert [p.at for p in first] == sorted(p.at for p in first)


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
    for push in load.pushes(TABLE["streams"], SECONDS):
        work[int(push.at)] += push.count * cost[push.stream]
    assert 0.65 < sum(work.values()) / SECONDS < 0.85
    assert max(work.values()) > 1.4


def test_the_functions_let_through_what_the_plan_declares():
    draw = np.random.default_rng(5)
    passed = {stream: Batch.of(load.ROWS[stream](draw, 20_000)) for stream in TABLE["streams"]}
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


def test_rows_are_pushed_when_they_are_due():
    pushed, waited = [], []

    class Client:
        def push(self, stream, rows, arrived):
            pushed.append((stream, len(arrived)))

        def flush(self, timeout):
            pushed.append("flushed")

    pushes = load.pushes(TABLE["streams"], 0.5)
    load.played(Client(), pushes, waited.append)
    assert pushed == [*((push.stream, push.count) for push in pushes), "flushed"]
    assert waited == pytest.approx([push.at for push in pushes], abs=0.1)


def test_the_phases_are_shown_side_by_side():
    phase = {
        "policy": "chain",
        "memory_mean": 150.2,
        "memory_max": 900.0,
        "latency_mean": 0.094,
        "latency_p99": 0.9,
        "staleness": 0.364,
        "results": 7162,
        "turns": 493,
        "swap_seconds": 0.0011,
    }
    made = comparison([phase, {**phase, "policy": "fifo", "staleness": None}], 12.0)
    assert [str(column.header) for column in made.columns] == list(COLUMNS)
    assert [next(iter(column.cells)) for column in made.columns] == [
        "chain", "150", "900", "94 ms", "900 ms", "36.4%", "7,162", "493", "1.1 ms",
    ]  # fmt: skip
    assert list(made.columns[COLUMNS.index("stale")].cells) == ["36.4%", "–"]


def test_a_line_says_who_decides_and_how_it_fares():
    domain = {
        "policy": "adaptive",
        "decides": "chain",
        "now": 12.34,
        "held": 1234,
        "latency": {"p50": 0.01, "p99": 0.25},
        "staleness": 0.5,
    }
    said = line({"domains": [domain]})
    assert " ".join(said.split()) == "12.3 s adaptive (chain) 1,234 held p50 10 ms p99 250 ms 50.0% stale"
