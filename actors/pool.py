"""Runs of the papers' experiments as Ray tasks, on all cores of a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import ray

from actors.cluster import connect, disconnect, local
from dsms.papers.pools import Work

AHEAD = 2  # tasks asked for, for each core: none is idle, and little is left to give up when somebody stops


class RayPool:
    """On the cluster at `where`, this machine's ("auto", None), or one of its own ("local")."""

    def __init__(self, where: str | None = None, jobs: int | None = None) -> None:
        self._where, self._jobs = where, jobs

    def results(self, work: Sequence[Work]) -> Iterator[tuple[Work, dict[str, Any]]]:
        mine = not ray.is_initialized()
        if self._where == "local":
            local(num_cpus=self._jobs or os.cpu_count())
        else:
            connect(self._where)
        try:
            yield from self._in_tasks(work)
        finally:
            if mine:
                disconnect()

    def _in_tasks(self, work: Sequence[Work]) -> Iterator[tuple[Work, dict[str, Any]]]:
        cluster: Any = ray
        most = self._jobs or AHEAD * int(cluster.cluster_resources().get("CPU", 1))
        measure = ray.remote(num_cpus=1)(_measure)
        waiting, under_way = list(reversed(work)), dict[Any, Work]()
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


def _measure(work: Work) -> dict[str, Any]:
    return work.measure(work.point)
