"""An actor's process holds little memory: freed memory returns to the system, and unused libraries are not imported."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from actors.deployment.actor_handles import wait_until
from actors.hosts.host import Host
from actors.results.release import ReleaseAtOnce
from actors.results.result_hub import ResultHubActor
from actors.rpc.messages import BATCHES, STATE_COPIES, get_result, make_actor_class, send

pytestmark = pytest.mark.ray
MUCH = 64 * 1024**2  # bytes
UNUSED = {"duckdb", "fastapi", "matplotlib", "pandas", "pyarrow", "pydantic", "rich", "sqlglot", "starlette"}


def hoarder(ray, small):
    """An actor that allocates much memory and frees all but the last piece."""

    class Hoarder:
        def __init__(self):
            from actors.cluster.malloc_trim import start_malloc_trim

            if small:
                start_malloc_trim(0.1)

        def memory(self):
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * 4096

        def hoard(self, much):
            before, piece = self.memory(), 16 * 1024
            taken = [bytes([1]) * piece for _ in range(much // piece)]
            self.kept = taken[-1]
            return before, self.memory()

    return ray.remote(num_cpus=0)(Hoarder).remote()


@pytest.mark.parametrize("small", [True, False])
def test_freed_memory_returns_to_the_system(ray_cluster, small):
    actor = hoarder(ray_cluster, small)
    before, most = ray_cluster.get(actor.hoard.remote(MUCH))
    assert most - before > MUCH / 2

    def given_back():
        return ray_cluster.get(actor.memory.remote()) < before + MUCH / 4

    assert wait_until(given_back, 20 if small else 1) == small
    ray_cluster.kill(actor)


def test_a_host_that_knows_other_actors_has_imported_no_large_library_but_numpy(ray_cluster: Any) -> None:
    class ProbedHost(Host):  # local, so that Ray pickles it: its workers cannot import this file
        def modules(self) -> set[str]:
            return set(sys.modules)

    result_hub = ResultHubActor.remote(ReleaseAtOnce())
    host = make_actor_class(ProbedHost, BATCHES, STATE_COPIES).remote()
    try:
        get_result(send(host.connect_peers, 0, [host], result_hub))
        modules = get_result(send(host.modules))
    finally:
        for actor in (host, result_hub):
            ray_cluster.kill(actor)
    assert "numpy" in modules
    assert UNUSED & modules == set()
