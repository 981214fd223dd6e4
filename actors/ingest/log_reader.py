"""Delivers a gateway's log to one scheduler: one call at a time, each with all that waits, across their restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from actors.ingest.handles import SchedulerHandle
from actors.ingest.log_cache import CachedEntry
from actors.rpc.calls import BatchHost
from actors.rpc.messages import ARRIVALS, CONTROL, R
from actors.rpc.process_loss import describe_error
from dsms.data.batch import Batch
from dsms.live.log_batch import LogBatch, LogItem
from dsms.net.wire import Advance, Data

if TYPE_CHECKING:
    from actors.ingest.gateway_log import GatewayLog
    from actors.ingest.intake import Intake

log = logging.getLogger("dsms")
# Of one delivery, unless a single frame is larger: small, so that pages of the object store are soon reused.
DELIVERY_LIMIT_BYTES = 8 * 1024 * 1024
DELIVERY_RETRY_S = 0.2  # after a scheduler has refused a delivery, or does not answer


class LogReader:
    """A task that delivers the log to one scheduler, in order, until it is ended.

    After a failure it delivers a stored log again from the scheduler's offset on; messages that are only in memory are
    refused with the reason.
    """

    def __init__(self, scheduler: SchedulerHandle, intake: Intake, gateway_log: GatewayLog) -> None:
        self.scheduler, self._intake, self._log = scheduler, intake, gateway_log
        self.reads: frozenset[str] = frozenset()  # the streams that the scheduler reads
        self.position: int | None = None  # the scheduler's offset; None: unknown
        self.passed = gateway_log.last  # all entries up to here are delivered, or do not concern the scheduler
        self.is_delivering = False
        self.error: str | None = None  # of the last delivery, if it failed
        self._has_told_end = False  # whether the scheduler knows that all its streams have ended
        self._task = asyncio.get_running_loop().create_task(self._run())

    def set_reads(self, streams: frozenset[str]) -> None:
        """Deliver these streams from now on."""
        if streams != self.reads:
            self.reads, self._has_told_end = streams, False

    async def end(self) -> None:
        """Stop delivering."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def retire(self) -> None:
        """Stop delivering: the scheduler has no part in the routes any more."""
        self._task.cancel()
        self._finish(self._log.last, "its domain has been removed", {})

    async def recall_delivery(self) -> None:
        """Have the scheduler reject a delivery that waits for admission."""
        if self.is_delivering:
            await await_all([self._intake.calls(self.scheduler.reject_waiting, group=CONTROL)])

    async def _run(self) -> None:
        while True:
            entries: Sequence[CachedEntry] = ()
            try:
                position = self.position if self.position is not None else await self._ask_position()
                entries = await self._log.read(self.passed, DELIVERY_LIMIT_BYTES)
                if entries or self._must_tell_end(self.passed):
                    self.is_delivering = True
                    await self._deliver(position, entries)
                else:
                    await self._log.wait_for_change()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # its process has ended, or it has another offset
                self._fail(entries[-1].offset if entries else self._log.last, error)
                await asyncio.sleep(DELIVERY_RETRY_S)

    async def _ask_position(self) -> int:
        """Ask the scheduler for its offset; a stored log is read from there."""
        asked = self._intake.calls(self.scheduler.position, self._intake.name, group=ARRIVALS)
        position = await asyncio.wrap_future(asked)
        self._log.check(position)
        self.position = position
        if self._log.is_stored:
            self.passed = position
        self._log.notify()
        return position

    async def _deliver(self, position: int, entries: Sequence[CachedEntry]) -> None:
        """Deliver entries; a log in memory makes no call for entries of other streams."""
        upto = entries[-1].offset if entries else self.passed
        batches, items = self._split(entries)
        ends, refused = self._must_tell_end(upto), dict[int, str]()
        if items or ends or self._log.is_stored:
            log_batch = LogBatch(self._intake.name, position, upto, items, ends)
            putting = self._intake.calls.put(batches)
            if self._log.is_stored:  # rows first: a scheduler must find them, even if this process ends
                await self._await_rows(putting)
            call = self._intake.calls(self.scheduler.apply_log_batch, log_batch, group=ARRIVALS)
            calls: list[Future[Any]] = [*putting, call]
            await await_all(calls)
            refused = call.result()
            self.position, self._has_told_end = upto, self._has_told_end or ends
            await self._await_rows(putting)
        self._finish(upto, None, refused)

    async def _await_rows(self, putting: Iterable[Future[None]]) -> None:
        """Wait until hosts have taken the rows."""
        if (reason := await await_all(putting)) is not None:
            raise ConnectionError(reason)

    def _split(
        self, entries: Sequence[CachedEntry]
    ) -> tuple[list[tuple[tuple[BatchHost, ...], str, Batch]], list[LogItem]]:
        """Rows for hosts, and for the scheduler what it has to know of the entries."""
        batches: list[tuple[tuple[BatchHost, ...], str, Batch]] = []
        items: list[LogItem] = []
        for entry in entries:
            match entry.message:
                case Data(stream=stream, batch=batch) if batch.rows and stream in self.reads:
                    hosts, batch_ref, batch = self._intake.make_batch_ref(stream, batch, self.scheduler)
                    batches.append((hosts, batch_ref.key, batch))
                    items.append(LogItem(entry.offset, stream, batch_ref))
                case Advance(stream=stream, upto=watermark) if stream in self.reads:
                    items.append(LogItem(entry.offset, stream, watermark))
        return batches, items

    def _must_tell_end(self, upto: int) -> bool:
        """Whether all streams of the scheduler have ended at an offset, and it does not know."""
        return bool(self.reads) and not self._has_told_end and self._log.has_ended(self.reads, upto)

    def _fail(self, upto: int, error: Exception) -> None:
        """A delivery up to this offset has failed, and may have been applied in part."""
        self.error, self.position = describe_error(error), None
        log.debug("a delivery has failed: %s", self.error)
        if self._log.is_stored:
            self.is_delivering = False
        else:
            self._finish(upto, self.error, {})

    def _finish(self, upto: int, reason: str | None, refused: dict[int, str]) -> None:
        after, self.passed = self.passed, upto
        self.is_delivering, self.error = False, reason
        self._log.finish(self, after, reason, refused)


async def await_all(calls: Iterable[Future[R]]) -> str | None:
    """Wait for all calls; returns the reason of the first that failed."""
    answers = await asyncio.gather(*map(asyncio.wrap_future, calls), return_exceptions=True)
    failures = (answer for answer in answers if isinstance(answer, BaseException))
    return next(map(describe_error, failures), None)
