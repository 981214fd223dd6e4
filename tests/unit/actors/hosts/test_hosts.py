"""Stations on hosts without a cluster: plain objects in one process, called like actors."""

from __future__ import annotations

import io
import socket
import sys
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from support.live.domains import fleet_of
from support.messages import pass_on
from support.strategies import FEW, POLICIES, is_suitable, plan_tables, policy

import dsms
from actors.hosts.host import Host
from actors.hosts.host_pool import HostPool
from actors.hosts.runner import ActorRunner
from actors.rpc.messages import get_result, send
from dsms import Batch, Engine, WallClock, plan_from, policy_named
from dsms.data.batch_ref import BatchRef
from dsms.engine.runners import BatchRunner
from dsms.engine.runners.coalescing import COALESCE_LIMIT_ROWS
from dsms.errors import DsmsError, OperatorError
from dsms.measure.trace import TurnTrace


def on_hosts(hosts: int) -> Any:
    return lambda plan, ledger, clock: ActorRunner(plan, ledger, clock, fleet_of(hosts))


def trace_of(plan: dsms.Plan, text: str, runner: Any = None) -> str:
    file = io.StringIO()
    Engine(plan, policy(text), runner=runner, observers=[TurnTrace(file)]).run()
    return file.getvalue()


@pytest.mark.parametrize("hosts", [1, 2, 5])
@FEW
@given(table=plan_tables())
def test_hosts_take_the_same_turns_as_one_process(hosts: int, table: dict[str, Any]) -> None:
    """For every plan and policy, and every spread of stations."""
    plan = plan_from(table)
    for text in POLICIES:
        if is_suitable(text, plan, BatchRunner):
            assert trace_of(plan, text, on_hosts(hosts)) == trace_of(plan, text)


FILTERS = {
    "streams": {"s": {"schema": {"x": "int64"}}},
    "queries": {
        "q": {
            "from": "s",
            "operators": [
                {"name": f"f{n}", "function": lambda batch, n=n: batch.columns["x"] % (n + 2) > 0} for n in range(4)
            ],
        }
    },
    "run": {"statistics": "average"},
}


class ResultHubStub:
    """Records the results that it takes."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, int, list[int]]] = []

    def take(self, results: list[tuple[str, int, Batch]]) -> None:
        self.taken += [(query, number, batch.columns["x"].tolist()) for query, number, batch in results]

    def status(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("name", ["fifo", "chain", "rr-query"])
@pytest.mark.parametrize(("hosts", "sockets"), [(1, False), (2, False), (1, True), (2, True), (4, True)])
def test_rows_that_only_hosts_see_come_out_in_order_and_numbered(name: str, hosts: int, sockets: bool) -> None:
    outlet = ResultHubStub()
    host_pool = fleet_of(hosts, outlet, sockets)
    engine = Engine(
        plan_from(FILTERS),
        policy_named(name),
        clock=WallClock(),
        runner=partial(ActorRunner, host_pool=host_pool),
    )
    values = [np.arange(start, start + 10) for start in range(0, 200, 10)]
    for number, column in enumerate(values):
        get_result(send(host_pool.hosts[0].put, {f"k{number}": Batch.of({"x": column})}))
        engine.push("s", BatchRef(f"k{number}", 10, 80.0))
        if number % 3 == 0:
            engine.step()
    engine.run()
    assert [number for _, number, _ in outlet.taken] == list(range(1, 1 + len(outlet.taken)))
    left = [x for _, _, rows in outlet.taken for x in rows]
    assert left == [x for x in range(200) if all(x % n for n in (2, 3, 4, 5))]
    assert engine.ledger.held == 0
    assert engine.ledger.held_bytes == 0


def test_a_turn_passes_all_hosts_once_with_all_that_its_slice_allows() -> None:
    """Not once per batch: a message between processes costs more than a batch."""
    calls = []

    class CountingHost(Host):
        def grant(self, grant: Any, outputs: Any = ()) -> Any:
            calls.append(self.place)
            return super().grant(grant, outputs)

    host_pool = HostPool([CountingHost() for _ in range(4)])
    engine = Engine(
        plan_from(FILTERS),
        policy_named("rr-query:time=10"),
        clock=WallClock(),
        runner=partial(ActorRunner, host_pool=host_pool),
    )
    for _ in range(20):
        engine.push("s", Batch.of({"x": np.arange(10)}))
    engine.step()
    engine.step()
    calls.clear()  # by now the cost of rows is measured
    for _ in range(20):
        engine.push("s", Batch.of({"x": np.arange(10)}))
    engine.step()
    assert calls == [0, 1, 2, 3]


def test_an_operator_that_fails_in_another_host_fails_the_turn() -> None:
    def broken(batch: Batch) -> Batch:
        raise ValueError("no such thing")

    table = {**FILTERS, "queries": {"q": {**FILTERS["queries"]["q"]}}}
    table["queries"]["q"]["operators"] = [
        *FILTERS["queries"]["q"]["operators"][:2],
        {"name": "bad", "function": broken},
    ]
    host_pool = fleet_of(3, sockets=True)
    engine = Engine(
        plan_from(table), policy_named("rr-query"), clock=WallClock(), runner=partial(ActorRunner, host_pool=host_pool)
    )
    engine.push("s", Batch.of({"x": np.arange(10)}))
    with pytest.raises(OperatorError, match=r"operator 'bad' raised ValueError: no such thing"):
        engine.run()


def test_the_wait_for_missing_rows_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.hosts.host.BATCH_WAIT_S", 0.01)
    engine = Engine(plan_from(FILTERS), policy_named("fifo"), clock=WallClock(), runner=on_hosts(2))
    engine.push("s", BatchRef("lost", 10, 80.0))
    with pytest.raises(DsmsError, match=r"the rows of 'lost' did not arrive within 0.01 s"):
        engine.run()


def test_a_stream_with_timestamps_of_its_own_is_read_by_reference() -> None:
    table = {
        "streams": {"s": {"schema": {"k": "int64", "at": "int64"}, "timestamp": "at"}},
        "queries": {"q": {"cql": "SELECT k, count(*) AS n FROM s [RANGE 5 MICROSECONDS] GROUP BY k"}},
    }
    rows = {"k": [1, 1, 2, 1], "at": [1, 3, 4, 9]}

    def results(runner: Any, parcel: bool) -> list[Any]:
        left: list[Any] = []
        engine = Engine(
            plan_from(table),
            policy_named("fifo"),
            clock=WallClock(),
            runner=runner,
            sink=lambda _, batch: left.extend(zip(batch.each("sign").tolist(), batch.records(), strict=True)),
        )
        if parcel:
            assert isinstance(engine.runner, ActorRunner)
            engine.runner.host_pool.hosts[0].put({"k": Batch.of(rows)})
        engine.push("s", BatchRef("k", 4, 64.0, latest=9) if parcel else Batch.of(rows))
        engine.end()
        engine.run()
        return left

    assert results(on_hosts(3), True) == results(None, False) != []


def test_user_code_that_exits_ends_the_turn_and_not_the_wait_for_it() -> None:
    def broken(batch: Batch) -> Batch:
        sys.exit(3)

    table = {**FILTERS, "queries": {"q": {"from": "s", "operators": [{"name": "bad", "function": broken}]}}}
    runner = partial(ActorRunner, host_pool=fleet_of(1, sockets=True))
    engine = Engine(plan_from(table), policy_named("fifo"), clock=WallClock(), runner=runner)
    engine.push("s", Batch.of({"x": np.arange(10)}))
    with pytest.raises(OperatorError, match="SystemExit: 3"):
        engine.run()


def test_a_caller_that_never_authenticates_blocks_no_other() -> None:
    host = Host()
    stranger = socket.socket(socket.AF_UNIX)
    stranger.connect(f"\0{host.listen_address().name}")
    host_pool = HostPool([host], sockets=True)
    runner = partial(ActorRunner, host_pool=host_pool)
    engine = Engine(plan_from(FILTERS), policy_named("fifo"), clock=WallClock(), runner=runner)
    engine.push("s", Batch.of({"x": np.arange(10)}))
    engine.run()
    assert engine.admitted == 10
    assert engine.ledger.held == 0
    host_pool.close()
    stranger.close()


def test_a_function_that_writes_into_its_rows_does_not_change_those_of_other_queries() -> None:
    def write(batch: Batch) -> Any:
        batch.columns["x"][:] = 0
        return batch.columns["x"] >= 0

    operators = {"a": {"name": "f", "function": write}, "b": {"name": "g", "function": lambda b: b.columns["x"] >= 0}}
    queries = {name: {"from": "s", "operators": [operator]} for name, operator in operators.items()}
    settings = {"streams": {"s": {"schema": {"x": "int64"}}}, "queries": queries, "run": {"on_error": "dead-letter"}}
    left: list[Any] = []
    engine = Engine(
        plan_from(settings),
        policy_named("fifo"),
        clock=WallClock(),
        runner=on_hosts(1),
        sink=lambda query, batch: left.append((query, batch.columns["x"].tolist())),
    )
    engine.push("s", pass_on(Batch.of({"x": np.arange(5)})))
    engine.run()
    assert left == [("b", [0, 1, 2, 3, 4])]


def test_results_before_an_error_are_sent() -> None:
    def third(batch: Batch) -> Batch:
        if batch.columns["x"][0] == 2:
            raise ValueError("the third")
        return batch

    outlet = ResultHubStub()
    table = {**FILTERS, "queries": {"q": {"from": "s", "operators": [{"name": "some", "function": third}]}}}
    runner = partial(ActorRunner, host_pool=fleet_of(1, outlet, sockets=True))
    engine = Engine(plan_from(table), policy_named("rr:time=10"), clock=WallClock(), runner=runner)
    for x in range(3):
        engine.push("s", Batch.of({"x": [x] * COALESCE_LIMIT_ROWS}))  # too large to share a step
    with pytest.raises(OperatorError, match="the third"):
        engine.run()
    left = Counter(x for _, _, rows in outlet.taken for x in rows)
    assert left == {0: COALESCE_LIMIT_ROWS, 1: COALESCE_LIMIT_ROWS}
