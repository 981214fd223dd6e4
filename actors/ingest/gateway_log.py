"""The interface of a gateway's log: messages of clients in order, until all schedulers that need them have them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from actors.ingest.ingest_limits import IngestLimits
from actors.ingest.log_cache import CachedEntry, LogMessage
from actors.rpc.messages import JsonObject
from dsms.storage import ProducerPosition

if TYPE_CHECKING:
    from actors.ingest.log_reader import LogReader
    from dsms.live.routes import Routes

DoneCallback = Callable[[str | None], None]  # called with the reason if it failed, else None
Origin = tuple[str, int]  # the producer, and the sequence number of its frame


class GatewayLog(ABC):
    """What a log has in common with others: its readers, and how they learn of changes."""

    is_stored: ClassVar[bool]  # whether messages survive this process: then they are acknowledged before they are read

    def __init__(self) -> None:
        self.last = 0  # the offset of its end
        self.rows: Counter[str] = Counter()  # taken, by stream
        self.ended: dict[str, int] = {}  # by stream: the offset of its end
        self.readers: Sequence[LogReader] = ()
        self.limits = IngestLimits()
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Wake tasks that wait for progress of the log or of its readers."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self) -> None:
        """Wait until there may be more entries to read."""
        await self._changed.wait()

    def has_ended(self, streams: Iterable[str], offset: int) -> bool:
        """Whether these streams have ended at an offset."""
        return all(self.ended.get(stream, offset + 1) <= offset for stream in streams)

    def producers(self) -> Mapping[str, ProducerPosition]:
        """The producers known from before this process started."""
        return {}

    def refuse(self, origin: Origin, reason: str, done: DoneCallback) -> None:
        """Refuse a frame; the producer may send its number again."""
        done(reason)

    @abstractmethod
    def append(self, message: LogMessage, done: DoneCallback, origin: Origin | None = None) -> None:
        """Add a message after all earlier ones; `done` is called when it may be acknowledged, or with the reason."""

    @abstractmethod
    async def read(self, offset: int, size: int) -> Sequence[CachedEntry]:
        """Entries after an offset that may be delivered now, up to a number of bytes."""

    @abstractmethod
    def finish(self, reader: LogReader, after: int, reason: str | None, refused: Mapping[int, str]) -> None:
        """A reader has passed the entries after an offset: its scheduler has them, except the refused ones.

        With a reason it has none of them.
        """

    @abstractmethod
    async def hold(self, streams: Iterable[str], align: bool) -> None:
        """Hold messages of these streams back until `resume`."""

    def resume(self, routes: Routes) -> None:
        """Continue with these routes."""
        self.notify()

    def check(self, position: int) -> None:
        """Raise an error for a position that a scheduler cannot have."""
        return

    def truncate(self, upto: int) -> None:
        """Drop the log up to this offset: every kept checkpoint covers it."""
        return

    def status(self) -> JsonObject | None:
        """Its end, and how far behind schedulers are; None where nothing is stored."""
        return None

    def close(self) -> None:
        """Release its resources."""
        return
