"""Fixtures of the tests on Ray: actors that are reused, since starting one takes half a second."""

from __future__ import annotations

from functools import partial

import pytest
from support.live.runtimes import InlineRuntime, RayActors, RayRuntime

HOSTS = 4


@pytest.fixture(scope="session")
def hosts(ray_cluster):
    """Hosts; each test clears those it has used."""
    from actors.hosts.host import HostActor

    return [HostActor.remote() for _ in range(HOSTS)]


@pytest.fixture(scope="session")
def crew(hosts):
    """A scheduler and a result hub with those hosts."""
    return RayActors(hosts)


@pytest.fixture(params=["inline", pytest.param("ray", marks=pytest.mark.ray)])
def runtime(request, tmp_path):
    """Opens a domain for a table and a policy, in this process or on Ray: `runtime(table, policy=...)`."""
    opened = []
    make = InlineRuntime if request.param == "inline" else partial(RayRuntime, request.getfixturevalue("crew"))

    def open_domain(table, policy="fifo"):
        opened.append(make(table, tmp_path, policy))
        return opened[-1]

    yield open_domain
    for live in opened:
        live.close()
