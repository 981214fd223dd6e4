"""What a process has freed goes back to the system, though something that lies behind it is still in use."""

from __future__ import annotations

import pytest

from actors.parts import wait_for

pytestmark = pytest.mark.ray
MUCH = 64 * 1024**2  # bytes


def hoarder(ray, small):
    """An actor that takes much from the heap, and lets all of it go but the last piece."""

    class Hoarder:
        def __init__(self):
            from actors.heap import keep_small

            if small:
                keep_small(0.1)

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
def test_memory_that_was_freed_is_given_back(ray_cluster, small):
    actor = hoarder(ray_cluster, small)
    before, most = ray_cluster.get(actor.hoard.remote(MUCH))
    assert most - before > MUCH / 2

    def given_back():
        return ray_cluster.get(actor.memory.remote()) < before + MUCH / 4

    assert wait_for(given_back, 20 if small else 1) == small
    ray_cluster.kill(actor)
