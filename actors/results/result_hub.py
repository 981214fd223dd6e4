"""The result hub actor: orders every query's results, writes them to files and sends them to gateways."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from actors.cluster.malloc_trim import start_malloc_trim
from actors.ingest.handles import NumberedBatch, ResultReceiver
from actors.results.one_at_a_time import one_at_a_time
from actors.results.output_channel import OutputChannel
from actors.results.release import Release, ReleaseAtOnce, ReleaseRecord, ReleaseWithCheckpoint
from actors.rpc.calls import Calls
from actors.rpc.messages import RESULTS, JsonObject, Result, make_actor_class
from actors.transport.address import Address
from actors.transport.listener import Listener
from dsms import io  # whose functions import pyarrow when they are used
from dsms.data.schema import Schema
from dsms.errors import DsmsError, existing

# A query's sink as in its plan, its columns if they are known, and whether rows are only added.
QueryOutput = tuple[Any, Schema | None, bool]


class ResultHub:
    """Takes each query's numbered batches from hosts and passes them on in order.

    `release` decides when they leave. Calls come through Ray and, one thread for each host, through sockets.
    """

    def __init__(self, release: Release) -> None:
        start_malloc_trim()
        self._release = release
        self._channels: dict[str, OutputChannel] = {}
        self._gateways: defaultdict[str, dict[str, ResultReceiver]] = defaultdict(dict)  # by query: by gateway name
        self._ended: dict[str, int] = {}  # removed queries: if one is added again, its numbers continue
        self._lost_gateways: list[tuple[str, ResultReceiver]] = []  # that did not answer; filled by another thread
        self._calls = Calls()
        self.lock = threading.RLock()
        self._listener: Listener | None = None

    def listen_address(self) -> Address:
        """Open the socket through which hosts on this machine send results; returns its address."""
        if self._listener is None:
            self._listener = Listener({"take": self.take})
        return self._listener.address

    @one_at_a_time
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
                order, offset = self._release.make_order(self._ended.get(name, 0)), (at or {}).get(name, 0)
                made[name] = channel = OutputChannel(
                    name, target, schema, is_append_only, Path(folder), order, self._release.keeps_unwritten, offset
                )
                channel.open_sink()
        except DsmsError:
            for channel in made.values():
                channel.close(has_started=False)
            raise
        self._channels.update(made)
        for channel in made.values():
            self._release.open(channel)

    @one_at_a_time
    def take(self, results: Iterable[Result], incarnation: int = 0) -> None:
        """Take results; those of a removed query are dropped."""
        self._emit(self._release.take(results, incarnation))

    @one_at_a_time
    def snapshot(self, numbers: Mapping[str, int]) -> dict[str, ReleaseRecord]:
        """Record, for a checkpoint, how to release results up to these numbers after a crash."""
        return self._held_release.snapshot(numbers)

    @one_at_a_time
    def release(self, numbers: Mapping[str, int]) -> None:
        """Release results up to these numbers: the checkpoint that covers them is committed."""
        self._emit(self._held_release.release(numbers))

    @one_at_a_time
    def rewind(self, numbers: Mapping[str, int], over: Iterable[int]) -> None:
        """Expect the results after these numbers again: the domains that produced them are rebuilt."""
        self._held_release.rewind(numbers, over)

    @one_at_a_time
    def restore(
        self,
        release_records: Mapping[str, ReleaseRecord],
        past: Iterable[Mapping[str, ReleaseRecord]],
        queries: Mapping[str, tuple[QueryOutput, str]],
        beyond: Sequence[Mapping[str, ReleaseRecord]] = (),
    ) -> None:
        """Start where a checkpoint was about to be released; `past` was released before it, the oldest first.

        `beyond` was released after it, by checkpoints that can no longer be read.
        """
        release = self._held_release
        later = {
            name: [each[name] for each in beyond if name in each and each[name].base_number == record.base_number]
            for name, record in release_records.items()
        }
        for name, record in release_records.items():
            newest = (later[name] or [record])[-1]
            self._ended[name] = record.base_number
            if name in queries:
                output, folder = queries[name]
                self.open({name: output}, folder, {name: newest.file_offset})
                release.resume(name, newest)
            else:
                self._ended[name] += newest.count
        for name, (output, folder) in queries.items():
            if name not in release_records:
                self.open({name: output}, folder)
        for each in (*past, *beyond):
            release.restore_history(each, release_records)
        for name in queries.keys() & later.keys():
            if again := later[name]:
                self.release({name: again[-1].count})  # its file may lack them
                released = [one for each in again for one in each.released_results()]
                release.compensate(name, release_records[name].count, released)

    @property
    def _held_release(self) -> ReleaseWithCheckpoint:
        if isinstance(self._release, ReleaseAtOnce):
            raise DsmsError("results are released at once: no checkpoint covers them")
        return self._release

    @one_at_a_time
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

    @one_at_a_time
    def unsubscribe(self, query: str, name: str) -> None:
        """Stop sending a query's results to a gateway."""
        self._gateways[query].pop(name, None)

    @one_at_a_time
    def find_incomplete(self, numbers: Mapping[str, int]) -> list[str]:
        """The queries whose results up to these numbers have not all arrived."""
        return [name for name, channel in self._channels.items() if self._release.count(channel) < numbers.get(name, 0)]

    @one_at_a_time
    def close_query(self, query: str, has_started: bool = True) -> None:
        """Stop expecting results of a query and finish its file; one that has not started is left as it was.

        Subscriptions stay, for a query that is added again.
        """
        channel = self._channels.pop(query, None)
        if channel is not None:
            self._ended[query] = channel.order.latest
            self._release.close(query)
            channel.close(has_started)

    @one_at_a_time
    def status(self) -> JsonObject:
        """What has arrived of each query."""
        return {
            "queries": [
                {
                    "name": name,
                    "results": channel.order.latest,
                    "rows": channel.rows,
                    "held": self._release.held(channel),
                    "gateways": len(self._gateways[name]),
                    "error": channel.error,
                }
                for name, channel in self._channels.items()
            ]
        }

    def ping(self) -> None:
        """Answer: the process runs."""

    @one_at_a_time
    def close(self) -> None:
        """Finish all files."""
        for query in list(self._channels):
            self.close_query(query)
        self._calls.close()

    def _emit(self, results: Iterable[Result]) -> None:
        """Write results to files and send them to gateways."""
        while self._lost_gateways:
            self._forget(*self._lost_gateways.pop())
        outgoing: dict[str, tuple[ResultReceiver, list[Result]]] = {}  # by gateway
        for query, number, batch in results:
            if (channel := self._channels.get(query)) is None:
                continue
            for ready_number, ready in channel.order.take(number, batch):
                channel.rows += ready.rows
                channel.write(ready)
                for name, gateway in self._gateways[query].items():
                    outgoing.setdefault(name, (gateway, []))[1].append((query, ready_number, ready))
        for name, (gateway, part) in outgoing.items():
            call = self._calls(gateway.results, part, group=RESULTS)
            call.add_done_callback(partial(self._sent, name, gateway))

    def _sent(self, name: str, gateway: ResultReceiver, done: Future[None]) -> None:
        if not done.cancelled() and done.exception() is not None:
            self._lost_gateways.append((name, gateway))

    def _forget(self, name: str, lost: ResultReceiver) -> None:
        """Remove a gateway that has ended, unless another has taken its name."""
        for gateways in self._gateways.values():
            if gateways.get(name) == lost:
                del gateways[name]


ResultHubActor = make_actor_class(ResultHub)
