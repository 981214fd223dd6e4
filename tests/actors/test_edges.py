"""Gateway and outlet as actors: rows in by TCP, to a host and a scheduler that are actors, and results out again."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import dsms
from actors import gateway, outlet
from dsms.live.routes import Routes, Target, Way
from dsms.schema import Schema

pytestmark = pytest.mark.ray

N = Schema.of({"n": "int64"})


def parts() -> tuple[type, type]:
    """A host and a scheduler; made here so that Ray sends them as they are: its workers cannot import this file."""

    class Host:
        """Keeps what is put, and gives it out as it was; like the real one it waits for what is still on its way."""

        def __init__(self) -> None:
            self._goods: dict[str, Any] = {}
            self._changed = threading.Condition()

        def put(self, goods: dict[str, Any]) -> None:
            with self._changed:
                self._goods |= goods
                self._changed.notify_all()

        def give(self, keys: list[str], first: int, out: Any) -> None:
            with self._changed:
                assert self._changed.wait_for(lambda: all(key in self._goods for key in keys), 20)
                for place, key in enumerate(keys):
                    out.take.remote([("q", first + place, self._goods.pop(key))])

        def there(self) -> bool:
            return True

    class Scheduler:
        """Has every parcel given out at once."""

        def __init__(self, hosts: list[Any], out: Any) -> None:
            self._hosts, self._out, self._count = hosts, out, 0

        def there(self) -> bool:
            return True

        def arrived(self, parcels: list[Any]) -> int:
            import ray

            keys = [parcel.key for _, parcel in parcels]
            ray.get(self._hosts[0].give.remote(keys, self._count + 1, self._out))
            self._count += len(keys)
            return 0

    return Host, Scheduler


@pytest.mark.parametrize("rows", [10, 100_000])
def test_what_is_pushed_at_an_actor_comes_back_from_another(ray_cluster: Any, rows: int) -> None:
    host_class, scheduler_class = parts()
    remote = ray_cluster.remote
    host_actor = remote(num_cpus=0, concurrency_groups={"goods": 1})(host_class)
    hosts = [host_actor.remote(), host_actor.remote()]
    out = remote(**outlet.ACTOR)(outlet.Outlet).remote()
    scheduler = remote(num_cpus=0, concurrency_groups={"arrivals": 1})(scheduler_class).remote(hosts, out)
    gate = remote(**gateway.ACTOR)(gateway.Gateway).remote("g", out)
    try:
        ray_cluster.get(out.open.remote({"q": (None, N, True)}, "."))
        host, port = ray_cluster.get(gate.listen.remote("127.0.0.1", 0))
        way = Way(N, None, (Target(scheduler, tuple(hosts)),))
        ray_cluster.get(gate.serve.remote(Routes({"s": way}, {"q": N})))
        with dsms.connect(f"{host}:{port}") as client:
            wanted = client.subscribe("q", after=0)
            for number in range(20):
                client.push("s", {"n": np.full(rows, number)})
            client.flush(20)
            found = [next(wanted) for _ in range(20)]
        assert [batch.number for batch in found] == list(range(1, 21))
        assert [batch.columns["n"].tolist() for batch in found] == [[number] * rows for number in range(20)]
        ray_cluster.get(gate.hold.remote(["s"]))
        assert ray_cluster.get(gate.status.remote())["rows"] == 20 * rows
        ray_cluster.get(gate.close.remote())
    finally:
        for actor in (*hosts, scheduler, gate, out):
            ray_cluster.kill(actor)
