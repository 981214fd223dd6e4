"""A gateway's clients: open connections, and what is known of each producer across its connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from actors.ingest.connection import ClientConnection
from actors.ingest.handles import ResultSource
from actors.ingest.intake import Intake
from actors.ingest.subscribers import Subscribers
from actors.rpc.calls import Calls
from dsms.data.schema import Schema
from dsms.live.routes import Routes
from dsms.net.access import AccessPolicy
from dsms.net.tokens import PUSH
from dsms.net.wire import Schemas
from dsms.net.wire.producer_state import ProducerState

INCOMPLETE_FRAMES_LIMIT_BYTES = 1024 * 1024 * 1024  # of all clients together
REMEMBERED_PRODUCERS = 10_000  # connected or not
SCHEMAS_PER_FRAME = 256


class SessionTable:
    """Only the thread of the gateway's event loop uses it: nothing here waits, and nothing is locked."""

    def __init__(
        self,
        name: str,
        calls: Calls,
        result_hub: ResultSource | None,
        intake: Intake,
        connections: int = AccessPolicy.connections,
    ) -> None:
        self._most = connections
        self.intake = intake
        intake.log.limits.on_room = self._resume_reading
        self.subscribers = Subscribers(name, calls, result_hub, self._broadcast)
        self.connections: set[ClientConnection] = set()
        self.bytes = self.rejected = 0
        self._held = 0  # bytes of incomplete frames
        self._unidentified: dict[ClientConnection, None] = {}  # without a hello, the oldest first
        self._readers: set[ClientConnection] = set()  # without the right to push: several may have the same name
        self._producers: dict[str, ProducerState] = {}
        self._current: dict[str, ClientConnection] = {}  # by producer
        for producer, known in intake.log.producers().items():
            self._get_producer(producer).restore(known.taken, known.refused)

    def serve(self, routes: Routes) -> None:
        """Send rows by these routes, and tell clients all streams and queries."""
        self.subscribers.schemas.update(routes.queries)
        self.intake.serve(routes)
        for connection in self._known_clients():
            self._send_schemas(connection)

    def add_connection(self, connection: ClientConnection) -> None:
        """Add a connection; with one too many, reject the oldest that has not said hello."""
        self.connections.add(connection)
        self._unidentified[connection] = None
        if len(self.connections) > self._most:
            next(iter(self._unidentified)).reject(f"{self._most} clients are connected here; no more are taken")

    def count_incomplete(self, more: int) -> None:
        """Add to the bytes of incomplete frames; beyond the limit, reject the client with the most."""
        self._held += more
        if self._held > INCOMPLETE_FRAMES_LIMIT_BYTES:
            most = max(self.connections, key=lambda each: each.session.held)
            most.reject(
                f"{INCOMPLETE_FRAMES_LIMIT_BYTES} bytes of frames that are not complete are held here; "
                "most of them are yours"
            )

    def register_client(self, connection: ClientConnection, name: str) -> None:
        """Register a client by its hello; of two connections of one producer the newer one stays."""
        self._unidentified.pop(connection, None)
        if not connection.session.permission.has_role(PUSH):  # it sends no frames, so it replaces no other connection
            self._readers.add(connection)
            self._send_schemas(connection)
            connection.accept(ProducerState(name))
            return
        older = self._current.pop(name, None)
        if older is not None:
            older.drop(f"producer {name!r} has connected again: this connection is the older one")
        self._current[name] = connection
        self._send_schemas(connection)
        connection.accept(self._get_producer(name))

    def remove_connection(self, connection: ClientConnection) -> None:
        """Remove a connection that is closed or closing."""
        if connection in self.connections:
            self._held -= connection.session.held
        self.connections.discard(connection)
        self._readers.discard(connection)
        self._unidentified.pop(connection, None)
        self.subscribers.remove_reader(connection)
        name = connection.session.producer
        if name is not None and self._current.get(name) is connection:
            del self._current[name]

    def complete_frame(self, producer: ProducerState, sequence: int, reason: str | None) -> None:
        """Report that all domains have admitted a frame, or why it is refused, to the producer's current connection."""
        producer.complete(sequence, reason)
        connection = self._current.get(producer.name)
        if connection is None:
            self.rejected += reason is not None
            return
        if reason is not None:
            connection.refuse(reason, sequence)
        connection.acknowledge()
        connection.update_flow()

    def _resume_reading(self) -> None:
        """Resume reading clients: there is room again."""
        for connection in list(self.connections):
            connection.update_flow()

    def _get_producer(self, name: str) -> ProducerState:
        """The state of a producer; the one unused for the longest time is forgotten."""
        producer = self._producers.pop(name, None) or ProducerState(name)
        self._producers[name] = producer
        if len(self._producers) > REMEMBERED_PRODUCERS:
            unused = (n for n, each in self._producers.items() if n not in self._current and not each.waiting)
            if (oldest := next(unused, None)) is not None:
                del self._producers[oldest]
        return producer

    def _send_schemas(self, connection: ClientConnection) -> None:
        """Tell a client all streams and queries."""
        streams = {name: route.schema for name, route in self.intake.routes.streams.items()}
        connection.session.set_streams(streams)
        for part in _split_schemas(streams):
            connection.send(Schemas(streams=part))
        for part in _split_schemas(self.subscribers.schemas):
            connection.send(Schemas(queries=part))

    def _broadcast(self, schemas: Schemas) -> None:
        for connection in self._known_clients():
            connection.send(schemas)

    def _known_clients(self) -> list[ClientConnection]:
        return [*self._current.values(), *self._readers]


def _split_schemas(schemas: Mapping[str, Schema]) -> Iterator[dict[str, Schema]]:
    names = list(schemas)
    for start in range(0, len(names), SCHEMAS_PER_FRAME):
        yield {name: schemas[name] for name in names[start : start + SCHEMAS_PER_FRAME]}
