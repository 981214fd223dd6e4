"""The gateway actor: a TCP server that takes rows from clients and sends results to subscribers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

import ray

from actors.cluster.malloc_trim import start_malloc_trim
from actors.ingest.connection import ClientConnection
from actors.ingest.handles import ResultSource, SchedulerHandle
from actors.ingest.intake import Intake
from actors.ingest.memory_log import MemoryLog
from actors.ingest.session_table import SessionTable
from actors.ingest.stored_log import StoredLog
from actors.rpc.calls import BatchHost, Calls
from actors.rpc.messages import (
    ARRIVALS,
    BATCHES,
    CONTROL,
    RESULTS,
    Call,
    JsonObject,
    Result,
    get_own_handle,
    is_remote,
    make_actor_class,
    send,
)
from actors.transport.handle import use_socket
from actors.transport.listener import Listener
from dsms.errors import DsmsError
from dsms.live.monitor.metrics import Samples
from dsms.live.routes import Routes
from dsms.net.access import AccessPolicy
from dsms.net.wire import Bye

BACKLOG = 1024  # connections that may wait to be accepted; the kernel drops more for a second
CLOSE_TIMEOUT_S = 5.0
WARM_UP_TIMEOUT_S = 10.0


T = TypeVar("T")


class Gateway:
    """Serves clients in the thread of an event loop; other threads call its methods.

    None of its methods is `async`: Ray 2.60 would make it an asyncio actor, which takes calls in any order.

    `name` is unique among the gateways of a deployment. With `durable`, the folder of its log, rows are stored before
    they are acknowledged.
    """

    def __init__(
        self, name: str, result_hub: ResultSource | None = None, terms: AccessPolicy | None = None, durable: str = ""
    ) -> None:
        start_malloc_trim()
        self._name, self._result_hub, self._terms = name, result_hub, terms or AccessPolicy()
        self._calls = Calls()
        self._log = StoredLog(Path(durable) / f"{name}.log", self._terms.stored) if durable else MemoryLog()
        intake = Intake(name, self._calls, self._log)
        self._sessions = SessionTable(name, self._calls, result_hub, intake, self._terms.connections)
        self._sessions.subscribers.retries_subscribe = bool(durable)
        self._listener = Listener({"results": self.results})  # for a result hub on this machine
        self._address: tuple[str, int] | None = None
        self._has_routes = False
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"gateway {name}", daemon=True)
        self._thread.start()

    def listen(self, host: str, port: int) -> tuple[str, int]:
        """Serve clients at this address; port 0 takes a free one. Returns the address.

        `serve` comes first: a client that connects is told the streams and queries, and may send rows at once.
        """
        if not self._has_routes:
            raise DsmsError(f"gateway {self._name!r} has no routes yet: it cannot serve clients")
        if self._result_hub is not None:
            handle = get_own_handle(self) if is_remote(self._result_hub.subscribe) else None
            self._sessions.subscribers.gateway_handle = (
                self if handle is None else use_socket(handle, self._listener.address)
            )

        certificate = self._terms.certificate
        secure: dict[str, Any] = {}
        if certificate is not None:
            secure = {"ssl": certificate.context(), "ssl_handshake_timeout": self._terms.hello}

        async def listen() -> asyncio.Server:
            return await self._loop.create_server(self._connection, host, port, backlog=BACKLOG, **secure)

        try:
            server = self._run_on_loop(listen())
        except OSError as error:
            raise DsmsError(f"cannot listen at {host}:{port}: {error.strerror or error}") from None
        self._servers.append(server)
        address = server.sockets[0].getsockname()
        self._address = str(address[0]), int(address[1])
        return self._address

    def serve(self, routes: Routes) -> None:
        """Send rows by these routes from now on, held ones first."""

        async def serve() -> None:
            self._sessions.serve(routes)

        self._run_on_loop(serve())
        self._has_routes = True
        warm_up_connections(routes, self._result_hub)

    def hold(self, streams: Iterable[str], align: bool = True) -> None:
        """Hold rows of these streams back until the next `serve`; returns when all earlier rows are admitted.

        With a log: when no delivery is under way and, with `align`, all domains have the same offset.
        """
        self._run_on_loop(self._log.hold(list(streams), align))

    def halt(self) -> None:
        """Stop deliveries until the next `serve`."""
        self._run_on_loop(self._sessions.intake.halt())

    def truncate(self, upto: int) -> None:
        """Drop the log up to this offset."""
        self._loop.call_soon_threadsafe(self._log.truncate, upto)

    def stop_ingest(self, on: bool) -> None:
        """Stop or resume reading clients: without checkpoints, results that wait for one would fill the memory."""
        self._loop.call_soon_threadsafe(self._log.limits.apply, "not saved", float(on), 0.5)

    def attach(self, result_hub: ResultSource) -> None:
        """Subscribe to a new result hub, for each client from its last result on."""
        self._result_hub = result_hub
        self._run_on_loop(self._sessions.subscribers.attach(result_hub))

    def results(self, results: Iterable[Result]) -> None:
        """Take results for subscribers; those of a query may come out of order, their numbers tell."""
        self._loop.call_soon_threadsafe(self._publish_results, results)

    def ping(self) -> bool:
        """Answer that the process runs."""
        return True

    def status(self) -> JsonObject:
        """Its address, and what clients have sent so far."""

        async def status() -> JsonObject:
            sessions = self._sessions
            return {
                "address": None if self._address is None else f"{self._address[0]}:{self._address[1]}",
                "connections": len(sessions.connections),
                "rows": self._log.rows.total(),
                "bytes": sessions.bytes,
                "rejected": sessions.rejected,
                "subscribers": len(sessions.subscribers),
                "log": self._log.status(),
            }

        return self._run_on_loop(status())

    def metrics(self) -> Samples:
        """What clients have sent so far, as samples."""

        async def metrics() -> Samples:
            sessions = self._sessions
            log = self._log.status() or {}
            return {
                **({"dsms_log_behind_bytes": [((self._name,), log["bytes"])]} if log else {}),
                "dsms_ingest_stopped": [((self._name,), float(sessions.intake.is_full))],
                "dsms_ingest_rows_total": [((self._name, stream), rows) for stream, rows in self._log.rows.items()],
                "dsms_ingest_bytes_total": [((self._name,), sessions.bytes)],
                "dsms_ingest_rejected_total": [((self._name,), sessions.rejected)],
                "dsms_ingest_connections": [((self._name,), len(sessions.connections))],
            }

        return self._run_on_loop(metrics())

    def close(self) -> None:
        """Say goodbye to all clients and stop serving; a second call does nothing."""

        async def leave() -> None:
            for server in self._servers:
                server.close()
            for connection in list(self._sessions.connections):
                connection.send(Bye())
                connection.close()
            await asyncio.sleep(0)  # lets the loop send the goodbyes
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)

        if self._loop.is_running():
            self._run_on_loop(leave())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSE_TIMEOUT_S)
            self._log.close()
            self._calls.close()
            self._listener.close()

    def _run_on_loop(self, work: Coroutine[object, None, T]) -> T:
        """Run a coroutine in the event loop's thread and wait for it."""
        if not self._loop.is_running() and not self._thread.is_alive():
            work.close()
            raise DsmsError("the gateway is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _connection(self) -> ClientConnection:
        return ClientConnection(self._sessions, self._terms)

    def _publish_results(self, results: Iterable[Result]) -> None:
        for query, number, batch in results:
            self._sessions.subscribers.results(query, number, batch)


# Results keep their order: one thread takes them. Control calls may wait without delaying other calls.
GatewayActor = make_actor_class(Gateway, RESULTS, **{CONTROL: 4})


def warm_up_connections(routes: Routes, result_hub: ResultSource | None) -> None:
    """Call every actor once: the first call takes Ray 2.60 half a second, better now than for the first rows."""
    targets = {target for route in routes.streams.values() for target in route.targets}
    calls: list[Call[object]]
    schedulers: list[SchedulerHandle] = [target.scheduler for target in targets if is_remote(target.scheduler.ping)]
    hosts: set[BatchHost] = {host for target in targets for host in target.hosts if is_remote(host.put)}
    calls = [send(scheduler.ping, group=ARRIVALS) for scheduler in schedulers]
    calls += [send(host.ping, group=BATCHES) for host in hosts]
    if result_hub is not None and is_remote(result_hub.status):
        calls.append(send(result_hub.status))
    if calls:
        ray.wait(calls, num_returns=len(calls), timeout=WARM_UP_TIMEOUT_S)
