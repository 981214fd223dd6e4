"""Sends the results of queries to subscribed clients, each result once and in order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from actors.ingest.handles import NumberedBatch, ResultReceiver, ResultSource
from actors.rpc.calls import Calls
from actors.rpc.process_loss import describe_error, is_process_gone
from dsms.data.batch import Batch
from dsms.data.schema import Schema, conform, infer_schema
from dsms.errors import DsmsError
from dsms.net.wire import Error, Message, Result, Schemas, encode
from dsms.net.wire.frame_split import split_batch

SUBSCRIBE_RETRY_S = 0.2


class SubscriberConnection(Protocol):
    """The connection of a subscriber."""

    def send(self, message: Message) -> None:
        """Send a message."""

    def write(self, data: bytes) -> None:
        """Send encoded bytes."""


@dataclass
class Subscriber:
    """One connection's subscription; holds results that are out of order or came before the past was fetched."""

    out_of_order: dict[int, Batch] = field(default_factory=dict)
    is_started: bool = False
    sent: int | None = None  # all results up to this number; None: the next result counts as the first

    def ready(self) -> Iterator[NumberedBatch]:
        """The results that are next in order."""
        while self.is_started and self.out_of_order:
            number = min(self.out_of_order)
            if self.sent is not None and number > self.sent + 1:
                return
            batch = self.out_of_order.pop(number)
            if self.sent is None or number > self.sent:
                self.sent = number
                yield number, batch


class Subscribers:
    """The subscriptions of all connections; only the thread of the gateway's event loop uses them."""

    def __init__(
        self, name: str, calls: Calls, result_hub: ResultSource | None, broadcast: Callable[[Schemas], None]
    ) -> None:
        self.schemas: dict[str, Schema] = {}
        self.gateway_handle: ResultReceiver | None = None  # by which the result hub calls this gateway
        self.retries_subscribe = False  # whether a result hub that has ended will be rebuilt
        self._name, self._calls, self._result_hub, self._broadcast = name, calls, result_hub, broadcast
        self._subscriptions: dict[str, dict[SubscriberConnection, Subscriber]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return sum(map(len, self._subscriptions.values()))

    def subscribe(
        self, reader: SubscriberConnection, query: str, after: int | None, on_begin: Callable[[], None] = lambda: None
    ) -> None:
        """Subscribe to a query: from the next result on, or from the kept results after a number.

        `on_begin` is called when no later result can be missed, or the subscription is refused.
        """
        subscription = Subscriber()
        self._subscriptions.setdefault(query, {})[reader] = subscription
        task = asyncio.get_running_loop().create_task(self._begin(reader, query, after, subscription))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: on_begin())

    def unsubscribe(self, reader: SubscriberConnection, query: str) -> None:
        """Cancel a subscription."""
        subscriptions = self._subscriptions.get(query, {})
        if subscriptions.pop(reader, None) is not None and not subscriptions:
            del self._subscriptions[query]
            if self._result_hub is not None:
                self._calls(self._result_hub.unsubscribe, query, self._name)

    def remove_reader(self, reader: SubscriberConnection) -> None:
        """Cancel all subscriptions of a connection."""
        for query in [query for query, subscriptions in self._subscriptions.items() if reader in subscriptions]:
            self.unsubscribe(reader, query)

    def results(self, query: str, number: int, batch: Batch) -> None:
        """Pass results on to subscribers; Ray may deliver them out of order."""
        ready: defaultdict[int, list[SubscriberConnection]] = defaultdict(list)
        batches: dict[int, Batch] = {}
        for reader, subscription in self._subscriptions.get(query, {}).items():
            subscription.out_of_order[number] = batch
            for place, ready_batch in subscription.ready():
                ready[place].append(reader)
                batches[place] = ready_batch
        for place in sorted(batches):
            self._send(ready[place], query, place, batches[place])

    async def attach(self, result_hub: ResultSource) -> None:
        """Continue with a new result hub, from each subscriber's last result on."""
        self._result_hub = result_hub
        for query, subscriptions in list(self._subscriptions.items()):
            for reader, subscription in list(subscriptions.items()):
                if subscription.is_started:
                    after = subscription.sent
                    call = self._subscribe_to(result_hub, query, after)
                    try:
                        latest, past = await asyncio.wrap_future(call)
                    except Exception as error:
                        self._refuse([reader], query, describe_error(error))
                        continue
                    subscription.sent = latest if after is None else after
                    for number, batch in past:
                        subscription.out_of_order[number] = batch
                    for number, batch in subscription.ready():
                        self._send([reader], query, number, batch)

    async def _begin(
        self, reader: SubscriberConnection, query: str, after: int | None, subscription: Subscriber
    ) -> None:
        """Fetch the past from the result hub, then continue with what came meanwhile."""
        past: list[NumberedBatch] = []
        while self._result_hub is not None:
            try:
                call = self._subscribe_to(self._result_hub, query, after)
                latest, past = await asyncio.wrap_future(call)
                subscription.sent = latest
                break
            except Exception as error:
                if not self.retries_subscribe or not is_process_gone(error):
                    self._refuse([reader], query, describe_error(error))
                    return
                await asyncio.sleep(SUBSCRIBE_RETRY_S)  # until it is rebuilt
        subscription.is_started = True
        for number, batch in (*past, *subscription.ready()):
            if self._subscriptions.get(query, {}).get(reader) is subscription:
                self._send([reader], query, number, batch)

    def _subscribe_to(
        self, result_hub: ResultSource, query: str, after: int | None
    ) -> Future[tuple[int, list[NumberedBatch]]]:
        if self.gateway_handle is None:
            raise DsmsError("the gateway does not listen yet")
        return self._calls(result_hub.subscribe, query, self.gateway_handle, self._name, after)

    def _send(self, readers: list[SubscriberConnection], query: str, number: int, batch: Batch) -> None:
        """Send a batch to readers; it is encoded once."""
        try:
            schema = self._schema(query, batch)
            batch = conform(batch, schema, query)
            parts = [b"".join(encode(Result(query, number, piece, schema))) for piece in split_batch(batch, schema)]
        except DsmsError as error:
            self._refuse(readers, query, f"result {number} cannot be sent: {error}")
            return
        for reader in readers:
            for part in parts:
                reader.write(part)

    def _refuse(self, readers: list[SubscriberConnection], query: str, reason: str) -> None:
        for reader in readers:
            self.unsubscribe(reader, query)
            reader.send(Error(reason, query=query))

    def _schema(self, query: str, batch: Batch) -> Schema:
        """A query's columns; unknown ones are inferred from the first rows and sent to all clients first."""
        if query not in self.schemas:
            self.schemas[query] = infer_schema(batch)
            self._broadcast(Schemas({}, {query: self.schemas[query]}))
        return self.schemas[query]
