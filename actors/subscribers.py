"""Who at a gateway wants the results of which query, and how they get them without a gap or a double."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ray.exceptions import RayActorError

from actors.calls import Calls
from dsms.batch import Batch
from dsms.errors import DsmsError
from dsms.outlets import schema_like
from dsms.schema import Schema, conformed
from dsms.wire import Error, Message, Result, Schemas, encoded
from dsms.wire.pieces import pieces

AGAIN = 0.2  # seconds
Numbered = tuple[int, Batch]


class Reader(Protocol):
    """The connection of a subscriber."""

    def send(self, message: Message) -> None:
        """Say something to it."""

    def write(self, data: bytes) -> None:
        """Send it what is encoded already."""


@dataclass
class Subscriber:
    """One connection's wish; what comes out of order, or before it is known what is sent of the past, is kept."""

    early: dict[int, Batch] = field(default_factory=dict)
    begun: bool = False
    sent: int | None = None  # up to this number it has all; None: whatever comes first is the first

    def ready(self) -> Iterator[Numbered]:
        """Those that are next now."""
        while self.begun and self.early:
            number = min(self.early)
            if self.sent is not None and number > self.sent + 1:
                return
            batch = self.early.pop(number)
            if self.sent is None or number > self.sent:
                self.sent = number
                yield number, batch


class Subscribers:
    """The wishes of all connections; belongs to the thread of a gateway's loop."""

    def __init__(self, name: str, calls: Calls, outlet: Any, tell: Callable[[Schemas], None]) -> None:
        self.schemas: dict[str, Schema] = {}
        self.me: Any = None  # what the outlet calls this gateway by
        self.patient = False  # whether an outlet that is gone will be there again
        self._name, self._calls, self._outlet, self._tell = name, calls, outlet, tell
        self._wishes: dict[str, dict[Reader, Subscriber]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return sum(map(len, self._wishes.values()))

    def subscribe(self, reader: Reader, query: str, after: int | None) -> None:
        """Results of a query from the next on, or all that are still there after a number."""
        wish = Subscriber()
        self._wishes.setdefault(query, {})[reader] = wish
        task = asyncio.get_running_loop().create_task(self._begin(reader, query, after, wish))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def unsubscribe(self, reader: Reader, query: str) -> None:
        """No more of them."""
        wishes = self._wishes.get(query, {})
        if wishes.pop(reader, None) is not None and not wishes:
            del self._wishes[query]
            if self._outlet is not None:
                self._calls(self._outlet.unsubscribe, query, self._name)

    def leave(self, reader: Reader) -> None:
        """The connection is gone."""
        for query in [query for query, wishes in self._wishes.items() if reader in wishes]:
            self.unsubscribe(reader, query)

    def results(self, query: str, number: int, batch: Batch) -> None:
        """Pass results on to all who want them; they may come out of order, for Ray does not keep it here."""
        ready: defaultdict[int, list[Reader]] = defaultdict(list)
        batches: dict[int, Batch] = {}
        for reader, wish in self._wishes.get(query, {}).items():
            wish.early[number] = batch
            for place, found in wish.ready():
                ready[place].append(reader)
                batches[place] = found
        for place in sorted(batches):
            self._send(ready[place], query, place, batches[place])

    async def attach(self, outlet: Any) -> None:
        """Go on with another outlet, from where each subscriber is."""
        self._outlet = outlet
        for query, wishes in list(self._wishes.items()):
            for reader, wish in list(wishes.items()):
                if wish.begun:
                    after = wish.sent
                    call = self._calls(outlet.subscribe, query, self.me, self._name, after)
                    try:
                        latest, past = await asyncio.wrap_future(call)
                    except Exception as error:
                        self._refuse([reader], query, str(error))
                        continue
                    wish.sent = latest if after is None else after
                    for number, batch in past:
                        wish.early[number] = batch
                    for number, batch in wish.ready():
                        self._send([reader], query, number, batch)

    async def _begin(self, reader: Reader, query: str, after: int | None, wish: Subscriber) -> None:
        """Ask the outlet for the past, then go on with what came meanwhile."""
        past: list[Numbered] = []
        while self._outlet is not None:
            asked = self._outlet
            try:
                call = self._calls(asked.subscribe, query, self.me, self._name, after)
                wish.sent, past = await asyncio.wrap_future(call)
                break
            except Exception as error:
                if not self.patient or not isinstance(error, RayActorError):
                    self._refuse([reader], query, str(error))
                    return
                await asyncio.sleep(AGAIN)  # one that has died is rebuilt
        wish.begun = True
        for number, batch in (*past, *wish.ready()):
            if self._wishes.get(query, {}).get(reader) is wish:
                self._send([reader], query, number, batch)

    def _send(self, readers: list[Reader], query: str, number: int, batch: Batch) -> None:
        """Encoded once, however many want it."""
        try:
            schema = self._schema(query, batch)
            batch = conformed(batch, schema, query)
            parts = [b"".join(encoded(Result(query, number, piece, schema))) for piece in pieces(batch, schema)]
        except DsmsError as error:
            self._refuse(readers, query, f"result {number} cannot be sent: {error}")
            return
        for reader in readers:
            for part in parts:
                reader.write(part)

    def _refuse(self, readers: list[Reader], query: str, reason: str) -> None:
        for reader in readers:
            self.unsubscribe(reader, query)
            reader.send(Error(reason.strip().splitlines()[-1], query=query))

    def _schema(self, query: str, batch: Batch) -> Schema:
        """Its columns; where they are not known the first rows say them, and all are told before."""
        if query not in self.schemas:
            self.schemas[query] = schema_like(batch)
            self._tell(Schemas({}, {query: self.schemas[query]}))
        return self.schemas[query]
