"""Runs plans live on Ray beside `dsms sim`, with the same arrivals and outcomes: does a prediction hold?

The live clock is paced: it waits declared costs out in real time. Decisions, messages and inexact sleeps are all that
the simulation does not know. `make fidelity` runs every plan in `tests/plans/fidelity` under every policy; the plan
`auction` has rows like NEXMark's, the others have abstract tuples.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.live.deployments import run_ray
from benchmarks.live.row_runs import DueRows, make_frames, push_rows, simulate_rows
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
GOALS = {"path": 1.08, "fork": 1.08, "ten-queries": 1.15, "auction": 1.15}  # live over simulated
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
    plot: Path | None = None,
) -> Iterator[BenchmarkRow]:
    """Yield two lines for each plan and policy, and one for the order of the policies of each plan.

    With a folder `plot`, draw all of it there.
    """
    drawn: list[FidelityRow] = []
    with run_ray():
        pool = [HostActor.remote() for _ in range(hosts)]
        get_results([send(host.ping) for host in pool])
        for plan in plans:
            rows = [compare(PLANS[plan], policy, until, pool) for policy in policies]
            for row in rows:
                yield from lines(row)
            yield order_kept(plan, rows)
            drawn += rows
        for host in pool:
            kill(host)
    if plot is not None:
        draw(drawn, plot)


def compare(plan: Path, policy: str, until: float | None, pool: Sequence[Host]) -> FidelityRow:
    """Simulate a plan under a policy, then run it live."""
    source = read_table(plan)
    if any("schema" in stream for stream in source["streams"].values()):
        frames = make_frames(plan, until)
        rows = simulate_rows(plan, policy, frames, len(pool))
        simulated, elapsed, arrivals = Outcome(*rows[:4]), rows.elapsed, sum(len(frame.batch) for frame in frames)
    else:
        frames = []
        run = dsms.simulate(plan, policy, until=until)
        assert run.latency.mean is not None
        simulated = Outcome(int(run.outputs), run.latency.mean, run.memory.tuples.mean, run.turns)
        elapsed, arrivals = run.elapsed, run.admitted
        if until is not None:
            source = {**source, "run": {**source["run"], "until": until}}
    live = run_live(source, policy, arrivals, elapsed, pool, frames)
    assert live.results == simulated.results, f"{plan.stem}, {policy}: {live.results} of {simulated.results} results"
    return FidelityRow(plan.stem, policy, simulated, live)


def run_live(
    source: PlanTable, policy: str, arrivals: int, elapsed: float, pool: Sequence[Host], frames: Sequence[DueRows]
) -> Outcome:
    """Run a plan on the paced clock, by a scheduler actor and hosts, until all tuples have left."""
    setup = LiveConfig.read({**source.get("live", {}), "policy": policy, "clock": "paced"})
    scheduler = SchedulerActor.remote("fidelity", source, "", "", None, setup)
    epoch = time.time()
    try:
        # Abstract tuples arrive by the scheduler's clock: it must not begin before the stations are at their hosts.
        get_result(send(scheduler.open, pool, None, epoch if frames else None))
        if frames:
            assert sum(push_rows(frames, scheduler, pool, epoch)) == arrivals
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


def draw(rows: Sequence[FidelityRow], folder: Path) -> None:
    """Draw live over simulated figures of every plan; on the line both are equal."""
    from matplotlib import pyplot

    plans = list(dict.fromkeys(row.plan for row in rows))
    drawn, axes = pyplot.subplots(len(plans), 2, figsize=(9, 4 * len(plans)), squeeze=False)
    for (left, right), plan in zip(axes, plans, strict=True):
        for axis, figure, unit in ((left, "latency", "s"), (right, "memory", "tuples")):
            mine = [row for row in rows if row.plan == plan]
            points = [(getattr(row.simulated, figure), getattr(row.live, figure)) for row in mine]
            ends = [0.0, 1.05 * max(max(point) for point in points)]
            axis.plot(ends, ends, color="grey", linewidth=0.8)
            axis.scatter(*zip(*points, strict=True), s=14)
            for row, point in zip(mine, points, strict=True):
                axis.annotate(row.policy, point, fontsize=7, xytext=(3, -6), textcoords="offset points")
            axis.set_title(f"{plan}: mean {figure}", fontsize=9)
            axis.set_xlabel(f"simulated ({unit})", fontsize=8)
            axis.set_ylabel(f"live ({unit})", fontsize=8)
    folder.mkdir(parents=True, exist_ok=True)
    drawn.tight_layout()
    drawn.savefig(folder / "fidelity.svg")
    pyplot.close(drawn)


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
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw fidelity.svg in this folder")
    options = parser.parse_args()
    plot = None if options.plot is None else options.plot.resolve()
    found = fidelity(options.plans, options.policy or POLICIES, options.until, options.hosts, plot)
    Console(width=150).print(table([found]))
