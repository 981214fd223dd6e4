"""Ten times as much as can be done: memory stays below its limit, nothing is lost, and then all is as before."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from benchmarks.deployed import Deployed, deployed

from actors.parts import wait_for
from dsms.clock import stopwatch
from soak import processes
from soak.plan import CAPACITY, table
from soak.producers import WAIT, Producers, producing

TIMES = 10
LIMIT = 8 * 1024**2  # bytes that the domain may hold
# Beside what the domain holds: frames of the two clients that are under way (256 of 16 kB each), in gateways and hosts,
# and what malloc keeps of all that has come and gone.
UNDER_WAY = 96 * 1024**2
GLANCE = 0.25


@dataclass
class Report:
    """What came of it."""

    seconds: float
    offered: float  # rows a second
    taken: int = 0
    drained: float = 0.0  # seconds until all was worked off
    missing: int = 0
    doubled: int = 0
    before: int = 0  # bytes of all processes
    most: int = 0
    held: float = 0.0  # bytes, the most that the domain said
    paused: float = 0.0  # seconds in which rows had to wait outside
    latency: tuple[float, float] = (0.0, 0.0)  # before and after
    sampled: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        mb = 1024**2
        return (
            f"overload: {self.offered:,.0f} rows a second offered for {self.seconds:.0f} s, "
            f"{self.taken:,} taken ({self.taken / self.seconds:,.0f} a second), worked off after {self.drained:.1f} s\n"
            f"lost: {self.missing}, doubled: {self.doubled}; rows waited outside for {self.paused:.1f} s\n"
            f"memory of all processes: {self.before / mb:,.0f} MB before, at most {self.most / mb:,.0f} MB "
            f"(+{(self.most - self.before) / mb:,.0f} MB; {self.sampled} looks); "
            f"held at most {self.held / mb:,.1f} MB, limit {LIMIT / mb:,.0f} MB\n"
            f"latency of a frame: {1000 * self.latency[0]:.0f} ms before, {1000 * self.latency[1]:.0f} ms after"
        )


class Lookout(threading.Thread):
    """Looks at the memory of all processes, and at what the domain says it holds, until it is closed."""

    def __init__(self, system: Deployed, report: Report) -> None:
        super().__init__(daemon=True)
        self._system, self._report, self._closing = system, report, threading.Event()

    def run(self) -> None:
        report = self._report
        while not self._closing.wait(GLANCE):
            report.most = max(report.most, processes.memory(processes.taken()))
            report.held = max(report.held, self._system.domain()["held_bytes"])
            report.sampled += 1

    def close(self) -> None:
        self._closing.set()
        self.join()


def overloaded(seconds: float) -> Report:
    """Run it; Ray is there."""
    report = Report(seconds, TIMES * CAPACITY)
    live = {"clock": "paced", "actors": 2, "most_bytes": LIMIT}
    with deployed(table(), "overload", **live) as system, producing(system.address) as clients:
        clients.push(CAPACITY / 2, 3.0)
        first = clients.latency()
        report.before = processes.memory(processes.taken())
        lookout = Lookout(system, report)
        lookout.start()
        report.taken = clients.push(TIMES * CAPACITY, seconds)
        begun = stopwatch()
        assert clients.seen.wait(clients.pushed), f"{clients.seen.total} of {clients.pushed} rows came within {WAIT} s"
        report.drained = stopwatch() - begun
        lookout.close()
        wait_for(lambda: not system.domain()["held"], WAIT)
        report.latency = first, clients.latency()
        report.missing, report.doubled = clients.seen.wrong(clients.pushed)
        report.paused = system.domain()["ingest"]["seconds"]
        judge(report, clients)
    return report


def judge(report: Report, clients: Producers) -> None:
    """Say what is not as it should be."""
    wrong = {
        "rows are lost or doubled": report.missing or report.doubled or clients.seen.total != clients.pushed,
        "more is held than the limit and a frame": report.held > LIMIT * 1.05,
        "processes have grown by more than limit and frames": report.most - report.before > LIMIT + UNDER_WAY,
        "rows never had to wait": not report.paused,
        "it is not as fast as before": report.latency[1] > 3 * report.latency[0] + 1.0,
    }
    report.faults = [what for what, is_so in wrong.items() if is_so]
