"""Runs a deployment at 80 % load while policies are swapped each second: no memory grows, and nothing is logged."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import ray
from benchmarks.live.deployments import BenchDeployment, deploy

from actors.deployment.actor_handles import wait_until
from dsms.clock import monotonic_s
from soak import processes
from soak.plan import CAPACITY, table
from soak.producers import RESULT_TIMEOUT_S, open_producers

LOAD_FRACTION = 0.8
POLICIES = ("fifo", "chain", "rr", "fas-mcq", "mtiq", "greedy", "qos-chain", "adaptive")
# Ray's workers grow by some megabytes at the start: memory counts after a part of the time, or four minutes.
WARM_UP_FRACTION = 0.4
WARM_UP_MAX_S = 240.0
SWAP_INTERVAL_S = 1.0
SPARE = 3  # open files more or less: Ray opens and closes connections at any time
GROWTH = 0.01  # of all memory, over the run: a smaller trend is noise
# Lines that Ray itself writes to the logs of its workers.
USUAL_LOG_PATTERN = re.compile(
    r"^:(actor_name|job_id|task_name)|^\s*$|^\[.*(core_worker|task_receiver|actor_|gcs|grpc|server_call)"
)


@dataclass
class EnduranceReport:
    """Measures of one run."""

    seconds: float
    swaps: int = 0
    slowest: float = 0.0  # of them, in seconds
    missing: int = 0
    doubled: int = 0
    rows: int = 0
    memory: list[tuple[float, int]] = field(default_factory=list)  # of all processes, after the warm-up
    held: list[float] = field(default_factory=list)  # bytes in queues at those instants
    parts: list[dict[str, int]] = field(default_factory=list)  # the same by process
    files: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # unexpected lines of logs
    faults: list[str] = field(default_factory=list)

    def slope(self) -> tuple[float, float]:
        """Return the growth in bytes a second, without queued rows, and its standard error."""
        at, taken = (np.array(column, dtype=float) for column in zip(*self.memory, strict=True))
        (slope, _), covariance = np.polyfit(at, taken - np.array(self.held), 1, cov=True)
        return float(slope), float(np.sqrt(covariance[0, 0]))

    def _grown(self) -> Iterator[str]:
        for name, first in self.parts[0].items() if self.parts else ():
            yield f"{name} {first / 1024**2:.1f} → {self.parts[-1].get(name, 0) / 1024**2:.1f} MB"

    def __str__(self) -> str:
        mb, (slope, error) = 1024**2, self.slope()
        held = [held for _, held in self.memory]
        return (
            f"soak: {self.rows:,} rows at {LOAD_FRACTION:.0%} load for {self.seconds:.0f} s, {self.swaps} swaps, "
            f"the slowest {1000 * self.slowest:.0f} ms; lost: {self.missing}, doubled: {self.doubled}\n"
            f"memory of all processes: {held[0] / mb:,.1f} MB after the warm-up, {held[-1] / mb:,.1f} MB at the end, "
            f"slope {slope / 1024:+.2f} ± {2 * error / 1024:.2f} kB a second\n"
            f"held in queues: {np.mean(self.held) / mb:.2f} MB in the mean, {max(self.held) / mb:.2f} MB at most\n"
            f"by process: {', '.join(self._grown())}\n"
            f"open files: {self.files[0]} after the warm-up, {self.files[-1]} at the end, "
            f"{min(self.files)} to {max(self.files)} between\n"
            f"unexpected lines in logs: {len(self.said)}"
        )


class Swapper(threading.Thread):
    """Swaps the policy at an interval, and measures memory and open files, until it is closed."""

    def __init__(self, system: BenchDeployment, report: EnduranceReport, warm: float, interval: float) -> None:
        super().__init__(daemon=True)
        self._system, self._report, self._warm, self._interval = system, report, warm, interval
        self._closing = threading.Event()

    def run(self) -> None:
        begun, report = monotonic_s(), self._report
        for policy in itertools.cycle(POLICIES):
            if self._closing.wait(self._interval):
                return
            asked = monotonic_s()
            self._system.swap(policy)
            report.slowest = max(report.slowest, monotonic_s() - asked)
            report.swaps += 1
            if asked - begun > self._warm:
                found = processes.measure_processes()
                report.memory.append((asked - begun, processes.sum_memory(found)))
                report.held.append(self._system.domain().held_bytes)
                report.parts.append({one.name: one.memory for one in found.values()})
                report.files.append(processes.sum_files(found))

    def close(self) -> None:
        self._closing.set()
        self.join()


def run_endurance(seconds: float, swap_interval: float = SWAP_INTERVAL_S) -> EnduranceReport:
    """Run it on the Ray that this process is connected to."""
    node: Any = ray._private.worker.global_worker.node
    report, logs = EnduranceReport(seconds), Path(node.get_logs_dir_path())
    live = {"clock": "paced", "actors": 2}
    before = {file: file.stat().st_size for file in logs.glob("worker-*")}
    with deploy(table(), "soak", **live) as system, open_producers(system.address) as clients:
        swapper = Swapper(system, report, min(WARM_UP_MAX_S, WARM_UP_FRACTION * seconds), swap_interval)
        swapper.start()
        report.rows = clients.push(LOAD_FRACTION * CAPACITY, seconds)
        swapper.close()
        assert clients.seen.wait(clients.pushed), (
            f"{clients.seen.total} of {clients.pushed} rows came within {RESULT_TIMEOUT_S} s"
        )
        wait_until(lambda: not system.domain().held, RESULT_TIMEOUT_S)
        report.missing, report.doubled = clients.seen.wrong(clients.pushed)
        report.said = list(find_unexpected_lines(logs, before))
    judge(report)
    return report


def find_unexpected_lines(logs: Path, before: dict[Path, int]) -> Iterator[str]:
    """Yield the lines that workers have logged in this run, but Ray's own."""
    for file in sorted(logs.glob("worker-*")):
        with file.open(encoding="utf-8", errors="replace") as lines:
            lines.seek(before.get(file, 0))
            yield from (line.rstrip() for line in lines if not USUAL_LOG_PATTERN.search(line))


def judge(report: EnduranceReport) -> None:
    """List all faults of the run."""
    slope, error = report.slope()
    grown = slope * report.seconds / report.memory[0][1]
    wrong = {
        "rows are lost or doubled": report.missing or report.doubled,
        f"memory grows by {grown:.1%} over the run": slope > 2 * error and grown > GROWTH,
        f"open files: {report.files[0]} became {report.files[-1]}": report.files[-1] - report.files[0] > SPARE,
        f"said: {report.said[:5]}": report.said,
    }
    report.faults = [what for what, is_so in wrong.items() if is_so]
