"""Replays a gateway's log to one scheduler from its last offset, across restarts of either."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from actors.ingest.dispatcher import await_all
from actors.ingest.handles import DurableSchedulerHandle
from actors.ingest.log_cache import CachedEntry
from actors.rpc.calls import BatchHost
from actors.rpc.messages import ARRIVALS, CONTROL
from actors.rpc.process_loss import describe_error
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.live.log_batch import LogBatch
from dsms.net.wire import Advance, Data, End

if TYPE_CHECKING:
    from actors.ingest.durable_intake import DurableIntake

log = logging.getLogger("dsms")
DELIVERY_LIMIT_BYTES = 8 * 1024 * 1024  # of one delivery, unless a single frame is larger
DELIVERY_RETRY_S = 0.2  # after a scheduler has refused a delivery, or does not answer


class LogReader:
    """A task that delivers the log to one scheduler, in order; it retries until it is ended."""

    def __init__(self, scheduler: DurableSchedulerHandle, intake: DurableIntake) -> None:
        self._scheduler, self._intake = scheduler, intake
        self._reads = intake.routes.streams_read_by(scheduler)
        self.position: int | None = None  # the scheduler's offset; None: unknown
        self.is_delivering = False
        self.error: str | None = None  # of the last delivery, if it failed
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def end(self) -> None:
        """Stop delivering."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def recall_delivery(self) -> None:
        """Have the scheduler reject a delivery that waits for admission."""
        if self.is_delivering:
            await await_all([self._intake.calls(self._scheduler.reject_waiting, group=CONTROL)])

    async def _run(self) -> None:
        while True:
            self.is_delivering = False
            try:
                asked = self._intake.calls(self._scheduler.position, self._intake.name, group=ARRIVALS)
                position = self.position = await asyncio.wrap_future(asked)
                self._intake.check(position)
                self._intake.notify_progress()
                while True:
                    entries = await self._intake.after(position, DELIVERY_LIMIT_BYTES)
                    self.is_delivering = True
                    position = await self._deliver(position, entries)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # its process has ended and is rebuilt, or it has another offset
                self.error, self.position = describe_error(error), None
                log.debug("a delivery has failed: %s", self.error)
                await asyncio.sleep(DELIVERY_RETRY_S)

    async def _deliver(self, after: int, entries: Sequence[CachedEntry]) -> int:
        batches: list[tuple[tuple[BatchHost, ...], str, Batch]] = []
        contents: list[tuple[str, Batch | BatchRef | int]] = []
        for entry in entries:
            match entry.message:
                case Data(stream=stream, batch=batch) if batch.rows and stream in self._reads:
                    hosts, batch_ref, batch = self._intake.make_batch_ref(stream, batch, self._scheduler)
                    batches.append((hosts, batch_ref.key, batch))
                    contents.append((stream, batch_ref))
                case Advance(stream=stream, upto=upto) if stream in self._reads:
                    contents.append((stream, upto))
        upto = entries[-1].offset
        ends = any(isinstance(entry.message, End) for entry in entries) and self._intake.has_ended(self._reads, upto)
        # Rows first: a scheduler that knows of them must find them at the hosts, even if this process ends.
        if (reason := await await_all(self._intake.calls.put(batches))) is not None:
            raise ConnectionError(reason)
        log_batch = LogBatch(self._intake.name, after, upto, contents, ends)
        call = self._intake.calls(self._scheduler.apply_log_batch, log_batch, group=ARRIVALS)
        await asyncio.wrap_future(call)
        self.position, self.error, self.is_delivering = upto, None, False
        self._intake.notify_progress()
        return upto
