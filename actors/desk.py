"""All that a gateway knows of its clients: connections, producers over several of them, and what they were told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from actors.calls import Calls
from actors.connection import Connection
from actors.intake import Intake
from actors.subscribers import Subscribers
from dsms.live.routes import Routes
from dsms.live.terms import Terms
from dsms.schema import Schema
from dsms.tokens import PUSH
from dsms.wire import Schemas
from dsms.wire.producer import Producer

UNFINISHED = 1024 * 1024 * 1024  # bytes of frames that are not complete, of all clients together
PRODUCERS = 10_000  # that are remembered when they are gone
NAMES = 256  # whose columns are told in one frame


class Desk:
    """Belongs to the thread of a gateway's loop: nothing here waits, and nothing is locked."""

    def __init__(
        self,
        name: str,
        calls: Calls,
        outlet: Any,
        connections: int = Terms.connections,
        intake: Intake | None = None,
    ) -> None:
        self._most = connections
        self.intake = intake or Intake(name, calls)
        self.intake.roomy = self._read_on
        self.subscribers = Subscribers(name, calls, outlet, self._tell)
        self.connections: set[Connection] = set()
        self.bytes = self.rejected = 0
        self._held = 0  # bytes of frames that are not complete
        self._strangers: dict[Connection, None] = {}  # who has not said hello, in the order they came
        self._readers: set[Connection] = set()  # who may not push: what they are called is of no matter
        self._producers: dict[str, Producer] = {}
        self._current: dict[str, Connection] = {}  # by producer
        for producer, known in self.intake.producers().items():
            self._known(producer).recall(known.taken, known.refused)

    def serve(self, routes: Routes) -> None:
        """Rows go by these routes; clients are told of all streams and queries."""
        self.subscribers.schemas.update(routes.queries)
        self.intake.serve(routes)
        for connection in self._known_clients():
            self._inform(connection)

    def came(self, connection: Connection) -> None:
        """Somebody is there; where that is one too many, whoever has longest not said hello is not let in."""
        self.connections.add(connection)
        self._strangers[connection] = None
        if len(self.connections) > self._most:
            next(iter(self._strangers)).turn_away(f"{self._most} clients are connected here; no more are taken")

    def hold(self, more: int) -> None:
        """So many bytes more of frames that are not complete; beyond the limit whoever has most of them goes."""
        self._held += more
        if self._held > UNFINISHED:
            most = max(self.connections, key=lambda each: each.session.held)
            most.turn_away(f"{UNFINISHED} bytes of frames that are not complete are held here; most of them are yours")

    def greeted(self, connection: Connection, name: str) -> None:
        """A client has said who it is: of two connections of one producer the newer one counts."""
        self._strangers.pop(connection, None)
        if not connection.session.granted.may(PUSH):  # none of its frames count, so it is nobody's rival
            self._readers.add(connection)
            self._inform(connection)
            connection.greet(Producer(name))
            return
        older = self._current.pop(name, None)
        if older is not None:
            older.drop(f"producer {name!r} has connected anew: this connection is the older one")
        self._current[name] = connection
        self._inform(connection)
        connection.greet(self._known(name))

    def left(self, connection: Connection) -> None:
        """A connection is gone, or as good as gone."""
        if connection in self.connections:
            self._held -= connection.session.held
        self.connections.discard(connection)
        self._readers.discard(connection)
        self._strangers.pop(connection, None)
        self.subscribers.leave(connection)
        name = connection.session.producer
        if name is not None and self._current.get(name) is connection:
            del self._current[name]

    def settled(self, producer: Producer, sequence: int, reason: str | None) -> None:
        """A frame is admitted by all who read its stream, or refused; whoever speaks for the producer now is told."""
        producer.done(sequence, reason)
        connection = self._current.get(producer.name)
        if connection is None:
            self.rejected += reason is not None
            return
        if reason is not None:
            connection.refuse(reason, sequence)
        connection.acknowledge()
        connection.pace()

    def _read_on(self) -> None:
        """There is room again for what clients send."""
        for connection in list(self.connections):
            connection.pace()

    def _known(self, name: str) -> Producer:
        """What is known of a producer; those that were here longest ago are forgotten."""
        found = self._producers.pop(name, None) or Producer(name)
        self._producers[name] = found
        if len(self._producers) > PRODUCERS:
            gone = (n for n, each in self._producers.items() if n not in self._current and not each.waiting)
            if (oldest := next(gone, None)) is not None:
                del self._producers[oldest]
        return found

    def _inform(self, connection: Connection) -> None:
        """Tell a client what streams and queries there are."""
        streams = {name: way.schema for name, way in self.intake.routes.streams.items()}
        connection.session.know(streams)
        for part in _parts(streams):
            connection.send(Schemas(streams=part))
        for part in _parts(self.subscribers.schemas):
            connection.send(Schemas(queries=part))

    def _tell(self, schemas: Schemas) -> None:
        for connection in self._known_clients():
            connection.send(schemas)

    def _known_clients(self) -> list[Connection]:
        return [*self._current.values(), *self._readers]


def _parts(schemas: Mapping[str, Schema]) -> Iterator[dict[str, Schema]]:
    names = list(schemas)
    for start in range(0, len(names), NAMES):
        yield {name: schemas[name] for name in names[start : start + NAMES]}
