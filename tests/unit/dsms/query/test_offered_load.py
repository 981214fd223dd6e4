"""The load that streams offer: computed by hand, and compared with the utilisation of a simulated CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.paths import PLANS

from dsms.arrivals import ARRIVAL_KINDS
from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.errors import PlanError
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment
from dsms.query.offered_load import utilisation, work_per_tuple
from dsms.query.plan_file import plan_from, read_plan
from dsms.simulation import simulate


class Busy(Observer):
    """The time that turns have taken."""

    total = 0.0

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        self.total += sum(step.cost for step in steps)


def operator(name: str, cost: float, selectivity: float = 1.0, *inputs: str, **more: Any) -> dict[str, Any]:
    reads = {"inputs": list(inputs)} if inputs else {}
    return {"name": name, "cost": cost, "selectivity": selectivity, **reads, **more}


def plan(queries: dict[str, list[dict[str, Any]]], **arrivals: dict[str, Any]) -> Plan:
    made = {name: {"from": next(iter(arrivals)), "operators": operators} for name, operators in queries.items()}
    return plan_from({"streams": {n: {"arrivals": table} for n, table in arrivals.items()}, "queries": made})


PATH = {"q": [operator("a", 1, 0.2), operator("b", 5)]}
FORK = {"q": [operator("root", 1, 0.8), operator("left", 0.5, 0.5, "root"), operator("right", 1.5, 1, "root")]}
GROWING = {"q": [operator("a", 1, 2.5), operator("b", 0.4, 1.5), operator("c", 0.2)]}
SHARED = {"p": [operator("a", 1, 0.5), operator("b", 2)], "q": [operator("c", 3, 1, "p.a"), operator("d", 1, 1, "s")]}
JOIN = {
    "q": [operator("f", 1, 0.5, "s"), operator("g", 2, 0.25, "t"), operator("j", 4, 1.5, "f", "g"), operator("k", 1)]
}
POISSON = {"kind": "poisson", "utilisation": 0.5}
ALL = {
    "path": (PATH, {"s": 1 + 0.2 * 5}),
    "fork": (FORK, {"s": 1 + 0.8 * (0.5 + 1.5)}),
    "growing": (GROWING, {"s": 1 + 2.5 * (0.4 + 1.5 * 0.2)}),
    "shared": (SHARED, {"s": 1 + 0.5 * (2 + 3) + 1}),
    "join": (JOIN, {"s": 1 + 0.5 * (4 + 1.5 * 1), "t": 2 + 0.25 * (4 + 1.5 * 1)}),
}


@pytest.mark.parametrize("name", ALL)
def test_work_of_a_tuple_is_the_cost_of_all_it_reaches(name: str) -> None:
    queries, expected = ALL[name]
    made = plan(queries, **{stream: {"kind": "poisson", "rate": 1} for stream in expected})
    assert work_per_tuple(made) == pytest.approx(expected)
    rates = {stream: 0.1 * place for place, stream in enumerate(expected, start=1)}
    total = sum(rate * expected[stream] for stream, rate in rates.items())
    assert utilisation(made, rates) == pytest.approx(total)
    assert utilisation(made, rates, budget=0.25) == pytest.approx(4 * total)


def test_start_up_is_spread_over_what_a_run_takes() -> None:
    made = plan({"q": [operator("a", 1, 1, startup=6, take=4)]}, s={"kind": "push"})
    assert work_per_tuple(made) == {"s": 2.5}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ALL)
def test_cpu_is_busy_for_the_share_that_is_asked_for(name: str, seed: int) -> None:
    """Half of it in all: within 4 %, over 10,000 arrivals or more of each stream and two seeds."""
    queries, work = ALL[name]
    share = 0.5 / len(work)
    made = plan(queries, **{stream: {"kind": "poisson", "utilisation": share} for stream in work})
    busy, end = Busy(), 10_000 * max(work.values()) / share
    run = simulate(made, "fifo", until=end, cut=True, seed=seed, observers=[busy])
    assert run.admitted > 9_500 * len(work)
    assert busy.total / end == pytest.approx(0.5, rel=0.04)


SHAPES: dict[str, dict[str, Any]] = {
    "constant": {},
    "poisson": {},
    "bursts": {"group": 5},
    "pareto": {"packets": 3, "shortest": 1, "alpha": 2.5},
    "onoff": {"alpha": 1.8},
    "piecewise": {"rates": [1, 10]},
    "diurnal": {"period": 50},
    "flash": {"at": 5, "peak": 10, "decay": 3, "every": 40},
    "trace": {"path": "trace.csv", "loop": True},
}


def test_every_kind_that_has_a_mean_rate_takes_a_utilisation() -> None:
    assert {kind for kind, (_, keys) in ARRIVAL_KINDS.items() if "utilisation" in keys} == SHAPES.keys()
    assert ARRIVAL_KINDS.keys() - SHAPES.keys() == {"list", "file", "push"}


@pytest.mark.parametrize("kind", SHAPES)
def test_rate_of_every_kind_follows_from_the_utilisation(kind: str, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("at\n3\n4\n9\n")
    arrivals = {"kind": kind, "utilisation": 0.8, **SHAPES[kind]}
    table = {"streams": {"s": {"arrivals": arrivals}}, "queries": {"q": {"from": "s", "operators": PATH["q"]}}}
    stream = plan_from(table, folder=tmp_path).streams[0]
    assert stream.arrivals is not None
    assert stream.arrivals(1).rate == pytest.approx(0.4)
    assert len(stream.arrivals(1).between(1000, 51_000)) / 50_000 == pytest.approx(0.4, rel=0.06)


def test_utilisation_of_queries_on_rows_is_refused() -> None:
    streams = {"s": {"schema": {"x": "int64"}, "arrivals": POISSON}}
    with pytest.raises(PlanError) as caught:
        plan_from({"streams": streams, "queries": {"q": {"cql": "SELECT x FROM s WHERE x > 3"}}})
    assert caught.value.place == "streams.s"
    assert "operators without a declared cost (q" in caught.value.message
    assert caught.value.message.endswith("no rate can be computed from a utilisation; give a `rate`")
    user = {"from": "s", "operators": [{"name": "f", "function": len}]}
    with pytest.raises(PlanError, match=r"without a declared cost \(f\)"):
        plan_from({"streams": streams, "queries": {"q": user}})


def test_functions_of_declared_cost_have_a_utilisation_also_where_rows_are_put_in_order() -> None:
    stream = {"schema": {"at": "timestamp"}, "timestamp": "at", "arrivals": POISSON}
    user = {"from": "s", "operators": [{"name": "f", "function": len, "cost": 0.01}]}
    made = plan_from({"streams": {"s": stream}, "queries": {"q": user}})
    assert work_per_tuple(made)["s"] == pytest.approx(0.01, rel=0.001)


def test_utilisation_of_a_stream_that_no_operator_reads_is_refused() -> None:
    with pytest.raises(PlanError, match=r"streams\.t: no operator reads it: no rate can be computed"):
        plan(PATH, s={"kind": "push"}, t=POISSON)


def test_rates_of_streams_that_are_not_there_are_refused() -> None:
    with pytest.raises(PlanError, match=r"no stream 'order' \(did you mean 'orders'\?\); there are \['orders', 'pay"):
        utilisation(read_plan(PLANS / "join.toml"), {"order": 1.0})


def test_what_is_wrong_with_the_arrivals_is_said_whatever_the_work_is() -> None:
    with pytest.raises(PlanError, match=r"streams\.s\.arrivals\.utilisation: 0 is not a positive number"):
        plan(PATH, s={"kind": "poisson", "utilisation": 0})
