"""When results leave: at once, or with the checkpoint that covers them, so that each leaves once whatever dies."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from actors.results.output_channel import OutputChannel
from actors.results.replay_dedup import Row, count_rows, drop_duplicates, retract
from actors.rpc.messages import Result
from dsms.data.batch import Batch
from dsms.live.reorder_buffer import ReorderBuffer

log = logging.getLogger("dsms")
REPLAY_LIMIT_BATCHES, REPLAY_LIMIT_BYTES = 4096, 64 * 1024 * 1024  # kept for subscribers that reconnect
NumberedBatch = tuple[int, Batch]


class ReleaseAtOnce:
    """Passes results on as they come."""

    keeps_unwritten = False

    def make_order(self, since: int) -> ReorderBuffer:
        """The order of a new query, whose numbers start after `since`."""
        return ReorderBuffer(since)

    def open(self, channel: OutputChannel) -> None:
        """Expect results of this query too."""

    def close(self, query: str) -> None:
        """Expect no more results of a query."""

    def take(self, results: Iterable[Result], incarnation: int) -> Iterable[Result]:
        """Take results; returns what is released."""
        return results

    def count(self, channel: OutputChannel) -> int:
        """How many results of a query have arrived without a gap."""
        return channel.order.count

    def held(self, channel: OutputChannel) -> int:
        """How many results of a query wait."""
        return channel.order.held


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

    channel: OutputChannel
    order: ReorderBuffer
    waiting: list[NumberedBatch] = field(default_factory=list)
    duplicates: Counter[Row] = field(default_factory=Counter)  # rows to leave out: they were released before


class ReleaseWithCheckpoint:
    """Holds results until `release` says that they will never be produced again."""

    keeps_unwritten = True

    def __init__(self) -> None:
        self._pending: dict[str, PendingResults] = {}  # by query
        self._dead_incarnations: set[int] = set()  # of domains that were rebuilt since

    def make_order(self, since: int) -> ReorderBuffer:
        """The order of a new query, whose numbers start after `since`."""
        return ReorderBuffer(since, REPLAY_LIMIT_BATCHES, REPLAY_LIMIT_BYTES)

    def open(self, channel: OutputChannel) -> None:
        """Expect results of this query too."""
        self._pending[channel.query] = PendingResults(channel, ReorderBuffer(channel.order.since))

    def close(self, query: str) -> None:
        """Expect no more results of a query."""
        self._pending.pop(query, None)

    def take(self, results: Iterable[Result], incarnation: int) -> Iterable[Result]:
        """Hold results; those of a domain's earlier incarnation are dropped, as they are produced again."""
        for query, number, batch in results if incarnation not in self._dead_incarnations else ():
            if (held := self._pending.get(query)) is not None:
                held.waiting += held.order.take(number, batch)
        return ()

    def count(self, channel: OutputChannel) -> int:
        """How many results of a query have arrived without a gap."""
        return self._pending[channel.query].order.count

    def held(self, channel: OutputChannel) -> int:
        """How many results of a query wait, for a checkpoint or for an earlier one."""
        held = self._pending[channel.query]
        return held.order.held + len(held.waiting)

    def snapshot(self, numbers: Mapping[str, int]) -> dict[str, ReleaseRecord]:
        """Record, for a checkpoint, how to release results up to these numbers after a crash."""
        records: dict[str, ReleaseRecord] = {}
        for held in self._pending.values():
            held.channel.flush()
        for name, held in self._pending.items():
            channel, order, upto = held.channel, held.channel.order, held.order.since + numbers.get(name, 0)
            waiting = [(place, batch) for place, batch in held.waiting if place <= upto]
            duplicates = Counter(held.duplicates)
            records[name] = ReleaseRecord(
                order.since, order.count, waiting, channel.position(), channel.rows, duplicates
            )
        return records

    def release(self, numbers: Mapping[str, int]) -> list[Result]:
        """Release results up to these numbers: the checkpoint that covers them is committed."""
        ready: list[Result] = []
        for name, held in self._pending.items():
            since = held.order.since
            upto = since + numbers.get(name, 0)
            due = [(place, batch) for place, batch in held.waiting if place <= upto]
            ready += [(name, place - since, drop_duplicates(batch, held.duplicates)) for place, batch in due]
            held.waiting = [(place, batch) for place, batch in held.waiting if place > upto]
        return ready

    def rewind(self, numbers: Mapping[str, int], over: Iterable[int]) -> None:
        """Expect the results after these numbers again: the domains that produced them are rebuilt."""
        self._dead_incarnations.update(over)
        for name, number in numbers.items():
            if (held := self._pending.get(name)) is not None:
                upto = held.order.since + number
                held.waiting = [(place, batch) for place, batch in held.waiting if place <= upto]
                held.order = ReorderBuffer(held.order.since, given=number)
                self.compensate(name, number, held.channel.order.after(upto))

    def resume(self, query: str, record: ReleaseRecord) -> None:
        """Continue a query's results where a checkpoint was about to release them."""
        held = self._pending[query]
        held.channel.order = ReorderBuffer(
            record.base_number, REPLAY_LIMIT_BATCHES, REPLAY_LIMIT_BYTES, record.released
        )
        held.channel.rows = record.rows
        held.order = ReorderBuffer(record.base_number, given=record.count)
        held.waiting, held.duplicates = list(record.results), Counter(record.duplicates)

    def restore_history(self, past: Mapping[str, ReleaseRecord], now: Mapping[str, ReleaseRecord]) -> None:
        """Keep the results released with an earlier checkpoint for subscribers that reconnect."""
        for name, record in past.items():
            if name in self._pending and name in now and record.base_number == now[name].base_number:
                order = self._pending[name].channel.order
                for place, batch in record.released_results():
                    if place <= order.latest:
                        order.restore(place, batch)

    def compensate(self, name: str, number: int, released: Sequence[NumberedBatch]) -> None:
        """Compensate for results after `number` that were released and are produced again.

        Turns may cut them differently the second time, so numbers cannot tell. A query with retractions retracts them;
        an append-only query leaves out rows that come again. New results get new numbers.
        """
        if not released:
            return
        held, batches = self._pending[name], [batch for _, batch in released]
        if held.channel.is_append_only:
            held.duplicates += count_rows(batches)
            batches = []
        last = released[-1][0]
        back = retract(batches)
        held.waiting += [(last + place, batch) for place, batch in enumerate(back, 1)]
        held.channel.order.since = last + len(back) - number
        held.order = ReorderBuffer(held.channel.order.since, given=number)
        log.warning("%d results of %r are produced again; the released ones are compensated", len(released), name)


Release = ReleaseAtOnce | ReleaseWithCheckpoint
