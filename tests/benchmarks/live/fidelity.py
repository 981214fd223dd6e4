"""Runs plans live on Ray beside `dsms sim`, with the same arrivals and outcomes: does a prediction hold?

The live clock is paced: it waits declared costs out in real time. Decisions, messages and inexact sleeps are all that
the simulation does not know. `make fidelity` runs every plan in `tests/plans/fidelity` under every policy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.live.deployments import run_ray
from benchmarks.report import BenchmarkRow, table
from rich.console import Console
from support.paths import TESTS

import dsms
from actors.hosts.host import Host, HostActor
from actors.rpc.messages import PlanTable, get_result, get_results, kill, send
from actors.scheduler.scheduler import SchedulerActor
from dsms.config.live import LiveConfig
from dsms.live.monitor.status import DomainStatus, PhaseStatus
from dsms.query.plan_file import read_table

PLANS = {file.stem: file for file in sorted((TESTS / "plans/fidelity").glob("*.toml"))}
POLICIES = ("fifo", "rr", "rr-query", "greedy", "mtiq", "chain", "rb-mcq", "fas-mcq", "qos-chain")
GOALS = {"path": 1.08, "fork": 1.08, "ten-queries": 1.15}  # live over simulated
HOSTS = 8
POLL_S = 0.5
END_LIMIT = 3.0  # times the simulated duration, after which a live run has failed


class Outcome(NamedTuple):
    """What a run cost."""

    results: int
    latency: float
    memory: float  # mean tuples over the simulated duration
    turns: int


class FidelityRow(NamedTuple):
    """One plan under one policy, simulated and live."""

    plan: str
    policy: str
    simulated: Outcome
    live: Outcome

    @property
    def latency(self) -> float:
        return self.live.latency / self.simulated.latency

    @property
    def memory(self) -> float:
        return self.live.memory / self.simulated.memory


def fidelity(
    plans: Sequence[str] = tuple(PLANS),
    policies: Sequence[str] = POLICIES,
    until: float | None = None,
    hosts: int = HOSTS,
) -> Iterator[BenchmarkRow]:
    """Yield two lines for each plan and policy, and one for the order of the policies of each plan."""
    with run_ray():
        pool = [HostActor.remote() for _ in range(hosts)]
        get_results([send(host.ping) for host in pool])
        for plan in plans:
            rows = [compare(PLANS[plan], policy, until, pool) for policy in policies]
            for row in rows:
                yield from lines(row)
            yield order_kept(plan, rows)
        for host in pool:
            kill(host)


def compare(plan: Path, policy: str, until: float | None, pool: Sequence[Host]) -> FidelityRow:
    """Simulate a plan under a policy, then run it live."""
    run = dsms.simulate(plan, policy, until=until)
    assert run.latency.mean is not None
    simulated = Outcome(int(run.outputs), run.latency.mean, run.memory.tuples.mean, run.turns)
    source = read_table(plan)
    if until is not None:
        source = {**source, "run": {**source["run"], "until": until}}
    live = run_live(source, policy, run.admitted, run.elapsed, pool)
    assert live.results == simulated.results, f"{plan.stem}, {policy}: {live.results} of {simulated.results} results"
    return FidelityRow(plan.stem, policy, simulated, live)


def run_live(source: PlanTable, policy: str, arrivals: int, elapsed: float, pool: Sequence[Host]) -> Outcome:
    """Run a plan on the paced clock, by a scheduler actor and hosts, until all tuples have left."""
    setup = LiveConfig(policy=policy, clock="paced")
    scheduler = SchedulerActor.remote("fidelity", source, "", "", None, setup)
    try:
        get_result(send(scheduler.open, pool))
        limit_s = END_LIMIT * elapsed + 10
        ends_by = time.monotonic() + limit_s
        status = get_result(send(scheduler.status))
        while status.held or count_arrivals(status) < arrivals:
            assert time.monotonic() < ends_by, f"{policy}: {status.held} tuples are left after {limit_s:.0f} s"
            time.sleep(POLL_S)
            status = get_result(send(scheduler.status))
        assert status.error is None, status.error
        assert status.now is not None
        phase: PhaseStatus = status.phases[-1]
        assert phase.memory_mean is not None
        assert phase.latency_mean is not None
        memory = phase.memory_mean * (status.now - phase.since) / elapsed
        return Outcome(phase.results, phase.latency_mean, memory, phase.turns)
    finally:
        get_result(send(scheduler.close))
        kill(scheduler)
        get_results([send(host.clear) for host in pool])


def count_arrivals(status: DomainStatus) -> int:
    """Return the tuples that have arrived so far."""
    return sum(stream.rows for stream in status.streams)


def lines(row: FidelityRow) -> Iterator[BenchmarkRow]:
    """Latency and memory, live beside simulated."""
    goal, (simulated, live) = GOALS[row.plan], (row.simulated, row.live)
    where, said = f"{row.plan}, {row.policy}", f"≤ {goal:g}"
    turns = f"{live.turns:,} turns"
    yield BenchmarkRow(
        f"{where}: mean latency, live over simulated ({turns})",
        f"{live.latency * 1e3:.1f} ms",
        f"{simulated.latency * 1e3:.1f} ms",
        row.latency,
        said,
        row.latency <= goal,
    )
    yield BenchmarkRow(
        f"{where}: mean memory", f"{live.memory:.2f}", f"{simulated.memory:.2f}", row.memory, said, row.memory <= goal
    )


def order_kept(plan: str, rows: Sequence[FidelityRow]) -> BenchmarkRow:
    """Of all pairs of policies that the simulation tells apart by 5 %, the share whose order is the same live."""
    pairs = [(one, other) for one in rows for other in rows if one.simulated.latency * 1.05 < other.simulated.latency]
    kept = sum(one.live.latency < other.live.latency for one, other in pairs)
    share = kept / len(pairs) if pairs else 1.0
    return BenchmarkRow(
        f"{plan}: pairs of policies in the simulated order of latency",
        f"{kept}",
        f"{len(pairs)}",
        share,
        "1",
        share == 1,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.fidelity", description=__doc__)
    parser.add_argument("plans", nargs="*", default=list(PLANS), metavar="plan", help=f"one of {', '.join(PLANS)}")
    parser.add_argument("--policy", action="append", help="a policy; several by repeating it")
    parser.add_argument("--hosts", type=int, default=HOSTS, help="host processes")
    parser.add_argument("--until", type=float, help="seconds of arrivals")
    options = parser.parse_args()
    found = fidelity(options.plans, options.policy or POLICIES, options.until, options.hosts)
    Console(width=150).print(table([found]))
