"""Freed memory returns to the system, though memory behind it is still in use."""

from __future__ import annotations

import pytest

from actors.deployment.parts import wait_until

pytestmark = pytest.mark.ray
MUCH = 64 * 1024**2  # bytes


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
