"""Fixtures that all tests share, and which tests run in one worker of xdist.

`make test` runs `--dist loadgroup --no-loadscope-reorder`: the tests of a group run in one worker, in the order below.
All tests on the shared Ray are one group and all tests on the shared Spark another, so each is started once. (Tests on
both belong to Spark's group; they start a second, short-lived Ray.) Every other file is a group of its own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
PLANS = TESTS / "plans"

# Groups that take longest come first: a worker takes the next group when it has nearly finished its last.
LONGEST_FIRST = (
    "ray",
    "spark",
    "on_ray/test_demo.py",
    "papers/test_reproduced_fas_mcq.py",
    "on_ray/test_two_nodes.py",
    "papers/test_reproduced_chain.py",
    "papers/test_reproduced_bai_zaniolo.py",
    "papers/test_reproduced_raindrop.py",
    "unit/repository/test_documents.py",
    "contract/test_duckdb.py",
    "contract/test_every_policy.py",
    "contract/test_batch_boundaries.py",
    "contract/test_cost_by_plan_size.py",
)

# Folders and files whose tests take seconds of processor time. `make quick` leaves them out.
SLOW = (
    "benchmarks/",
    "browser/",
    "contract/test_batch_boundaries.py",
    "contract/test_duckdb.py",
    "contract/test_cost_by_plan_size.py",
    "durability/",
    "fuzz/",
    "unit/actors/doctor/test_doctor.py",
    "unit/dsms/arrivals/test_burstiness.py",
    "unit/dsms/charts/test_charts.py",
    "unit/dsms/cli/test_reproduce_command.py",
    "unit/dsms/operators/test_joins.py",
    "unit/dsms/papers/test_reproduce.py",
    "unit/dsms/recording/test_what_if.py",
    "unit/dsms/storage/test_checkpoints.py",
    "unit/dsms/storage/test_sqlite_log.py",
    "unit/repository/test_documents.py",
)

# A shell starts its background jobs with Ctrl-C ignored, and every process of theirs too; tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says nothing on a machine that also does other work.
settings.register_profile("any speed", deadline=None)
settings.load_profile("any speed")

# Ray starts its workers at nice 15: beside a busy worker of xdist they would hardly run.
os.environ.setdefault("RAY_worker_niceness", "0")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, assign each test to its group, and put the longest groups first."""
    for item in items:
        if _file(item).startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    order = {group: place for place, group in enumerate(LONGEST_FIRST)}
    items.sort(
        key=lambda item: (order.get(_group(item), len(order)), _uses(item, "spark") and _uses(item, "ray_cluster"))
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop a worker of xdist where groups have no effect: each test would start a Ray and a Spark of its own."""
    is_grouping = getattr(session.config.option, "loadgroup", False)
    if is_grouping and any("@" not in item.nodeid for item in session.items):
        raise pytest.UsageError("xdist does not see the groups of tests: pytest 9.2 and xdist 3.8 do not fit together")


def _group(item: pytest.Item) -> str:
    return "spark" if _uses(item, "spark") else "ray" if _uses(item, "ray_cluster") else _file(item)


def _uses(item: pytest.Item, fixture: str) -> bool:
    return fixture in getattr(item, "fixturenames", ())


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).as_posix()


@pytest.fixture(scope="session")
def plans() -> Path:
    """The folder of example plans."""
    return PLANS


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """One small Ray for all tests that need one."""
    import ray

    from actors.cluster import cluster

    cluster.start_local_ray(budgets=4)
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark for all tests that need one."""
    from loadgen.spark.session import get_session

    session = get_session()
    yield session
    session.stop()
