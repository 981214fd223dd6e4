"""The way from a gateway's log to one scheduler: from where that stands, however often either of them begins anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from actors.lane import answered, said
from actors.messages import ARRIVALS, CONTROL
from actors.tail import Kept
from dsms.batch import Batch
from dsms.live.delivery import Delivery
from dsms.parcel import Parcel
from dsms.wire import Advance, Data, End

if TYPE_CHECKING:
    from actors.durable_intake import DurableIntake

log = logging.getLogger("dsms")
BYTES = 8 * 1024 * 1024  # in one delivery, as far as one frame is not larger
AGAIN = 0.2  # seconds until a scheduler that did not take something is asked again


class DurableLane:
    """A task that brings one scheduler all that it reads of the log, in order; it never gives up, but can be ended."""

    def __init__(self, scheduler: Any, intake: DurableIntake) -> None:
        self._scheduler, self._intake = scheduler, intake
        self._reads = intake.routes.read_by(scheduler)
        self.position: int | None = None  # where the scheduler stands; None: not known yet
        self.bringing = False  # whether a delivery is on its way
        self.error: str | None = None  # why it does not get on
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def end(self) -> None:
        """Bring nothing more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def take_back(self) -> None:
        """Have what is on its way sent back, if there is no room for it yet."""
        if self.bringing:
            await answered([self._intake.calls(self._scheduler.decline, group=CONTROL)])

    async def _run(self) -> None:
        while True:
            self.bringing = False
            try:
                asked = self._intake.calls(self._scheduler.position, self._intake.name, group=ARRIVALS)
                position = self.position = int(await asyncio.wrap_future(asked))
                self._intake.check(position)
                self._intake.moved()
                while True:
                    kept = await self._intake.after(position, BYTES)
                    self.bringing = True
                    position = await self._bring(position, kept)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # it is gone, and will be there again; or it stands elsewhere than we thought
                self.error, self.position = said(error), None
                log.debug("a delivery has failed: %s", self.error)
                await asyncio.sleep(AGAIN)

    async def _bring(self, after: int, kept: Sequence[Kept]) -> int:
        goods: list[tuple[tuple[Any, ...], str, Batch]] = []
        contents: list[tuple[str, Batch | Parcel | int]] = []
        for one in kept:
            match one.said:
                case Data(stream=stream, batch=batch) if batch.rows and stream in self._reads:
                    hosts, parcel, batch = self._intake.packed(stream, batch, self._scheduler)
                    goods.append((hosts, parcel.key, batch))
                    contents.append((stream, parcel))
                case Advance(stream=stream, upto=upto) if stream in self._reads:
                    contents.append((stream, upto))
        upto = kept[-1].offset
        ends = any(isinstance(one.said, End) for one in kept) and self._intake.over(self._reads, upto)
        # First the rows: a scheduler that knows of them may count on their being there, whatever becomes of us.
        if (reason := await answered(self._intake.calls.put(goods))) is not None:
            raise ConnectionError(reason)
        delivery = Delivery(self._intake.name, after, upto, contents, ends)
        call = self._intake.calls(self._scheduler.take_in, delivery, group=ARRIVALS)
        await asyncio.wrap_future(call)
        self.position, self.error, self.bringing = upto, None, False
        self._intake.moved()
        return upto
