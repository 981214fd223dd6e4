"""For tests of gateways and clients: a domain as an engine in this process, and a proxy that cuts connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from actors.deployment.actor_handles import wait_until
from actors.ingest.gateway import Gateway
from dsms import Batch, DsmsError, Engine, Plan, WallClock, plan_from
from dsms.data.batch_ref import BatchRef
from dsms.live.log_batch import LogBatch
from dsms.live.routes import DomainRoute, Routes, StreamRoute
from dsms.policies.registry import policy_named

HOST = "127.0.0.1"
WAIT = 30.0


class FakeDomain:
    """Scheduler and host in one: an engine that applies gateways' logs."""

    def __init__(self, plan: Plan, outlet: Any = None) -> None:
        self.outlet = outlet
        self.results: list[tuple[str, Batch]] = []
        self.calls: list[str] = []
        self.batch_refs: list[BatchRef] = []
        self.due: list[Any] = []
        self.gate = threading.Event()  # cleared, calls take as long as that
        self.gate.set()
        self.error: str | None = None  # why it refuses all calls
        self.positions: dict[str, int] = {}  # by gateway
        self._numbers: dict[str, int] = {}
        self._batches: dict[str, Batch] = {}
        self._engine = Engine(plan, policy_named("fifo"), clock=WallClock(), sink=self._sink)

    def put(self, batches: dict[str, Batch]) -> None:
        self.calls.append(f"put {len(batches)}")
        self._batches |= batches

    def ping(self) -> bool:
        return True

    def position(self, gateway: str) -> int:
        self._check()
        return self.positions.get(gateway, 0)

    def apply_log_batch(self, batch: LogBatch) -> dict[int, str]:
        self.gate.wait(10)
        self._check()
        if batch.after_offset != self.position(batch.gateway):
            raise DsmsError(f"its position is {self.position(batch.gateway)}, not {batch.after_offset}")
        if arrived := sum(isinstance(item.content, BatchRef) for item in batch.items):
            self.calls.append(f"arrived {arrived}")
        for _, stream, content in batch.items:
            if isinstance(content, BatchRef):
                self._push(stream, content)
            elif isinstance(content, int):
                self.calls.append(f"advance {stream} {content}")
                self._engine.advance(stream, content)
        if batch.ends:
            self.calls.append("end")
            self._engine.end()
        self._engine.run()
        self.positions[batch.gateway] = batch.last_offset
        return {}

    def reject_waiting(self) -> None:
        """Do nothing: no log batch waits."""

    def _push(self, stream: str, ref: BatchRef) -> None:
        batch = self._batches.pop(ref.key) if ref.batch is None else ref.batch
        assert (ref.rows, ref.size) == (batch.rows, batch.memory())
        self.batch_refs.append(ref)
        self.due.append(batch.arrived)
        self._engine.push(stream, batch)

    def _check(self) -> None:
        if self.error is not None:
            raise DsmsError(self.error)

    def records(self, query: str, count: int = 0) -> list[dict[str, Any]]:
        """The results of a query, once there are this many."""
        if count:
            wait_until(lambda: len(self.records(query)) >= count, WAIT)
        return [row for name, batch in self.results if name == query for row in batch.records()]

    def _sink(self, query: str, batch: Batch) -> None:
        self.results.append((query, batch))
        if self.outlet is not None:
            self._numbers[query] = self._numbers.get(query, 0) + 1
            self.outlet.take([(query, self._numbers[query], batch)])


def make_plan(streams: dict[str, dict[str, str]], **queries: str) -> Plan:
    """Streams by their columns, queries in CQL."""
    return plan_from(
        {
            "streams": {name: {"schema": types} for name, types in streams.items()},
            "queries": {name: {"cql": text} for name, text in queries.items()},
        }
    )


def make_routes(plan: Plan, *domains: Any, epoch: float = 0.0) -> Routes:
    """All streams of a plan to all these domains."""
    ways = {
        stream.name: StreamRoute(
            stream.schema, stream.timestamp, tuple(DomainRoute(domain, (domain,)) for domain in domains)
        )
        for stream in plan.streams
        if stream.schema is not None
    }
    queries = {query.name: query.node.schema for query in plan.queries if query.node is not None}
    return Routes(ways, queries, epoch, domains)


@contextmanager
def run_gateway(routes: Routes, name: str = "g", **options: Any) -> Iterator[tuple[Gateway, str]]:
    """A gateway at a free port, and its address."""
    gateway = Gateway(name, **options)
    try:
        gateway.serve(routes)
        host, port = gateway.listen(HOST, 0)
        yield gateway, f"{host}:{port}"
    finally:
        gateway.close()


class CuttingProxy:
    """A TCP proxy that cuts each connection after a number of bytes from the client, or from the server."""

    def __init__(self, address: str, up: Iterator[int], down: Iterator[int]) -> None:
        self.cuts = 0
        self._to = address.rsplit(":", 1)
        self._up, self._down = up, down
        self._server = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection((self._to[0], int(self._to[1])))
                for one, other, most in ((near, far, next(self._up)), (far, near, next(self._down))):
                    threading.Thread(target=self._pump, args=(one, other, most), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, left: int) -> None:
        with suppress(OSError):
            while left and (data := one.recv(min(left, 65_536))):
                other.sendall(data)
                left -= len(data)
            self.cuts += not left
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def run_plan(plan: Plan, **options: Any) -> Iterator[tuple[FakeDomain, Gateway, str]]:
    """A plan in one domain behind one gateway."""
    with ExitStack() as stack:
        domain = FakeDomain(plan)
        gateway, address = stack.enter_context(run_gateway(make_routes(plan, domain), **options))
        yield domain, gateway, address


class Gateways:
    """Runs gateways whose logs are in memory, or in a folder: tests of gateways run with both."""

    def __init__(self, folder: Path | None) -> None:
        self.is_stored = folder is not None
        self._options = {} if folder is None else {"durable": str(folder)}

    def make(self, name: str) -> Gateway:
        return Gateway(name, **self._options)

    def run_gateway(
        self, routes: Routes, name: str = "g", **options: Any
    ) -> AbstractContextManager[tuple[Gateway, str]]:
        return run_gateway(routes, name, **self._options, **options)

    def run_plan(self, plan: Plan, **options: Any) -> AbstractContextManager[tuple[FakeDomain, Gateway, str]]:
        return run_plan(plan, **self._options, **options)
