"""Sends a gateway's batches and watermarks to one scheduler: one call at a time, each with all queued items."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from actors.ingest.handles import SchedulerHandle
from actors.rpc.calls import BatchHost, Calls
from actors.rpc.messages import ARRIVALS, R
from actors.rpc.process_loss import describe_error
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef

CALL_LIMIT_ITEMS = 1024
CALL_LIMIT_BYTES = (
    8 * 1024 * 1024
)  # small, so that pages of the object store are soon reused and reading is not delayed

DoneCallback = Callable[[str | None], None]  # called with the reason if it failed, else None


@dataclass(frozen=True, slots=True)
class DispatchItem:
    """A message for a scheduler: a batch and its reference, a watermark, or the end of all streams."""

    stream: str
    done: DoneCallback
    batch_ref: BatchRef | None = None
    batch: Batch | None = None
    hosts: tuple[BatchHost, ...] = ()
    upto: int | None = None
    ends: bool = False


class Dispatcher:
    """Sends items in order; at most one call is under way, and none waits while there is none."""

    def __init__(self, scheduler: SchedulerHandle, calls: Calls) -> None:
        self._scheduler, self._calls = scheduler, calls
        self._waiting: deque[DispatchItem] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return self._task is not None

    def add(self, item: DispatchItem) -> None:
        """Send an item after all earlier ones."""
        self._waiting.append(item)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def drain(self) -> None:
        """Wait until all items so far are answered."""
        answered = asyncio.Event()
        self.add(DispatchItem("", lambda reason: answered.set()))
        await answered.wait()

    async def _run(self) -> None:
        while self._waiting:
            items = self._next()
            refused, failed = await self._admit(items), await self._send_watermarks(items)
            for item in items:
                item.done(refused if item.batch_ref is not None else failed)
        self._task = None

    def _next(self) -> list[DispatchItem]:
        """The items of the next call."""
        items: list[DispatchItem] = []
        size = 0.0
        while self._waiting and len(items) < CALL_LIMIT_ITEMS and size < CALL_LIMIT_BYTES:
            items.append(self._waiting.popleft())
            size += items[-1].batch_ref.size if items[-1].batch_ref is not None else 0
        return items

    async def _admit(self, items: list[DispatchItem]) -> str | None:
        """Put batches into their hosts and announce them to the scheduler; returns the reason if that failed."""
        batch_refs = [(item.stream, item.batch_ref) for item in items if item.batch_ref is not None]
        if not batch_refs:
            return None
        batches = [
            (i.hosts, i.batch_ref.key, i.batch) for i in items if i.batch_ref is not None and i.batch is not None
        ]
        try:
            calls: list[Future[Any]] = [
                *self._calls.put(batches),
                self._calls(self._scheduler.arrived, batch_refs, group=ARRIVALS),
            ]
        except Exception as error:  # an actor has ended, or rows cannot be sent
            return describe_error(error)
        return await await_all(calls)

    async def _send_watermarks(self, items: list[DispatchItem]) -> str | None:
        """Send watermarks after all rows of this call: a promise about later rows may come later."""
        watermarks: dict[str, int] = {}
        for item in items:
            if item.upto is not None:
                watermarks[item.stream] = max(item.upto, watermarks.get(item.stream, item.upto))
        try:
            calls = [
                self._calls(self._scheduler.advance, stream, upto, group=ARRIVALS)
                for stream, upto in watermarks.items()
            ]
            reason = await await_all(calls)
            if any(item.ends for item in items):
                reason = await await_all([self._calls(self._scheduler.end, group=ARRIVALS)]) or reason
        except Exception as error:
            return describe_error(error)
        return reason


async def await_all(calls: Iterable[Future[R]]) -> str | None:
    """Wait for all calls; returns the reason of the first that failed."""
    answers = await asyncio.gather(*map(asyncio.wrap_future, calls), return_exceptions=True)
    failures = (answer for answer in answers if isinstance(answer, BaseException))
    return next(map(describe_error, failures), None)
