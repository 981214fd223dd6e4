"""A host: a process that holds stations with their queues and state, and runs their share of each granted turn."""

from __future__ import annotations

import math
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeVar

from actors.cluster.malloc_trim import start_malloc_trim
from actors.hosts.grant import Arrival, Forward, Grant, Output, TurnReport
from actors.hosts.host_sockets import HostSockets
from actors.hosts.host_turn import HostTurn
from actors.hosts.segment_layout import SegmentLayout
from actors.hosts.state_copy import StateCopier, StateCopy
from actors.hosts.turn_runner import TurnRunner
from actors.rpc.answers import drop_answered
from actors.rpc.messages import (
    BATCHES,
    STATE_COPIES,
    Call,
    Result,
    cast,
    deserialize,
    get_result,
    get_results,
    make_actor_class,
    send,
    serialize,
)
from actors.transport.address import Address
from actors.transport.epoch import EpochReader
from dsms.clock import monotonic_s, thread_cpu_time_s
from dsms.data.batch import Batch, Column
from dsms.data.batch_ref import BatchRef
from dsms.engine.runners.station_state import StationState
from dsms.errors import DsmsError
from dsms.operators.state_size import state_bytes

BATCH_WAIT_S = 30.0  # for a batch to follow the grant that names it
RESULT_CALLS_LIMIT = 64  # unanswered calls to the result hub
RESULT_CALL_WAIT_S = 1.0  # for one of them to be answered, where there are more
ProducedCounts = Mapping[tuple[str, int], int]  # by queue: batches that its producer has output
QueueContents = dict[tuple[str, int], list[tuple[float, float]]]  # by queue: tuples and bytes of each batch
Key = TypeVar("Key")
Item = TypeVar("Item")


class ResultTaker(Protocol):
    """The result hub, as a host sees it."""

    def take(self, results: Sequence[Result], incarnation: int = 0) -> None:
        """Take numbered results of queries."""

    def status(self) -> object:
        """Open the connection to the actor, before the first result; the answer is ignored."""


class OutputRoute(NamedTuple):
    """A queue that receives the output of a station."""

    place: int
    station: str
    port: int


@dataclass(eq=False)
class HostedStation:
    """A station of this host: its state, its readers, and how many batches it has received and output."""

    state: StationState
    query: str
    made: int = 0
    received: list[int] = field(default_factory=list)  # batches, by port
    routes: tuple[OutputRoute, ...] = ()


class Host:
    """Holds stations. One thread receives batches of gateways and other hosts, another runs turns."""

    def __init__(self) -> None:
        start_malloc_trim()
        self.place = 0
        self.result_hub: ResultTaker | None = None
        self.incarnation = 0
        self.hosted_stations: dict[str, HostedStation] = {}
        self.working: tuple[str, int] | None = None  # the running station, and its thread
        self._peers: Sequence[Host] = ()
        self._result_calls: list[Call[None]] = []  # calls to the result hub, perhaps unanswered
        self._turns = TurnRunner()
        self._sockets: HostSockets | None = None
        self._changed = threading.Condition()
        self._batches: dict[str, Batch] = {}  # by key: received, not yet named by a grant
        self._outputs: dict[tuple[str, int, int], Output] = {}  # received, not yet in their queue
        self._state_copier, self._state_copy = StateCopier(), StateCopy(b"", ())

    def listen_address(self) -> Address:
        """Open the socket on which the scheduler and other hosts call this host; returns its address."""
        if self._sockets is None:
            self._sockets = HostSockets(self, {"put": self.put, "receive": self.receive})
        return self._sockets.address

    def connect_peers(
        self,
        place: int,
        peers: Sequence[Host],
        result_hub: ResultTaker | None = None,
        addresses: Sequence[Address] = (),
        incarnation: int = 0,
        epoch: str | None = None,
    ) -> None:
        """Set the other hosts by place, the result hub, the socket addresses of hosts, and the scheduler's epoch.

        `incarnation` is not 0 where a domain may be rebuilt: results carry it.
        """
        self._turns.epoch = None if epoch is None else EpochReader(epoch)
        self.place, self._peers, self.result_hub, self.incarnation = place, peers, result_hub, incarnation
        if self._sockets is not None:
            self._sockets.set_peers(addresses)

    def open(self, stations: bytes, folders: Sequence[str], measured: bool) -> None:
        """Take in stations: pickled `HostedStation`s."""
        before = list(sys.path)
        sys.path[:0] = folders  # user code is found beside its plan, as where the plan was read
        try:
            hosted_stations: list[HostedStation] = deserialize(stations)
        finally:
            sys.path[:] = before
        for hosted_station in hosted_stations:
            hosted_station.state.measure(thread_cpu_time_s if measured else None)
            self.hosted_stations[hosted_station.state.name] = hosted_station

    def route(
        self,
        routes: Mapping[str, tuple[OutputRoute, ...]],
        queries: Mapping[str, str],
        around: Mapping[str, tuple[bool, bool]],
    ) -> None:
        """Set, by station: the queues that read it, its query, and its sink and timed flags."""
        for name, hosted_station in self.hosted_stations.items():
            hosted_station.routes, hosted_station.query = routes[name], queries[name]
            hosted_station.state.sink, hosted_station.state.timed = around[name]
        # The first call to an actor takes Ray 2.60 half a second: better now than in the first burst.
        peers = {route.place for hosted_station in self.hosted_stations.values() for route in hosted_station.routes} - {
            self.place
        }
        get_results([send(self._peers[place].ping, group=BATCHES) for place in peers])
        if self.result_hub is not None:
            get_result(send(self.result_hub.status))

    def remove_stations(
        self, stations: Iterable[str], arrivals: Sequence[Arrival], produced_counts: ProducedCounts
    ) -> None:
        """Remove stations, with the batches on their way to them."""
        self._enqueue_arrivals(arrivals)
        for name in stations:
            self._fill_station(name, produced_counts)
            del self.hosted_stations[name]

    def extract_states(
        self, stations: Iterable[str], arrivals: Sequence[Arrival], produced_counts: ProducedCounts
    ) -> bytes:
        """Return the states of stations by name, with the batches on their way to them: for hosts of another domain."""
        self._enqueue_arrivals(arrivals)
        return serialize(
            {name: self._fill_station(name, produced_counts).state.copy_for_transfer() for name in stations}
        )

    def contents(self, arrivals: Sequence[Arrival], produced_counts: ProducedCounts) -> QueueContents:
        """By queue: the tuples and bytes of each batch in it."""
        self._enqueue_arrivals(arrivals)
        complete = [self._fill_station(name, produced_counts).state for name in self.hosted_stations]
        return {(state.name, port): state.contents(port) for state in complete for port in range(state.ports)}

    def shed(
        self,
        station: str,
        port: int,
        places: Column | None,
        arrivals: Sequence[Arrival],
        produced_counts: ProducedCounts,
    ) -> tuple[float, float, float]:
        """Drop the tuples at these places of a queue, or all of them; see `StationState.shed`."""
        self._enqueue_arrivals(arrivals)
        return self._fill_station(station, produced_counts).state.shed(port, places)

    def reset_operator(self, station: str, operator: bytes) -> None:
        """Let a failed station run again, with a fresh operator if one is given, pickled."""
        self.hosted_stations[station].state.reset_operator(deserialize(operator))

    def current_work(self) -> tuple[str, str] | None:
        """The running station and its stack; answered while it runs."""
        working = self.working
        if working is None:
            return None
        station, thread = working
        frame = sys._current_frames().get(thread)
        return station, "" if frame is None else "".join(traceback.format_stack(frame))

    def copy_state(self, arrivals: Sequence[Arrival], produced_counts: ProducedCounts) -> QueueContents:
        """Copy the states of all stations between two turns, for `fetch_state_copy`; returns the queues' contents."""
        contents = self.contents(arrivals, produced_counts)
        self._state_copy = self._state_copier.copy(
            {name: hosted_station.state.copy_for_transfer() for name, hosted_station in self.hosted_stations.items()}
        )
        return contents

    def fetch_state_copy(self) -> StateCopy:
        """The states of all stations by name, as last copied."""
        return self._state_copy

    def state_bytes(self) -> dict[str, float]:
        """By station: the bytes of its operator's state."""
        return {
            name: state_bytes(hosted_station.state.operator) for name, hosted_station in self.hosted_stations.items()
        }

    def clear(self) -> None:
        """Remove all stations and batches."""
        with self._changed:
            self.hosted_stations, self._batches, self._outputs = {}, {}, {}

    def put(self, batches: Mapping[str, Batch]) -> None:
        """Take batches of a gateway, under keys that grants will name."""
        with self._changed:
            self._batches.update(batches)
            self._changed.notify_all()

    def receive(self, outputs: Sequence[Output]) -> None:
        """Take batches of another host."""
        with self._changed:
            self._outputs.update(((one[0], one[1], one[2]), Output(*one)) for one in outputs)
            self._changed.notify_all()

    def learn(self, layout: SegmentLayout, forget: bool) -> None:
        """Remember a segment that grants will name; `forget`: drop those learned before."""
        self._turns.learn(layout, forget)

    def grant(self, grant: Grant, outputs: Sequence[Output] = ()) -> TurnReport:
        """Run this host's part of a turn and of the turns after it; the report says where the turn continues."""
        started = monotonic_s()
        if outputs:
            self.receive(outputs)
        self._enqueue_arrivals(grant.arrivals)
        host_turn = HostTurn(self, grant)
        try:
            onward = self._turns.run(grant, host_turn, started)
        finally:  # results made before an error count
            host_turn.flush_results()
        seconds = grant.seconds + monotonic_s() - started
        outputs_there = [] if onward is None else host_turn.outputs.pop(onward[0], [])
        self._deliver(host_turn.outputs)
        if onward is None:
            return TurnReport(grant.steps, seconds, grant.turns)
        place, grant = onward
        return TurnReport([], seconds, [], Forward(place, grant._replace(arrivals=[], seconds=seconds), outputs_there))

    def track_result_call(self, call: Call[None]) -> None:
        """Remember a call to the result hub; with too many unanswered ones, wait a while for one of them."""
        self._result_calls.append(call)
        if len(self._result_calls) > RESULT_CALLS_LIMIT:
            self._result_calls = drop_answered(self._result_calls, 0.0)
        if len(self._result_calls) > RESULT_CALLS_LIMIT:
            self._result_calls = drop_answered(self._result_calls, RESULT_CALL_WAIT_S)

    def ping(self) -> bool:
        """Answer that the process runs."""
        return True

    def waiting_since(self) -> float:
        return min(
            (hosted_station.state.waiting_since() for hosted_station in self.hosted_stations.values()), default=math.inf
        )

    def _deliver(self, made: Mapping[int, list[Output]]) -> None:
        """Send outputs to their hosts."""
        for place, outputs in made.items():
            cast(self._peers[place].receive, outputs, group=BATCHES)

    def _enqueue_arrivals(self, arrivals: Sequence[Arrival]) -> None:
        """Put arrived batches into their queues, in the scheduler's order."""
        for batch, queues, since in arrivals:
            here = self._fetch_batch(batch) if isinstance(batch, BatchRef) else batch
            for station, port in queues:
                self.hosted_stations[station].state.put(port, here, since)

    def _fetch_batch(self, batch_ref: BatchRef) -> Batch:
        """The rows of a batch reference, with the scheduler's stamps on them."""
        batch = batch_ref.batch
        if batch is None:
            batch = self._wait_for_item(self._batches, batch_ref.key, f"the rows of {batch_ref.key!r}")
        stamped = replace(
            batch, seq=batch_ref.seq, arrived=batch_ref.arrived if batch_ref.due is None else batch.arrived
        )
        return (
            stamped if batch_ref.watermark is None else replace(stamped, ts=batch_ref.ts, watermark=batch_ref.watermark)
        )

    def _fill_station(self, station: str, produced_counts: ProducedCounts) -> HostedStation:
        hosted_station = self.hosted_stations[station]
        for port in range(hosted_station.state.ports):
            self.fill_queue(hosted_station, port, produced_counts.get((station, port), 0))
        return hosted_station

    def fill_queue(self, hosted_station: HostedStation, port: int, produced: int) -> None:
        """Put all batches that the producer has output into a queue; waits for those on their way."""
        name = hosted_station.state.name
        while hosted_station.received[port] < produced:
            number = hosted_station.received[port] + 1
            output = self._wait_for_item(
                self._outputs, (name, port, number), f"batch {number} for input {port} of {name!r}"
            )
            hosted_station.state.put(port, output.batch, output.since)
            hosted_station.received[port] = number

    def _wait_for_item(self, received: dict[Key, Item], key: Key, what: str) -> Item:
        with self._changed:
            if not self._changed.wait_for(lambda: key in received, BATCH_WAIT_S):
                raise DsmsError(f"{what} did not arrive within {BATCH_WAIT_S:g} s: the sender's process may have ended")
            return received.pop(key)


HostActor = make_actor_class(Host, BATCHES, STATE_COPIES)
