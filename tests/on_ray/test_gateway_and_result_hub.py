"""Gateway and result hub as actors: rows come in by TCP, pass a host and a scheduler, and leave as results."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import dsms
from actors.ingest.gateway import GatewayActor
from actors.results.release import ReleaseAtOnce
from actors.results.result_hub import ResultHubActor
from actors.rpc.messages import get_result, send
from dsms.data.schema import Schema
from dsms.live.routes import DomainRoute, Routes, StreamRoute

pytestmark = pytest.mark.ray

N = Schema.of({"n": "int64"})


def parts() -> tuple[type, type]:
    """A host and a scheduler class; local, so that Ray pickles them: its workers cannot import this file."""

    class FakeHost:
        """Holds batches and passes them on unchanged; like the real host it waits for batches on their way."""

        def __init__(self) -> None:
            self._batches: dict[str, Any] = {}
            self._changed = threading.Condition()

        def put(self, batches: dict[str, Any]) -> None:
            with self._changed:
                self._batches |= batches
                self._changed.notify_all()

        def give(self, refs: list[Any], first: int, out: Any) -> None:
            keys = [ref.key for ref in refs if ref.batch is None]
            with self._changed:
                assert self._changed.wait_for(lambda: all(key in self._batches for key in keys), 20)
                for place, ref in enumerate(refs):
                    batch = self._batches.pop(ref.key) if ref.batch is None else ref.batch
                    out.take.remote([("q", first + place, batch)])

        def ping(self) -> bool:
            return True

    class EchoScheduler:
        """Has every batch released at once."""

        def __init__(self, hosts: list[Any], out: Any) -> None:
            self._hosts, self._out, self._count = hosts, out, 0

        def ping(self) -> bool:
            return True

        def position(self, gateway: str) -> int:
            return 0

        def apply_log_batch(self, batch: Any) -> dict[int, str]:
            import ray

            refs = [item.content for item in batch.items]
            ray.get(self._hosts[0].give.remote(refs, self._count + 1, self._out))
            self._count += len(refs)
            return {}

    return FakeHost, EchoScheduler


@pytest.mark.parametrize("rows", [10, 100_000])
def test_rows_pushed_to_a_gateway_come_back_as_results(ray_cluster: Any, rows: int) -> None:
    host_class, scheduler_class = parts()
    remote = ray_cluster.remote
    host_actor = remote(num_cpus=0, concurrency_groups={"batches": 1})(host_class)
    hosts = [host_actor.remote(), host_actor.remote()]
    out = ResultHubActor.remote(ReleaseAtOnce())
    scheduler = remote(num_cpus=0, concurrency_groups={"arrivals": 1})(scheduler_class).remote(hosts, out)
    gate = GatewayActor.remote("g", out)
    try:
        get_result(send(out.open, {"q": (None, N, True)}, "."))
        way = StreamRoute(N, None, (DomainRoute(scheduler, tuple(hosts)),))
        get_result(send(gate.serve, Routes({"s": way}, {"q": N}, schedulers=(scheduler,))))
        host, port = get_result(send(gate.listen, "127.0.0.1", 0))
        with dsms.connect(f"{host}:{port}") as client:
            wanted = client.subscribe("q", after=0)
            for number in range(20):
                client.push("s", {"n": np.full(rows, number)})
            client.flush(20)
            found = [next(wanted) for _ in range(20)]
        assert [batch.number for batch in found] == list(range(1, 21))
        assert [batch.columns["n"].tolist() for batch in found] == [[number] * rows for number in range(20)]
        get_result(send(gate.hold, ["s"]))
        assert get_result(send(gate.status))["rows"] == 20 * rows
        get_result(send(gate.close))
    finally:
        for actor in (*hosts, scheduler, gate, out):
            ray_cluster.kill(actor)
