"""A result hub that holds results until the checkpoint that covers them is committed, and then releases each once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from actors.results.replay_dedup import Row, count_rows, drop_duplicates, retract
from actors.results.result_hub import OutputChannel, QueryOutput, ResultHub
from actors.rpc.messages import JsonObject, Result, make_actor_class
from dsms.data.batch import Batch
from dsms.errors import DsmsError, PlanError
from dsms.live.reorder_buffer import ReorderBuffer

log = logging.getLogger("dsms")
REPLAY_LIMIT_BATCHES, REPLAY_LIMIT_BYTES = (
    4096,
    64 * 1024 * 1024,
)  # kept for subscribers that reconnect
NumberedBatch = tuple[int, Batch]


@dataclass
class ReleaseRecord:
    """What a checkpoint records of one query's results."""

    base_number: int  # its results are numbered from here
    released: int  # results released before this checkpoint, counted from the base
    results: list[NumberedBatch] = field(default_factory=list)  # released with this checkpoint
    file_offset: int = 0  # bytes of its file before this checkpoint
    rows: int = 0
    duplicates: Counter[Row] = field(default_factory=Counter)  # rows released before that are produced again

    @property
    def count(self) -> int:
        """Results released once the checkpoint is committed."""
        return self.released + len(self.results)

    def released_results(self) -> list[NumberedBatch]:
        """Its results without the duplicates."""
        left = Counter(self.duplicates)
        return [(place, drop_duplicates(batch, left)) for place, batch in self.results]


@dataclass
class PendingResults:
    """One query's results that are not released yet."""

    order: ReorderBuffer
    waiting: list[NumberedBatch] = field(default_factory=list)
    duplicates: Counter[Row] = field(default_factory=Counter)  # rows to leave out: they were released before


class DurableResultHub(ResultHub):
    """Holds results until `release` says that they will never be produced again."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: dict[str, PendingResults] = {}
        self._dead_incarnations: set[int] = set()  # of domains that were rebuilt since

    def open(self, queries: Mapping[str, QueryOutput], folder: str, at: Mapping[str, int] | None = None) -> None:
        """Expect results of these queries too."""
        super().open(queries, folder, at)
        for name in queries:
            channel = self._channels[name]
            channel.order = ReorderBuffer(channel.order.since, REPLAY_LIMIT_BATCHES, REPLAY_LIMIT_BYTES)
            self._pending[name] = PendingResults(ReorderBuffer(channel.order.since))

    def take(self, results: Iterable[Result], incarnation: int = 0) -> None:
        """Take results; those of a domain's earlier incarnation are dropped, as they are produced again."""
        for query, number, batch in results if incarnation not in self._dead_incarnations else ():
            if (held := self._pending.get(query)) is not None:
                held.waiting += held.order.take(number, batch)

    def find_incomplete(self, numbers: Mapping[str, int]) -> list[str]:
        """The queries whose results up to these numbers have not all arrived."""
        return [name for name, held in self._pending.items() if numbers.get(name, 0) > held.order.count]

    def snapshot(self, numbers: Mapping[str, int]) -> dict[str, ReleaseRecord]:
        """Record, for a checkpoint, how to release results up to these numbers after a crash."""
        records: dict[str, ReleaseRecord] = {}
        self._flush_unwritten()
        for name, held in self._pending.items():
            channel, upto = self._channels[name], held.order.since + numbers.get(name, 0)
            waiting = [(place, batch) for place, batch in held.waiting if place <= upto]
            at = channel.sink.position() if channel.sink is not None else channel.file_offset
            order, duplicates = channel.order, Counter(held.duplicates)
            records[name] = ReleaseRecord(order.since, order.count, waiting, at, channel.rows, duplicates)
        return records

    def release(self, numbers: Mapping[str, int]) -> None:
        """Release results up to these numbers: the checkpoint that covers them is committed."""
        while self._lost_gateways:
            self._forget(*self._lost_gateways.pop())
        ready: list[Result] = []
        for name, held in self._pending.items():
            since = held.order.since
            upto = since + numbers.get(name, 0)
            due = [(place, batch) for place, batch in held.waiting if place <= upto]
            ready += [(name, place - since, drop_duplicates(batch, held.duplicates)) for place, batch in due]
            held.waiting = [(place, batch) for place, batch in held.waiting if place > upto]
        self._emit(ready)

    def rewind(self, numbers: Mapping[str, int], over: Iterable[int]) -> None:
        """Expect the results after these numbers again: the domains that produced them are rebuilt."""
        self._dead_incarnations.update(over)
        for name, number in numbers.items():
            if (held := self._pending.get(name)) is not None:
                upto = held.order.since + number
                held.waiting = [(place, batch) for place, batch in held.waiting if place <= upto]
                held.order = ReorderBuffer(held.order.since, given=number)
                self._compensate(name, number, self._channels[name].order.after(upto))

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
        later = {
            name: [each[name] for each in beyond if name in each and each[name].base_number == record.base_number]
            for name, record in release_records.items()
        }
        for name, record in release_records.items():
            newest = (later[name] or [record])[-1]
            self._ended[name] = record.base_number
            if name in queries:
                self._begin(name, *queries[name], newest)
            else:
                self._ended[name] += newest.count
        for name, (known, folder) in queries.items():
            if name not in release_records:
                self.open({name: known}, folder)
        for each in (*past, *beyond):
            self._restore_history(
                {name: known for name, known in each.items() if name in queries and name in release_records},
                release_records,
            )
        for name in queries.keys() & later.keys():
            if again := later[name]:
                self.release({name: again[-1].count})  # its file may lack them
                self._compensate(
                    name, release_records[name].count, [one for each in again for one in each.released_results()]
                )

    def _restore_history(self, past: Mapping[str, ReleaseRecord], now: Mapping[str, ReleaseRecord]) -> None:
        """Keep the results released with a checkpoint for subscribers that reconnect."""
        for name, record in past.items():
            order = self._channels[name].order
            if record.base_number == now[name].base_number:
                for place, batch in record.released_results():
                    if place <= order.latest:
                        order.restore(place, batch)

    def _begin(self, name: str, output: QueryOutput, folder: str, record: ReleaseRecord) -> None:
        """Continue one query's results."""
        self.open({name: output}, folder, {name: record.file_offset})
        channel: OutputChannel = self._channels[name]
        channel.order = ReorderBuffer(record.base_number, REPLAY_LIMIT_BATCHES, REPLAY_LIMIT_BYTES, record.released)
        channel.rows = record.rows
        order = ReorderBuffer(record.base_number, given=record.count)
        self._pending[name] = PendingResults(order, list(record.results), Counter(record.duplicates))

    def _compensate(self, name: str, number: int, released: Sequence[NumberedBatch]) -> None:
        """Compensate for results after `number` that were released and are produced again.

        Turns may cut them differently the second time, so numbers cannot tell. A query with retractions retracts them;
        an append-only query leaves out rows that come again. New results get new numbers.
        """
        if not released:
            return
        channel, held, batches = self._channels[name], self._pending[name], [batch for _, batch in released]
        if channel.is_append_only:
            held.duplicates += count_rows(batches)
            batches = []
        last = released[-1][0]
        back = retract(batches)
        held.waiting += [(last + place, batch) for place, batch in enumerate(back, 1)]
        channel.order.since = last + len(back) - number
        held.order = ReorderBuffer(channel.order.since, given=number)
        log.warning("%d results of %r are produced again; the released ones are compensated", len(released), name)

    def _write(self, query: str, channel: OutputChannel, batch: Batch) -> None:
        """Write to the file; a batch that the disk refuses waits, and so does the next checkpoint."""
        if channel.target is not None and (channel.error is None or channel.unwritten):
            channel.unwritten.append(batch)
            self._retry_write(query, channel)

    def _flush_unwritten(self) -> None:
        """Write the batches that wait; DsmsError while a disk is full."""
        for query, channel in self._channels.items():
            if channel.unwritten:
                self._retry_write(query, channel)
            if channel.unwritten:
                raise DsmsError(f"the results of {query!r} cannot be written: {channel.error}; it will be retried")

    def _retry_write(self, query: str, channel: OutputChannel) -> None:
        """Write the batches that wait, from the last offset that was complete: a failed write may have left a part."""
        channel.error = None
        try:
            while channel.unwritten:
                channel.file_offset = self._put(query, channel, channel.unwritten[0]).size
                del channel.unwritten[0]
        except (OSError, PlanError) as error:
            channel.error = str(error)
            if channel.sink is not None:
                channel.sink.discard()
                channel.sink = None
        except Exception as error:  # the rows themselves cannot be written: they would fail again
            channel.error = str(error)
            channel.unwritten.clear()
            log.error("results of %r are no longer written: %s", query, error)

    def close_query(self, query: str, has_started: bool = True) -> None:
        """Stop expecting results of a query."""
        super().close_query(query, has_started)
        self._pending.pop(query, None)

    def status(self) -> JsonObject:
        """What has arrived of each query; `held` counts results that wait for a checkpoint too."""
        status = super().status()
        for query in status["queries"]:
            held = self._pending[query["name"]]
            query["held"] = held.order.held + len(held.waiting)
        return status


DurableResultHubActor = make_actor_class(DurableResultHub)
