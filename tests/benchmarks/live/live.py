"""Measures the live system on Ray over TCP: throughput, latency, idle time under load, start-up time and memory.

FC is four filters, each a station. In the same run, Bytewax reads one event at a time from memory. Times are wall-clock
times: several processes share the work, and other load on the machine slows all of them alike.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

from benchmarks.live.client_process import ChildProcess, start_child
from benchmarks.live.deployments import BenchDeployment, deploy, four_filters, many_heavy, many_operators, run_ray
from benchmarks.queries import bytewax_peer, numpy_peer
from benchmarks.queries.bids import one_stream
from benchmarks.queries.queries import rate
from benchmarks.report import BenchmarkRow
from benchmarks.timing import Contender, interleave

POLICIES = ("fifo", "chain", "rr-query")
FRAMES = {10_000: 200, 100_000: 100}  # rows of a frame: frames of a run
GOALS = {("each", 10_000): 1.0, ("each", 100_000): 4.0, ("one", 100_000): 8.0}
ACTORS = {"each": 4, "one": 1}  # one actor for each of four stations, or one for all
NAMES = {"each": "one actor each", "one": "packed in one actor"}
BYTEWAX_EVENTS = 200_000  # of a run of Bytewax
LATENCY_LIMIT_S = 0.025  # median, for a single tuple
HEAVY_QUERIES, IDLE_LIMIT = 8, 0.1
START_LIMIT_S, MEMORY_LIMIT_BYTES = 60.0, 6e9  # of all operators


class LiveSizes(NamedTuple):
    """How much the benchmark does."""

    operators: int = 750  # of the deployment whose start is timed
    frames: float = 1.0  # of those in FRAMES
    repetitions: int = 5
    tuples: int = 200  # sent one by one
    costly_frames: int = 300  # for all heavy queries
    saturated_s: float = 8.0  # seconds of saturation


class LiveCase(NamedTuple):
    """A packing of stations into actors, a policy, and the rows of a frame."""

    packed: str
    policy: str
    frame: int


def live(sizes: LiveSizes = LiveSizes()) -> Iterator[BenchmarkRow]:  # noqa: B008  # immutable
    """Yield all figures; the start of many operators is measured on a Ray of its own."""
    yield from measure_start(sizes.operators)
    with run_ray(), start_child() as caller:
        with (
            deploy(four_filters(), "each", actors=ACTORS["each"]) as each,
            deploy(four_filters(), "one", actors=ACTORS["one"]) as one,
        ):
            running = {"each": each, "one": one}
            yield from throughput(running, caller, sizes)
            yield from latency(running, caller, sizes.tuples)
        for packed, actors in (("one", 1), ("each", HEAVY_QUERIES)):
            with deploy(many_heavy(HEAVY_QUERIES), f"heavy-{packed}", actors=actors) as heavy:
                yield measure_saturation(packed, heavy, caller, sizes)


def measure_start(operators: int) -> Iterator[BenchmarkRow]:
    """Time the start of many operators, Ray included, with default settings; and measure their memory."""
    begun = time.monotonic()
    with run_ray(), deploy(many_operators(operators // 3), "many") as many:
        seconds, size = time.monotonic() - begun, memory()
        assert len(many.domain().stations) == operators
    limit = f"{MEMORY_LIMIT_BYTES / 1e9:.0f} GB"
    yield _limit(f"up of {operators} operators", f"{seconds:.0f} s", seconds, f"{START_LIMIT_S:.0f} s", START_LIMIT_S)
    yield _limit(f"memory of {operators} operators", f"{size / 1e9:.1f} GB", size, limit, MEMORY_LIMIT_BYTES)


def throughput(running: dict[str, BenchDeployment], caller: ChildProcess, sizes: LiveSizes) -> Iterator[BenchmarkRow]:
    """Measure rows a second from the first push to the last result at a subscriber."""
    cases = [LiveCase(packed, policy, frame) for packed in ACTORS for frame in FRAMES for policy in POLICIES]
    contenders: dict[str, Contender] = {
        str(case): partial(_push_through, running, caller, case, sizes) for case in cases
    }
    times = interleave(
        {"Bytewax": partial(_bytewax, int(BYTEWAX_EVENTS * sizes.frames)), **contenders}, sizes.repetitions
    )
    for case in cases:
        packed, policy, frame = case
        peer, ours, goal = times["Bytewax"], times[str(case)], GOALS.get((packed, frame))
        ratio = peer.median / ours.median
        what = f"FC live, {NAMES[packed]}, {frame // 1000},000 rows, {policy}"
        said, met = ("–", None) if goal is None else (f"≥ {goal:g}", ratio >= goal)
        yield BenchmarkRow(what, rate(ours), f"Bytewax one by one {rate(peer)}", ratio, said, met)


def latency(running: dict[str, BenchDeployment], caller: ChildProcess, tuples: int) -> Iterator[BenchmarkRow]:
    """Time single tuples through four stations of an idle system, from push to result at the same client."""
    for packed, system in running.items():
        system.swap("fifo")
        taken: list[float] = caller.ask("single", system.address, tuples)
        cuts = quantiles(taken, n=100)
        said = f"p50 {cuts[49] * 1e3:.1f} ms, p99 {cuts[98] * 1e3:.1f} ms"
        yield _limit(
            f"a tuple through FC, idle, {NAMES[packed]}",
            said,
            cuts[49],
            f"{LATENCY_LIMIT_S * 1e3:.0f} ms",
            LATENCY_LIMIT_S,
        )


def measure_saturation(packed: str, system: BenchDeployment, caller: ChildProcess, sizes: LiveSizes) -> BenchmarkRow:
    """Measure the share of time in which no actor works while rows wait, under more load than can be processed."""
    caller.ask("pushed", system.address, 10_000 * sizes.costly_frames, 10_000)
    time.sleep(sizes.saturated_s)
    domain = system.domain()
    assert domain.held > 0, "the load was too small: no rows are queued at the end"
    assert domain.idle_with_work is not None
    idle = max(domain.idle_with_work, 1e-9)
    what = f"idle with work, {HEAVY_QUERIES} costly queries, {NAMES[packed]}"
    row = _limit(what, f"{idle:.1%}", idle, f"{IDLE_LIMIT:.0%}", IDLE_LIMIT)
    return row if packed == "one" else row._replace(goal="–", met=None)


def memory() -> float:
    """Return the bytes of all descendants of this process; shared pages count once."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children[int((entry / "stat").read_text().rpartition(")")[2].split()[1])].append(int(entry.name))
    descendants, size = list(children[os.getpid()]), 0.0
    for process in descendants:
        descendants += children[process]
        with suppress(OSError):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            size += sum(1024 * float(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return size


def _push_through(running: dict[str, BenchDeployment], caller: ChildProcess, case: LiveCase, sizes: LiveSizes) -> float:
    rows, system = case.frame * max(1, int(FRAMES[case.frame] * sizes.frames)), running[case.packed]
    system.swap(case.policy)
    expected = numpy_peer.answer("fc", one_stream(rows, case.frame)).rows
    seconds: float = caller.ask("through", system.address, rows, case.frame, expected)
    return seconds / rows


def _bytewax(events: int) -> float:
    load = one_stream(events, 1_000)
    run, expected = bytewax_peer.single("fc", load), numpy_peer.answer("fc", load).rows
    begun = time.perf_counter()
    results = run()
    seconds = time.perf_counter() - begun
    assert len(results) == expected
    return seconds / events


def _limit(what: str, ours: str, value: float, limit: str, most: float) -> BenchmarkRow:
    return BenchmarkRow(what, ours, limit, most / value, "≥ 1", value <= most)
