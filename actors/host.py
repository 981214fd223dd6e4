"""A process that holds stations: their queues and their operators' state; it works when a grant comes by."""

from __future__ import annotations

import math
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import ray

from actors.frozen import Freezer, Frozen
from actors.grant import Arrival, Grant, Mark, Onward, Output, Turn
from actors.heap import keep_small
from actors.line import Address, Switchboard
from actors.messages import GOODS, KEPT, actor, answered, pickled, send, unpickled
from actors.visiting import Visiting
from dsms.batch import Batch, Column
from dsms.clock import cpu_time, stopwatch
from dsms.errors import DsmsError
from dsms.goods import Goods
from dsms.operators.footprint import state_bytes
from dsms.parcel import Parcel

PATIENCE = 30.0  # seconds that goods may take to come after the grant that is about them
GIVEN = 64  # calls with results that may be on their way to the outlet,
SLOW = 1.0  # and the seconds that are waited for one of them where more are
Dues = Mapping[tuple[str, int], int]  # by queue: the batches that its producer has put out
Contents = dict[tuple[str, int], list[tuple[float, float]]]  # by queue: the tuples and bytes of each batch


class Way(NamedTuple):
    """Where what a station puts out goes."""

    place: int
    station: str
    port: int


@dataclass(eq=False)
class Stand:
    """One station here: its goods, who reads it, and how many batches have gone in and out."""

    goods: Goods
    query: str
    made: int = 0
    got: list[int] = field(default_factory=list)  # by port
    ways: tuple[Way, ...] = ()


class Host:
    """Holds stations' goods. What comes from others is laid down by one thread, and taken up by the one that works."""

    def __init__(self) -> None:
        keep_small()
        self.place = 0
        self.outlet: Any = None
        self.life = 0
        self.stands: dict[str, Stand] = {}
        self.working: tuple[str, int] | None = None  # the station at work, and the thread that it is in
        self._peers: Sequence[Any] = ()
        self._given: list[Any] = []  # calls with results that may not have been answered
        self._board: Switchboard | None = None
        self._changed = threading.Condition()
        self._parcels: dict[str, Batch] = {}  # by key: come, and not yet named by a grant
        self._outputs: dict[tuple[str, int, int], Output] = {}  # come, and not yet in their queue
        self._freezer, self._kept = Freezer(), Frozen(b"", ())

    def line(self) -> Address:
        """Where it is called by its scheduler and other hosts."""
        if self._board is None:
            self._board = Switchboard(self.grant)
        return self._board.address

    def join(
        self, place: int, peers: Sequence[Any], outlet: Any = None, lines: Sequence[Address] = (), life: int = 0
    ) -> None:
        """Who else there is: hosts by their place, who takes results, and where hosts are called.

        `life` is not 0 where a domain may be rebuilt: results say which life of it they are from.
        """
        self.place, self._peers, self.outlet, self.life = place, peers, outlet, life
        if self._board is not None:
            self._board.meet(lines)

    def open(self, stations: bytes, folders: Sequence[str], measured: bool) -> None:
        """Take stations in: `Stand`s, pickled."""
        before = list(sys.path)
        sys.path[:0] = folders  # user code is found beside its plan, as it was where the plan was read
        try:
            stands: list[Stand] = unpickled(stations)
        finally:
            sys.path[:] = before
        for stand in stands:
            stand.goods.measure(cpu_time if measured else None)
            self.stands[stand.goods.name] = stand

    def route(
        self,
        ways: Mapping[str, tuple[Way, ...]],
        queries: Mapping[str, str],
        around: Mapping[str, tuple[bool, bool]],
    ) -> None:
        """Where what stations put out goes from now on, whose results it is, if any, and whether time matters."""
        for name, stand in self.stands.items():
            stand.ways, stand.query = ways[name], queries[name]
            stand.goods.sink, stand.goods.timed = around[name]
        # The first call to an actor takes half a second to find it: better now than in the first burst.
        peers = {way.place for stand in self.stands.values() for way in stand.ways} - {self.place}
        greeted = [send(self._peers[place].there, group=GOODS) for place in peers]
        if self.outlet is not None:
            greeted.append(send(self.outlet.status))
        answered(greeted)

    def shut(self, stations: Iterable[str], arrivals: Sequence[Arrival], dues: Dues) -> None:
        """Let stations go, with all that was on its way to them."""
        self._lay(arrivals)
        for name in stations:
            self._complete(name, dues)
            del self.stands[name]

    def extracted(self, stations: Iterable[str], arrivals: Sequence[Arrival], dues: Dues) -> bytes:
        """The goods of stations, by name, with all that was on its way to them: for hosts of another domain."""
        self._lay(arrivals)
        return pickled({name: self._complete(name, dues).goods.handed_on() for name in stations})

    def contents(self, arrivals: Sequence[Arrival], dues: Dues) -> Contents:
        """By queue: the tuples and bytes of each batch in it."""
        self._lay(arrivals)
        complete = [self._complete(name, dues).goods for name in self.stands]
        return {(goods.name, port): goods.contents(port) for goods in complete for port in range(goods.ports)}

    def shed(
        self, station: str, port: int, places: Column | None, arrivals: Sequence[Arrival], dues: Dues
    ) -> tuple[float, float, float]:
        """Give up what is at these places of a queue, or all of it; as `Goods.shed`."""
        self._lay(arrivals)
        return self._complete(station, dues).goods.shed(port, places)

    def renew(self, station: str, operator: bytes) -> None:
        """Let a station try again, with an operator that has no state if one is given, pickled."""
        self.stands[station].goods.renew(unpickled(operator))

    def doing(self) -> tuple[str, str] | None:
        """The station at work and where it is in its code; answered while it works."""
        working = self.working
        if working is None:
            return None
        station, thread = working
        frame = sys._current_frames().get(thread)
        return station, "" if frame is None else "".join(traceback.format_stack(frame))

    def keep(self, arrivals: Sequence[Arrival], dues: Dues) -> Contents:
        """Keep all stations' goods as they are between two turns, for `kept`; answers their contents."""
        found = self.contents(arrivals, dues)
        self._kept = self._freezer.frozen({name: stand.goods.handed_on() for name, stand in self.stands.items()})
        return found

    def kept(self) -> Frozen:
        """The goods of all stations, by name, as they were when they were kept."""
        return self._kept

    def state_bytes(self) -> dict[str, float]:
        """By station: the bytes that its operator keeps."""
        return {name: state_bytes(stand.goods.operator) for name, stand in self.stands.items()}

    def clear(self) -> None:
        """Be as new."""
        with self._changed:
            self.stands, self._parcels, self._outputs = {}, {}, {}

    def put(self, goods: Mapping[str, Batch]) -> None:
        """Batches have come from outside, under keys that grants will name."""
        with self._changed:
            self._parcels.update(goods)
            self._changed.notify_all()

    def receive(self, outputs: Sequence[Output]) -> None:
        """Batches have come from another host."""
        with self._changed:
            self._outputs.update(((one.station, one.port, one.number), one) for one in outputs)
            self._changed.notify_all()

    def grant(self, grant: Grant, outputs: Sequence[Output] = ()) -> Turn:
        """Carry a turn on: what came of it, or where it goes on."""
        begun = stopwatch()
        if outputs:
            self.receive(outputs)
        self._lay(grant.arrivals)
        grant.arrivals = []
        visiting = Visiting(self, grant)
        try:
            following = grant.errand.proceed(visiting)
        finally:  # what came before something went wrong has come about
            visiting.hand_out()
        grant.seconds += stopwatch() - begun
        onward = self._deliver(visiting.outputs, following, grant)
        return Turn(grant.did if onward is None else [], grant.seconds, onward)

    def gave(self, call: Any) -> None:
        """Results are on their way to the outlet: where too many are, work waits a while for it."""
        if isinstance(call, ray.ObjectRef):
            self._given.append(call)
        if len(self._given) > GIVEN:
            _, self._given = ray.wait(self._given, num_returns=len(self._given), timeout=0)
        if len(self._given) > GIVEN:
            ray.wait(self._given, num_returns=1, timeout=SLOW)

    def there(self) -> bool:
        """Whether it is."""
        return True

    def waiting_since(self) -> float:
        return min((stand.goods.waiting_since() for stand in self.stands.values()), default=math.inf)

    def _deliver(self, made: dict[int, list[Output]], following: Mark | None, grant: Grant) -> Onward | None:
        """Send what was made to where it goes; what the turn goes on with travels with it."""
        onward = None
        if following is not None:
            there = made.get(following.place, [])
            onward = Onward(following.place, grant, [one for one in there if isinstance(one.batch, Batch)])
            made[following.place] = [one for one in there if not isinstance(one.batch, Batch)]  # references go by Ray
        for place, outputs in made.items():
            if outputs:
                send(self._peers[place].receive, outputs, group=GOODS)
        return onward

    def _lay(self, arrivals: Sequence[Arrival]) -> None:
        """Put into the queues what has come by streams, in the order that the scheduler has given it."""
        for batch, queues, since in arrivals:
            here = self._fetched(batch) if isinstance(batch, Parcel) else batch
            for station, port in queues:
                self.stands[station].goods.put(port, here, since)

    def _fetched(self, parcel: Parcel) -> Batch:
        """The rows of a parcel, with what the scheduler has stamped on it."""
        batch: Batch = self._awaited(self._parcels, parcel.key, f"the rows of {parcel.key!r}")
        stamped = replace(batch, seq=parcel.seq, arrived=parcel.arrived if parcel.due is None else batch.arrived)
        return stamped if parcel.upto is None else replace(stamped, ts=parcel.ts, upto=parcel.upto)

    def _complete(self, station: str, dues: Dues) -> Stand:
        stand = self.stands[station]
        for port in range(stand.goods.ports):
            self.fill(stand, port, dues.get((station, port), 0))
        return stand

    def fill(self, stand: Stand, port: int, due: int) -> None:
        """Put into a queue all that its producer has put out by now, waiting for what is still under way."""
        name = stand.goods.name
        while stand.got[port] < due:
            number = stand.got[port] + 1
            output = self._awaited(self._outputs, (name, port, number), f"batch {number} for input {port} of {name!r}")
            batch = output.batch if isinstance(output.batch, Batch) else ray.get(output.batch)
            stand.goods.put(port, batch, output.since)
            stand.got[port] = number

    def _awaited(self, come: dict[Any, Any], key: Any, what: str) -> Any:
        with self._changed:
            if not self._changed.wait_for(lambda: key in come, PATIENCE):
                raise DsmsError(f"{what} did not come within {PATIENCE:g} s: whoever was to send it is gone")
            return come.pop(key)


HostActor = actor(Host, GOODS, KEPT)
