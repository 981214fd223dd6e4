"""Who works runs out: this process, several, or whoever another package brings by entry point."""

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
from dsms.papers.store import Measure

GROUP = "dsms.pools"


class Work(NamedTuple):
    """One run to be done."""

    measure: Measure
    point: Point


class Pool(Protocol):
    """Does runs in any order."""

    def results(self, work: Sequence[Work]) -> Iterator[tuple[Work, dict[str, Any]]]:
        """Each as soon as it is done; the rest is given up when nobody asks for more."""


class Inline:
    """One after the other, here."""

    def results(self, work: Sequence[Work]) -> Iterator[tuple[Work, dict[str, Any]]]:
        for each in work:
            yield each, each.measure(each.point)


class Processes:
    """So many at a time."""

    def __init__(self, many: int | None = None) -> None:
        self._many = many or os.cpu_count() or 1

    def results(self, work: Sequence[Work]) -> Iterator[tuple[Work, dict[str, Any]]]:
        context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks as they stand
        before = set(multiprocessing.active_children())
        executor = ProcessPoolExecutor(min(self._many, len(work)) or 1, mp_context=context, initializer=_enlist)
        try:
            futures = {executor.submit(each.measure, each.point): each for each in work}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise FailedError("a process that worked out runs has died; what was done is kept: try again") from None
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - before:  # of no use to anybody any more
                child.terminate()
                child.join()


def _enlist() -> None:
    """A process that works runs out leaves Ctrl-C to the one that started it, and ends with that, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (starter := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=(starter,), daemon=True).start()


def _end_with(starter: BaseProcess) -> None:
    starter.join()
    os._exit(1)


def pool_named(text: str, jobs: int | None) -> Pool:
    """`processes`, or `NAME[:WHERE]` of one that another package brings."""
    name, _, where = text.partition(":")
    if text == "processes":
        return Inline() if jobs == 1 else Processes(jobs)
    others = {point.name: point for point in entry_points(group=GROUP)}
    if name not in others:
        raise DsmsError(f"nobody is called {name!r} to work out runs{existing(name, ['processes', *others])}")
    try:
        made: Pool = others[name].load()(where or None, jobs)
    except ImportError as error:
        raise DsmsError(f"{name!r} cannot work out runs here: {error}") from None
    return made
