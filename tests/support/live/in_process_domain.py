"""For tests of gateways and clients: a domain as an engine in this process, and a proxy that cuts connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from actors.ingest.gateway import Gateway
from dsms import Batch, Engine, Plan, WallClock, plan_from
from dsms.data.batch_ref import BatchRef
from dsms.live.routes import DomainRoute, Routes, StreamRoute
from dsms.policies.registry import policy_named

HOST = "127.0.0.1"


class FakeDomain:
    """Scheduler and host in one: an engine that gets the announced batches."""

    def __init__(self, plan: Plan, outlet: Any = None) -> None:
        self.outlet = outlet
        self.results: list[tuple[str, Batch]] = []
        self.calls: list[str] = []
        self.batch_refs: list[BatchRef] = []
        self.due: list[Any] = []
        self.gate = threading.Event()  # cleared, calls take as long as that
        self.gate.set()
        self._numbers: dict[str, int] = {}
        self._batches: dict[str, Batch] = {}
        self._engine = Engine(plan, policy_named("fifo"), clock=WallClock(), sink=self._sink)

    def put(self, batches: dict[str, Batch]) -> None:
        self.calls.append(f"put {len(batches)}")
        self._batches |= batches

    def arrived(self, batch_refs: list[tuple[str, BatchRef]]) -> int:
        self.gate.wait(10)
        self.calls.append(f"arrived {len(batch_refs)}")
        for stream, ref in batch_refs:
            batch = self._batches.pop(ref.key)
            assert (ref.rows, ref.size) == (batch.rows, batch.memory())
            self.batch_refs.append(ref)
            self.due.append(batch.arrived)
            self._engine.push(stream, batch)
        self._engine.run()
        return 0

    def advance(self, stream: str, upto: int) -> None:
        self.calls.append(f"advance {stream} {upto}")
        self._engine.advance(stream, upto)
        self._engine.run()

    def end(self) -> None:
        self.calls.append("end")
        self._engine.end()
        self._engine.run()

    def records(self, query: str) -> list[dict[str, Any]]:
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
    return Routes(ways, queries, epoch)


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
