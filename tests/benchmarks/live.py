"""The live system on a Ray of its own, rows in and results out over TCP: how fast, how soon, how busy, how large.

FC is four filters, each a station. Beside it in the same run Bytewax takes one event at a time from memory. Time is by
the wall: several processes share the work, and whoever else uses the machine slows all alike.
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

from benchmarks import bytewax_peer, numpy_peer
from benchmarks.bids import one_stream
from benchmarks.caller import Caller, calling
from benchmarks.deployed import Deployed, deployed, four_filters, many_heavy, many_operators, own_ray
from benchmarks.queries import rate
from benchmarks.report import Row
from benchmarks.timing import Contender, interleaved

POLICIES = ("fifo", "chain", "rr-query")
FRAMES = {10_000: 2_000_000, 100_000: 10_000_000}  # rows of a frame, and of a run
GOALS = {("each", 10_000): 1.0, ("each", 100_000): 4.0, ("one", 100_000): 8.0}
ACTORS = {"each": 4, "one": 1}  # one actor for each of four stations, or one for all
NAMES = {"each": "one actor each", "one": "packed in one actor"}
FEW, REPETITIONS = 200_000, 5  # events for Bytewax in a run; runs
TUPLES, SOON = 200, 0.025  # sent one by one; seconds for one of them to pass
HEAVY, COSTLY, SATURATED, IDLE = 8, 300, 8.0, 0.1  # queries, frames for all of them, seconds watched, goal
MANY, QUICK, LARGEST = 750, 60.0, 6e9  # operators, seconds to start them, bytes


class Case(NamedTuple):
    """How the stations are packed, who decides, and how many rows a frame has."""

    packed: str
    policy: str
    frame: int


def live() -> Iterator[Row]:
    """All figures; a Ray for those that start many actors and one for the others."""
    yield from started()
    with own_ray(), calling() as caller:
        with (
            deployed(four_filters(), "each", actors=ACTORS["each"]) as each,
            deployed(four_filters(), "one", actors=ACTORS["one"]) as one,
        ):
            running = {"each": each, "one": one}
            yield from throughput(running, caller)
            yield from latency(running, caller)
        for packed, actors in (("one", 1), ("each", HEAVY)):
            with deployed(many_heavy(HEAVY), f"heavy-{packed}", actors=actors) as heavy:
                yield saturated(packed, heavy, caller)


def started() -> Iterator[Row]:
    """Many operators from nothing, Ray included, with what the settings are if nobody says."""
    begun = time.monotonic()
    with own_ray(), deployed(many_operators(MANY // 3), "many") as many:
        seconds, size = time.monotonic() - begun, memory()
        assert len(many.domain()["stations"]) == MANY
    yield _limit(f"up of {MANY} operators", f"{seconds:.0f} s", seconds, f"{QUICK:.0f} s", QUICK)
    yield _limit(f"memory of {MANY} operators", f"{size / 1e9:.1f} GB", size, f"{LARGEST / 1e9:.0f} GB", LARGEST)


def throughput(running: dict[str, Deployed], caller: Caller) -> Iterator[Row]:
    """Rows a second from the first push to the last result at a subscriber."""
    cases = [Case(packed, policy, frame) for packed in ACTORS for frame in FRAMES for policy in POLICIES]
    contenders: dict[str, Contender] = {str(case): partial(_through, running, caller, case) for case in cases}
    times = interleaved({"Bytewax": _bytewax, **contenders}, REPETITIONS)
    for case in cases:
        packed, policy, frame = case
        peer, ours, goal = times["Bytewax"], times[str(case)], GOALS.get((packed, frame))
        ratio = peer.median / ours.median
        what = f"FC live, {NAMES[packed]}, {frame // 1000},000 rows, {policy}"
        said, met = ("–", None) if goal is None else (f"≥ {goal:g}", ratio >= goal)
        yield Row(what, rate(ours), f"Bytewax one by one {rate(peer)}", ratio, said, met)


def latency(running: dict[str, Deployed], caller: Caller) -> Iterator[Row]:
    """A single tuple through four stations of an idle system, from the push to the result at the same client."""
    for packed, system in running.items():
        system.swap("fifo")
        taken: list[float] = caller.ask("single", system.address, TUPLES)
        cuts = quantiles(taken, n=100)
        said = f"p50 {cuts[49] * 1e3:.1f} ms, p99 {cuts[98] * 1e3:.1f} ms"
        yield _limit(f"a tuple through FC, idle, {NAMES[packed]}", said, cuts[49], f"{SOON * 1e3:.0f} ms", SOON)


def saturated(packed: str, system: Deployed, caller: Caller) -> Row:
    """The part of the time in which nobody works though something waits: costly queries, more to do than time."""
    rows = 10_000 * COSTLY
    caller.ask("pushed", system.address, rows, 10_000)
    time.sleep(SATURATED)
    found = system.domain()
    assert found["held"] > 0, "there was too little to do"
    idle = max(found["idle_with_work"], 1e-9)
    row = _limit(f"idle with work, {HEAVY} costly queries, {NAMES[packed]}", f"{idle:.1%}", idle, f"{IDLE:.0%}", IDLE)
    return row if packed == "one" else row._replace(goal="–", met=None)


def memory() -> float:
    """Bytes of all processes that this one has started and they in turn, shared pages counted once."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children[int((entry / "stat").read_text().rpartition(")")[2].split()[1])].append(int(entry.name))
    found, size = list(children[os.getpid()]), 0.0
    for process in found:
        found += children[process]
        with suppress(OSError):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            size += sum(1024 * float(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return size


def _through(running: dict[str, Deployed], caller: Caller, case: Case) -> float:
    rows, system = FRAMES[case.frame], running[case.packed]
    system.swap(case.policy)
    wanted = numpy_peer.answer("fc", one_stream(rows, case.frame)).rows
    seconds: float = caller.ask("through", system.address, rows, case.frame, wanted)
    return seconds / rows


def _bytewax() -> float:
    load = one_stream(FEW, 1_000)
    run, wanted = bytewax_peer.single("fc", load), numpy_peer.answer("fc", load).rows
    begun = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - begun
    assert len(found) == wanted
    return seconds / FEW


def _limit(what: str, ours: str, value: float, limit: str, most: float) -> Row:
    return Row(what, ours, limit, most / value, "≥ 1", value <= most)
