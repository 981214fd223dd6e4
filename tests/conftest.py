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


@pytest.fixture(scope="session")
def spark():
    """One Spark for all tests that need one."""
    from loadgen.session import session

    running = session()
    yield running
    running.stop()


@pytest.hookimpl(wrapper=True)  # before xdist's own, which reads the groups
def pytest_collection_modifyitems(items):
    """A file's tests stay on one worker, as they share what they set up; all of Spark's do: they share the session."""
    for item in items:
        spark = item.get_closest_marker("spark") is not None
        item.add_marker(pytest.mark.xdist_group("spark" if spark else item.nodeid.partition("::")[0]))
    return (yield)
