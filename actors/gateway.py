"""Where rows come in and results go out: a TCP server that speaks the wire, for any number of clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

import ray

from actors.calls import Calls
from actors.connection import Connection
from actors.desk import Desk
from actors.durable_intake import DurableIntake
from actors.heap import keep_small
from actors.messages import ARRIVALS, CONTROL, GOODS, Result, is_remote, myself, send
from dsms.errors import DsmsError
from dsms.live.metrics import Samples
from dsms.live.routes import Routes
from dsms.live.terms import Terms
from dsms.wire import Bye

BACKLOG = 1024  # who may be waiting to be let in: others are not heard for a second
CLOSING = 5.0  # seconds
GREETING = 10.0  # seconds

# How it is made an actor: `ray.remote(**ACTOR)(Gateway)`. Results keep their order as they have a thread of their own,
# and because there is no `max_concurrency`: with one, Ray takes calls in any order. `hold` is for the group of those
# who may wait without keeping anybody else waiting.
ACTOR: dict[str, Any] = {"num_cpus": 0, "concurrency_groups": {"results": 1, CONTROL: 4}}

T = TypeVar("T")


class Gateway:
    """Serves clients in a thread of its own; its methods may be called from any other.

    None of its methods is `async`: Ray would make it another kind of actor, which takes calls in any order.

    `name` must differ among the gateways of a deployment; `outlet` is asked for results that clients want; `durable` is
    the folder of its log, if what comes is to be stored before it is acknowledged.
    """

    def __init__(self, name: str, outlet: Any = None, terms: Terms | None = None, durable: str = "") -> None:
        keep_small()
        self._name, self._outlet, self._terms = name, outlet, terms or Terms()
        self._calls = Calls()
        path = Path(durable) / f"{name}.log"
        self._durable = DurableIntake(name, self._calls, path, self._terms.stored) if durable else None
        self._desk = Desk(name, self._calls, outlet, self._terms.connections, self._durable)
        self._desk.subscribers.patient = bool(durable)
        self._address: tuple[str, int] | None = None
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"gateway {name}", daemon=True)
        self._thread.start()

    def listen(self, host: str, port: int) -> tuple[str, int]:
        """Serve clients at this address; with port 0 at any that is free. Answers which it is."""
        if self._outlet is not None:
            self._desk.subscribers.me = myself() if is_remote(self._outlet.subscribe) else self

        certificate = self._terms.certificate
        secure: dict[str, Any] = {}
        if certificate is not None:
            secure = {"ssl": certificate.context(), "ssl_handshake_timeout": self._terms.hello}

        async def listen() -> asyncio.Server:
            return await self._loop.create_server(self._connection, host, port, backlog=BACKLOG, **secure)

        try:
            server = self._done(listen())
        except OSError as error:
            raise DsmsError(f"cannot listen at {host}:{port}: {error.strerror or error}") from None
        self._servers.append(server)
        found = server.sockets[0].getsockname()
        self._address = str(found[0]), int(found[1])
        return self._address

    def serve(self, routes: Routes) -> None:
        """Rows go by these routes from now on, first those that were held."""

        async def serve() -> None:
            self._desk.serve(routes)

        self._done(serve())
        greet(routes, self._outlet)

    def hold(self, streams: Iterable[str], level: bool = True) -> None:
        """Keep rows of these streams back until the next `serve`; answers when all that came before is admitted.

        Where they are stored, when nothing is on its way and, if that is asked for, all domains have equally much.
        """
        self._done(self._desk.intake.hold(list(streams), level))

    def halt(self) -> None:
        """Bring nothing of the log to anybody until the next `serve`."""
        if self._durable is not None:
            self._done(self._durable.halt())

    def forget(self, upto: int) -> None:
        """Nobody can want the log up to this offset any more."""
        if self._durable is not None:
            self._loop.call_soon_threadsafe(self._durable.forget, upto)

    def brake(self, on: bool) -> None:
        """Whether clients are read no more for want of a checkpoint."""
        if self._durable is not None:
            self._loop.call_soon_threadsafe(self._durable.brake, on)

    def attach(self, outlet: Any) -> None:
        """Another outlet is where results come from: it is asked for those that clients have not got yet."""
        self._outlet = outlet
        self._done(self._desk.subscribers.attach(outlet))

    def results(self, results: Iterable[Result]) -> None:
        """Results for subscribers; those of a query may come out of order, and go by their numbers."""
        self._loop.call_soon_threadsafe(self._give, results)

    def there(self) -> bool:
        """Whether it is."""
        return True

    def status(self) -> dict[str, Any]:
        """Where it is, and what came and was refused so far."""

        async def status() -> dict[str, Any]:
            desk = self._desk
            return {
                "address": None if self._address is None else f"{self._address[0]}:{self._address[1]}",
                "connections": len(desk.connections),
                "rows": desk.intake.rows.total(),
                "bytes": desk.bytes,
                "rejected": desk.rejected,
                "subscribers": len(desk.subscribers),
                "log": None if self._durable is None else self._durable.positions(),
            }

        return self._done(status())

    def metrics(self) -> Samples:
        """What came and was refused so far, as samples."""

        async def metrics() -> Samples:
            desk = self._desk
            log = {} if self._durable is None else self._durable.positions()
            return {
                **({"dsms_log_behind_bytes": [((self._name,), log["bytes"])]} if log else {}),
                "dsms_ingest_stopped": [((self._name,), float(desk.intake.full))],
                "dsms_ingest_rows_total": [((self._name, stream), rows) for stream, rows in desk.intake.rows.items()],
                "dsms_ingest_bytes_total": [((self._name,), desk.bytes)],
                "dsms_ingest_rejected_total": [((self._name,), desk.rejected)],
                "dsms_ingest_connections": [((self._name,), len(desk.connections))],
            }

        return self._done(metrics())

    def close(self) -> None:
        """Let all clients go and serve no more; nothing if that is done."""

        async def leave() -> None:
            for server in self._servers:
                server.close()
            for connection in list(self._desk.connections):
                connection.send(Bye())
                connection.close()
            await asyncio.sleep(0)  # so that what is said is sent
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)

        if self._loop.is_running():
            self._done(leave())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSING)
            if self._durable is not None:
                self._durable.close()
            self._calls.close()

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of something that the loop's thread has to do."""
        if not self._loop.is_running() and not self._thread.is_alive():
            work.close()
            raise DsmsError("the gateway is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _connection(self) -> Connection:
        return Connection(self._desk, self._terms)

    def _give(self, results: Iterable[Result]) -> None:
        for query, number, batch in results:
            self._desk.subscribers.results(query, number, batch)


def greet(routes: Routes, outlet: Any) -> None:
    """Call everybody: the first call to an actor takes half a second to find it, better now than for the first rows."""
    targets = {target for way in routes.streams.values() for target in way.targets}
    calls: list[tuple[Any, str | None]]
    calls = [(target.scheduler.there, ARRIVALS) for target in targets if is_remote(target.scheduler.arrived)]
    calls += [(host.there, GOODS) for host in {h for t in targets for h in t.hosts if is_remote(h.put)}]
    calls += [(outlet.status, None)] if outlet is not None and is_remote(outlet.status) else []
    if greeted := [send(method, group=group) for method, group in calls]:
        ray.wait(greeted, num_returns=len(greeted), timeout=GREETING)
