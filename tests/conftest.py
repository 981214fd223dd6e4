"""What tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

PLANS = Path(__file__).parent / "plans"


@pytest.fixture(scope="session")
def plans() -> Path:
    """The folder of example plans."""
    return PLANS


@pytest.fixture(scope="session")
def ray_cluster():
    """One small Ray for all tests that need one."""
    import ray

    from actors import cluster

    cluster.local(budgets=4)
    yield ray
    ray.shutdown()


def pytest_collection_modifyitems(items):
    """With xdist, a file's tests share what they set up, and all that need Ray share one: they go to one worker."""
    for item in items:
        group = "ray" if item.get_closest_marker("ray") else item.path.name
        item.add_marker(pytest.mark.xdist_group(group))
