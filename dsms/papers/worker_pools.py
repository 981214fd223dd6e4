"""Pools that execute runs: in this process, in several processes, or one that a package adds by entry point."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import entry_points
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, Protocol

from dsms.errors import DsmsError, FailedError, existing
from dsms.papers.experiment import Point
from dsms.papers.run_store import Measure

GROUP = "dsms.pools"  # entry points of pools


class Job(NamedTuple):
    """One run to execute: the measure function and its argument."""

    measure: Measure
    point: Point


class Pool(Protocol):
    """Executes jobs in any order."""

    def results(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
        """Yield each job with its figures as soon as it is done; closing the iterator cancels the rest."""


class Inline:
    """Executes jobs one after the other in this process."""

    def results(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
        for job in jobs:
            yield job, job.measure(job.point)


class Processes:
    """Executes jobs in worker processes, by default one per core."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or os.cpu_count() or 1

    def results(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
        context = multiprocessing.get_context("spawn")  # a fork would copy locks that threads hold
        before = set(multiprocessing.active_children())
        workers = min(self._workers, len(jobs)) or 1
        executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)
        try:
            futures = {executor.submit(job.measure, job.point): job for job in jobs}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise FailedError("a worker process died; finished runs are kept: run the same command again") from None
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - before:  # the executor's: it would let them finish
                child.terminate()
                child.join()


def _start_worker() -> None:
    """Prepare a worker: it leaves Ctrl-C to its parent, and exits when the parent does, even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def create_pool(text: str, jobs: int | None) -> Pool:
    """Create the pool that a text names: `processes`, or `NAME[:ADDRESS]` of one that a package adds."""
    name, _, address = text.partition(":")
    if text == "processes":
        return Inline() if jobs == 1 else Processes(jobs)
    others = {point.name: point for point in entry_points(group=GROUP)}
    if name not in others:
        raise DsmsError(f"no pool {name!r} to run experiments on{existing(name, ['processes', *others])}")
    try:
        pool: Pool = others[name].load()(address or None, jobs)
    except ImportError as error:
        raise DsmsError(f"experiments cannot run on {name!r} here: {error}") from None
    return pool
