"""The result hub actor: orders every query's results, writes them to files and sends them to gateways."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from actors.cluster.malloc_trim import start_malloc_trim
from actors.ingest.handles import NumberedBatch, ResultReceiver
from actors.rpc.calls import Calls
from actors.rpc.messages import RESULTS, JsonObject, Result, make_actor_class
from dsms import io  # whose functions import pyarrow when they are used
from dsms.data.batch import Batch
from dsms.data.schema import Schema, conform, infer_schema
from dsms.errors import DsmsError, PlanError, existing
from dsms.live.reorder_buffer import ReorderBuffer

log = logging.getLogger("dsms")


QueryOutput = tuple[
    Any, Schema | None, bool
]  # a query's sink as in its plan, its columns if known, whether rows are only added


@dataclass
class OutputChannel:
    """The destinations of one query's results, and how far they are."""

    target: Any  # the sink as in its plan; None: subscribers only
    schema: Schema | None
    is_append_only: bool
    folder: Path
    order: ReorderBuffer
    sink: io.FileSink | None = None
    rows: int = 0
    error: str | None = None  # why its file is no longer written
    file_offset: int = 0  # bytes of its file that exist already
    unwritten: list[Batch] = field(default_factory=list)  # that the disk refused; only where results are durable


class ResultHub:
    """Takes each query's numbered batches from hosts and passes them on in order; one thread, so nothing is locked."""

    def __init__(self) -> None:
        start_malloc_trim()
        self._channels: dict[str, OutputChannel] = {}
        self._gateways: defaultdict[str, dict[str, ResultReceiver]] = defaultdict(dict)  # by query: by gateway name
        self._ended: dict[str, int] = {}  # removed queries: if one is added again, its numbers continue
        self._lost_gateways: list[tuple[str, ResultReceiver]] = []  # that did not answer; filled by another thread
        self._calls = Calls()

    def open(self, queries: Mapping[str, QueryOutput], folder: str, at: Mapping[str, int] | None = None) -> None:
        """Expect results of these queries too; their files are relative to the folder.

        `at`: the bytes that exist already, of files that are continued.
        """
        made: dict[str, OutputChannel] = {}
        try:
            for name, (target, schema, is_append_only) in queries.items():
                if name in self._channels:
                    raise DsmsError(f"query {name!r} has an output already")
                target = None if target == io.STDOUT else target
                order = ReorderBuffer(self._ended.get(name, 0))
                made[name] = channel = OutputChannel(target, schema, is_append_only, Path(folder), order)
                channel.file_offset = (at or {}).get(name, 0)
                if target is not None and schema is not None:
                    channel.sink = self._sink(name, channel, schema)
        except DsmsError:
            for channel in made.values():
                if channel.sink is not None:
                    channel.sink.abandon()
            raise
        self._channels.update(made)

    def take(self, results: Iterable[Result], incarnation: int = 0) -> None:
        """Take results; those of a removed query are dropped."""
        while self._lost_gateways:
            self._forget(*self._lost_gateways.pop())
        self._emit(results)

    def subscribe(
        self, query: str, gateway: ResultReceiver, name: str, after: int | None = None
    ) -> tuple[int, list[NumberedBatch]]:
        """Send a query's results to a gateway from now on.

        Returns the number of its last result, and the kept results after `after`.
        """
        channel = self._channels.get(query)
        if channel is None:
            raise DsmsError(f"no query {query!r}{existing(query, self._channels)}")
        self._calls(gateway.results, [], group=RESULTS)  # the first call to an actor takes Ray 2.60 half a second
        past = channel.order.latest, channel.order.after(after)
        self._gateways[query][name] = gateway  # last: once listed, it gets the next result
        return past

    def unsubscribe(self, query: str, name: str) -> None:
        """Stop sending a query's results to a gateway."""
        self._gateways[query].pop(name, None)

    def find_incomplete(self, numbers: Mapping[str, int]) -> list[str]:
        """The queries whose results up to these numbers have not all arrived."""
        behind = {name: numbers.get(name, 0) - channel.order.count for name, channel in self._channels.items()}
        return [name for name, missing in behind.items() if missing > 0]

    def close_query(self, query: str, has_started: bool = True) -> None:
        """Stop expecting results of a query and finish its file; one that has not started is left as it was.

        Subscriptions stay, for a query that is added again.
        """
        channel = self._channels.pop(query, None)
        if channel is not None:
            self._ended[query] = channel.order.latest
            if channel.sink is not None:
                (channel.sink.close if has_started else channel.sink.abandon)()

    def status(self) -> JsonObject:
        """What has arrived of each query."""
        return {
            "queries": [
                {
                    "name": name,
                    "results": channel.order.latest,
                    "rows": channel.rows,
                    "held": channel.order.held,
                    "gateways": len(self._gateways[name]),
                    "error": channel.error,
                }
                for name, channel in self._channels.items()
            ]
        }

    def ping(self) -> None:
        """Answer: the process runs."""

    def close(self) -> None:
        """Finish all files."""
        for query in list(self._channels):
            self.close_query(query)
        self._calls.close()

    def _emit(self, results: Iterable[Result]) -> None:
        """Write results to files and send them to gateways."""
        outgoing: dict[str, tuple[ResultReceiver, list[Result]]] = {}  # by gateway
        for query, number, batch in results:
            if (channel := self._channels.get(query)) is None:
                continue
            for ready_number, ready in channel.order.take(number, batch):
                channel.rows += ready.rows
                self._write(query, channel, ready)
                for name, gateway in self._gateways[query].items():
                    outgoing.setdefault(name, (gateway, []))[1].append((query, ready_number, ready))
        for name, (gateway, part) in outgoing.items():
            call = self._calls(gateway.results, part, group=RESULTS)
            call.add_done_callback(partial(self._sent, name, gateway))

    def _write(self, query: str, channel: OutputChannel, batch: Batch) -> None:
        """Write to the file; if that fails, subscribers still get the results, and the status says why."""
        if channel.target is None or channel.error is not None:
            return
        try:
            self._put(query, channel, batch)
        except Exception as error:  # errors of file-format libraries included
            channel.error = str(error)
            log.error("results of %r are no longer written: %s", query, error)

    def _put(self, query: str, channel: OutputChannel, batch: Batch) -> io.FileSink:
        """Write to the file, opening it first if needed."""
        if channel.schema is None:
            channel.schema = infer_schema(batch)
        if channel.sink is None:
            channel.sink = self._sink(query, channel, channel.schema)
        channel.sink.write(conform(batch, channel.schema, query))
        return channel.sink

    def _sink(self, query: str, channel: OutputChannel, schema: Schema) -> io.FileSink:
        try:
            return io.open_sink(
                channel.target, schema, channel.is_append_only, channel.folder, live=True, at=channel.file_offset
            )
        except PlanError as error:
            raise error.within(f"queries.{query}.sink") from None

    def _sent(self, name: str, gateway: ResultReceiver, done: Future[None]) -> None:
        if not done.cancelled() and done.exception() is not None:
            self._lost_gateways.append((name, gateway))

    def _forget(self, name: str, lost: ResultReceiver) -> None:
        """Remove a gateway that has ended, unless another has taken its name."""
        for gateways in self._gateways.values():
            if gateways.get(name) == lost:
                del gateways[name]


ResultHubActor = make_actor_class(ResultHub)
