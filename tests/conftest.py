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
    """One Spark for all tests of a worker that need one."""
    from loadgen.session import session

    running = session()
    yield running
    running.stop()
