"""Runs the papers' experiments as Ray tasks, on all cores of a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import ray

from actors.cluster.cluster import connect, disconnect, start_local_ray
from dsms.papers.worker_pools import Job

Measured = dict[str, Any]  # what a job measured
TASKS_PER_CORE = 2  # tasks submitted per core: no core is idle, and few are lost on Ctrl-C


class RayPool:
    """Tasks on the cluster at `where`: this machine's ("auto", None), or one of its own ("local")."""

    def __init__(self, where: str | None = None, jobs: int | None = None) -> None:
        self._where, self._jobs = where, jobs

    def results(self, work: Sequence[Job]) -> Iterator[tuple[Job, Measured]]:
        mine = not ray.is_initialized()
        if self._where == "local":
            start_local_ray(num_cpus=self._jobs or os.cpu_count())
        else:
            connect(self._where)
        try:
            yield from self._in_tasks(work)
        finally:
            if mine:
                disconnect()

    def _in_tasks(self, work: Sequence[Job]) -> Iterator[tuple[Job, Measured]]:
        cluster: Any = ray
        most = self._jobs or TASKS_PER_CORE * int(cluster.cluster_resources().get("CPU", 1))
        measure = ray.remote(num_cpus=1)(_measure)
        waiting, under_way = list(reversed(work)), dict[Any, Job]()
        try:
            while waiting or under_way:
                while waiting and len(under_way) < most:
                    each = waiting.pop()
                    under_way[measure.remote(each)] = each
                [done], _ = ray.wait(list(under_way), num_returns=1)
                yield under_way.pop(done), ray.get(done)
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)


def _measure(work: Job) -> Measured:
    return work.measure(work.point)
