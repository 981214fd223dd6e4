"""What tests on a cluster share: actors that are kept, since starting one takes half a second."""

from __future__ import annotations

from functools import partial

import pytest
from runtimes import Crew, Inline, OnRay

HOSTS = 4


@pytest.fixture(scope="session")
def hosts(ray_cluster):
    """Station hosts; whoever has used them clears them."""
    from actors.host import HostActor

    return [HostActor.remote() for _ in range(HOSTS)]


@pytest.fixture(scope="session")
def crew(hosts):
    """A scheduler and an outlet with those hosts."""
    return Crew(hosts)


@pytest.fixture(params=["inline", pytest.param("ray", marks=pytest.mark.ray)])
def runtime(request, tmp_path):
    """Opens a domain for a table and a policy, in this process or on Ray: `runtime(table, policy=...)`."""
    begun = []
    begin = Inline if request.param == "inline" else partial(OnRay, request.getfixturevalue("crew"))

    def started(table, policy="fifo"):
        begun.append(begin(table, tmp_path, policy))
        return begun[-1]

    yield started
    for live in begun:
        live.close()
