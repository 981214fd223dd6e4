"""The way from a gateway to one scheduler: what comes while a call is under way goes with the next, all at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from actors.calls import Calls
from actors.messages import ARRIVALS
from dsms.batch import Batch
from dsms.parcel import Parcel

ITEMS = 1024  # in one call at most
BYTES = 8 * 1024 * 1024  # so that pages of the object store are soon used again, and reading is not kept waiting

Done = Callable[[str | None], None]  # told why it failed, if it did


@dataclass(frozen=True, slots=True)
class Item:
    """Something for a scheduler: a parcel and the batch it stands for, how far a stream is, or the end."""

    stream: str
    done: Done
    parcel: Parcel | None = None
    batch: Batch | None = None
    hosts: tuple[Any, ...] = ()
    upto: int | None = None
    ends: bool = False


class Lane:
    """Items in order; never more than one call of a kind under way, and no waiting while there is none."""

    def __init__(self, scheduler: Any, calls: Calls) -> None:
        self._scheduler, self._calls = scheduler, calls
        self._waiting: deque[Item] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether something is on its way."""
        return self._task is not None

    def add(self, item: Item) -> None:
        """Send this on, after all that was added before."""
        self._waiting.append(item)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def settled(self) -> None:
        """Wait until all that was added so far is answered."""
        answered = asyncio.Event()
        self.add(Item("", lambda reason: answered.set()))
        await answered.wait()

    async def _run(self) -> None:
        while self._waiting:
            items = self._next()
            refused, untold = await self._admitted(items), await self._told(items)
            for item in items:
                item.done(refused if item.parcel is not None else untold)
        self._task = None

    def _next(self) -> list[Item]:
        """As many as go into one call."""
        items: list[Item] = []
        size = 0.0
        while self._waiting and len(items) < ITEMS and size < BYTES:
            items.append(self._waiting.popleft())
            size += items[-1].parcel.size if items[-1].parcel is not None else 0
        return items

    async def _admitted(self, items: list[Item]) -> str | None:
        """Put the batches into the hosts and tell the scheduler of them; why that failed, if it did."""
        parcels = [(item.stream, item.parcel) for item in items if item.parcel is not None]
        if not parcels:
            return None
        goods = [(i.hosts, i.parcel.key, i.batch) for i in items if i.parcel is not None and i.batch is not None]
        try:
            calls = [*self._calls.put(goods), self._calls(self._scheduler.arrived, parcels, group=ARRIVALS)]
        except Exception as error:  # an actor that is gone, or rows that cannot be sent
            return said(error)
        return await answered(calls)

    async def _told(self, items: list[Item]) -> str | None:
        """How far streams are, after all rows of this call: a promise about later rows may well be given later."""
        far: dict[str, int] = {}
        for item in items:
            if item.upto is not None:
                far[item.stream] = max(item.upto, far.get(item.stream, item.upto))
        try:
            calls = [self._calls(self._scheduler.advance, *each, group=ARRIVALS) for each in far.items()]
            reason = await answered(calls)
            if any(item.ends for item in items):
                reason = await answered([self._calls(self._scheduler.end, group=ARRIVALS)]) or reason
        except Exception as error:
            return said(error)
        return reason


async def answered(calls: Iterable[Future[Any]]) -> str | None:
    """Wait for all; why the first of them that failed did so."""
    answers = await asyncio.gather(*map(asyncio.wrap_future, calls), return_exceptions=True)
    failures = (answer for answer in answers if isinstance(answer, BaseException))
    return next(map(said, failures), None)


def said(error: BaseException) -> str:
    """What went wrong there; of other errors of Ray the last line, before which it puts where that was."""
    lines = str(getattr(error, "cause", None) or error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
