"""Runs queries on rows twice, in virtual time and live on Ray: the same frames, pushed when they are due."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from actors.hosts.host import Host
from actors.hosts.host_pool import HostPool
from actors.hosts.runner import ActorRunner
from actors.rpc.messages import get_result, get_results, send
from actors.scheduler.scheduler import Scheduler
from dsms.clock import VirtualClock
from dsms.config.live import LiveConfig, apply_live_defaults
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.engine.engine import Engine
from dsms.live.log_batch import LogBatch, LogItem
from dsms.live.query_set import QuerySet
from dsms.policies.registry import policy_named
from dsms.query.plan_file import read_table
from dsms.recording.summary import FigureObserver
from loadgen.spec.load import Load, LoadSpec

LEAD_S = 0.2  # before the first row of a live run is due


class DueRows(NamedTuple):
    """Rows of a stream that are due at one instant."""

    due: float
    stream: str
    batch: Batch

    def refer(self, key: str, due: float) -> BatchRef:
        """Describe the rows to a scheduler, with the instant at which they are due by its clock."""
        return BatchRef(key, len(self.batch), self.batch.memory(), int(self.batch.columns["at"].max()), due)

    def stamp(self, due: float) -> Batch:
        """Return the rows for a host, with the instant from which their latency counts."""
        return replace(self.batch, arrived=due)


class BudgetClock(VirtualClock):
    """Virtual time of a CPU that is shared with others."""

    def __init__(self, budget: float) -> None:
        super().__init__()
        self.budget = budget

    def spend(self, cost: float) -> float:
        return super().spend(cost / self.budget)


class SimulatedRows(NamedTuple):
    """The figures of a simulation on rows, and how long it took in virtual time."""

    results: int
    latency: float
    memory: float
    turns: int
    elapsed: float


def make_frames(plan: Path, until: float | None) -> list[DueRows]:
    """Make the rows of a plan's load, one frame for each instant of each stream."""
    load = Load(LoadSpec.of(plan, duration=until))
    frames = []
    for block in load.rows(0.0, load.end + 1e-9 if math.isfinite(load.end) else math.inf):
        starts = [0, *(np.flatnonzero(np.diff(block.due)) + 1).tolist(), len(block.due)]
        for start, end in itertools.pairwise(starts):
            frames.append(DueRows(float(block.due[start]), block.stream, block.batch.pick(slice(start, end))))
    return sorted(frames, key=lambda frame: frame.due)


def simulate_rows(plan: Path, policy: str, frames: Sequence[DueRows], hosts: int) -> SimulatedRows:
    """Process the frames in virtual time, with the code of the hosts in this process."""
    setup = LiveConfig.read(read_table(plan)["live"])
    query_set = QuerySet(apply_live_defaults(read_table(plan), setup), plan.parent, str(plan))
    pool, clock, figures = [Host() for _ in range(hosts)], BudgetClock(setup.budget), FigureObserver()
    runner = partial(ActorRunner, host_pool=HostPool(pool))
    engine = Engine(query_set.plan, policy_named(policy), clock=clock, runner=runner, observers=[figures])
    places = engine.runner.places
    readers = {stream.name: {places[reader.name] for reader in stream.consumers} for stream in engine.plan.streams}
    for number, frame in enumerate(frames):
        while clock.now() < frame.due and engine.step():
            pass
        clock.wait_until(frame.due)
        key, due = str(number), frame.due
        for place in readers[frame.stream]:
            get_result(send(pool[place].put, {key: frame.stamp(due)}))
        engine.push(frame.stream, frame.refer(key, due))
    engine.end()
    engine.run()
    engine.finish(clock.now())
    found = figures.to_json()
    return SimulatedRows(found["results"], found["latency_mean"], found["memory_mean"], found["turns"], clock.now())


def push_rows(frames: Sequence[DueRows], scheduler: Scheduler, hosts: Sequence[Host], epoch: float) -> Iterator[int]:
    """Push the frames when they are due, then end the streams; yield the rows of each frame."""
    routes = get_result(send(scheduler.routes))
    begin = time.time() - epoch + LEAD_S
    for number, frame in enumerate(frames):
        key, due = str(number), begin + frame.due
        time.sleep(max(0.0, epoch + due - time.time()))
        get_results([send(hosts[place].put, {key: frame.stamp(due)}) for place in routes[frame.stream]])
        item = LogItem(number + 1, frame.stream, frame.refer(key, due))
        get_result(send(scheduler.apply_log_batch, LogBatch("rows", number, number + 1, [item])))
        yield len(frame.batch)
    get_result(send(scheduler.apply_log_batch, LogBatch("rows", len(frames), len(frames), ends=True)))
