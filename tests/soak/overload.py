"""Offers ten times the capacity: memory stays below its limit, no row is lost, and latency recovers afterwards."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from benchmarks.live.deployments import BenchDeployment, deploy

from actors.deployment.actor_handles import wait_until
from dsms.clock import monotonic_s
from soak import processes
from soak.plan import CAPACITY, table
from soak.producers import RESULT_TIMEOUT_S, Producers, open_producers

OVERLOAD_FACTOR = 10
MEMORY_LIMIT_BYTES = 8 * 1024**2  # of the domain
# Beside the domain: frames of the two clients in flight (256 of 16 kB each), in gateways and hosts, and freed memory
# that malloc keeps.
IN_FLIGHT_LIMIT_BYTES = 96 * 1024**2
SAMPLE_INTERVAL_S = 0.25


@dataclass
class OverloadReport:
    """Measures of one run."""

    seconds: float
    offered: float  # rows a second
    taken: int = 0
    drained: float = 0.0  # seconds until all rows were processed
    missing: int = 0
    doubled: int = 0
    before: int = 0  # bytes of all processes
    most: int = 0
    held: float = 0.0  # bytes, the most that the domain reported
    paused: float = 0.0  # seconds of back-pressure
    latency: tuple[float, float] = (0.0, 0.0)  # before and after
    sampled: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        mb = 1024**2
        return (
            f"overload: {self.offered:,.0f} rows a second offered for {self.seconds:.0f} s, "
            f"{self.taken:,} taken ({self.taken / self.seconds:,.0f} a second), processed after {self.drained:.1f} s\n"
            f"lost: {self.missing}, doubled: {self.doubled}; back-pressure for {self.paused:.1f} s\n"
            f"memory of all processes: {self.before / mb:,.0f} MB before, at most {self.most / mb:,.0f} MB "
            f"(+{(self.most - self.before) / mb:,.0f} MB; {self.sampled} samples); "
            f"held at most {self.held / mb:,.1f} MB, limit {MEMORY_LIMIT_BYTES / mb:,.0f} MB\n"
            f"latency of a frame: {1000 * self.latency[0]:.0f} ms before, {1000 * self.latency[1]:.0f} ms after"
        )


class MemorySampler(threading.Thread):
    """Samples the memory of all processes and of the domain until it is closed."""

    def __init__(self, system: BenchDeployment, report: OverloadReport) -> None:
        super().__init__(daemon=True)
        self._system, self._report, self._closing = system, report, threading.Event()

    def run(self) -> None:
        report = self._report
        while not self._closing.wait(SAMPLE_INTERVAL_S):
            report.most = max(report.most, processes.sum_memory(processes.measure_processes()))
            report.held = max(report.held, self._system.domain().held_bytes or 0.0)
            report.sampled += 1

    def close(self) -> None:
        self._closing.set()
        self.join()


def run_overload(seconds: float) -> OverloadReport:
    """Run it on the Ray that this process is connected to."""
    report = OverloadReport(seconds, OVERLOAD_FACTOR * CAPACITY)
    live = {"clock": "paced", "actors": 2, "most_bytes": MEMORY_LIMIT_BYTES}
    with deploy(table(), "overload", **live) as system, open_producers(system.address) as clients:
        clients.push(CAPACITY / 2, 3.0)
        first = clients.latency()
        report.before = processes.sum_memory(processes.measure_processes())
        sampler = MemorySampler(system, report)
        sampler.start()
        report.taken = clients.push(OVERLOAD_FACTOR * CAPACITY, seconds)
        begun = monotonic_s()
        assert clients.seen.wait(clients.pushed), (
            f"{clients.seen.total} of {clients.pushed} rows came within {RESULT_TIMEOUT_S} s"
        )
        report.drained = monotonic_s() - begun
        sampler.close()
        wait_until(lambda: not system.domain().held, RESULT_TIMEOUT_S)
        report.latency = first, clients.latency()
        report.missing, report.doubled = clients.seen.wrong(clients.pushed)
        report.paused = system.domain().ingest.seconds
        judge(report, clients)
    return report


def judge(report: OverloadReport, clients: Producers) -> None:
    """List all faults of the run."""
    wrong = {
        "rows are lost or doubled": report.missing or report.doubled or clients.seen.total != clients.pushed,
        "more is held than the limit and a frame": report.held > MEMORY_LIMIT_BYTES * 1.05,
        "processes have grown by more than limit and frames": report.most - report.before
        > MEMORY_LIMIT_BYTES + IN_FLIGHT_LIMIT_BYTES,
        "back-pressure never began": not report.paused,
        "latency has not recovered": report.latency[1] > 3 * report.latency[0] + 1.0,
    }
    report.faults = [what for what, is_so in wrong.items() if is_so]
