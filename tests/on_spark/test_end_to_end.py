"""Rows from Spark through the Ray system: every row is counted, and results equal Spark's own computation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.paths import TESTS

pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.timeout(300)]

PLAN = TESTS / "plans" / "load.toml"
SECONDS = 4.0
EXPECTED = {  # the queries in Spark SQL
    "cheap": "SELECT auction, bidder, price, unix_micros(at) AS at FROM load WHERE _stream = 'bids' AND price < 200",
    "busy": """SELECT auction, count(*) AS bids, sum(price) AS worth FROM load WHERE _stream = 'bids'
               GROUP BY auction, floor(unix_micros(at) / 1000000) HAVING count(*) > 20""",
    "eve": "SELECT auction, person FROM load WHERE person = 'eve'",
}


@pytest.fixture(scope="module")
def expected(formats: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The results and the number of rows of each stream, by a batch computation over the same load."""
    load = formats.read.format("dsms_load").options(plan=str(PLAN), duration=SECONDS, partitions=3).load()
    load.cache().createOrReplaceTempView("load")
    results = {name: sorted(map(tuple, formats.sql(text).collect())) for name, text in EXPECTED.items()}
    results["rows"] = sorted(map(tuple, load.groupBy("_stream").count().collect()))
    load.unpersist()
    return results


@pytest.fixture
def deployed(ray_cluster: Any, tmp_path: Path) -> Any:
    """Functions that deploy the plan with its results in files, and take it down."""
    from actors.control.deploy import up
    from actors.rpc.messages import get_result, send
    from dsms.config.live import LiveConfig
    from dsms.query.plan_file import read_table

    handles = []

    def start(policy: str) -> Any:
        table = read_table(PLAN)
        for name, query in table["queries"].items():
            query["sink"] = {"parquet": str(tmp_path / f"{name}.parquet")}
        setup = LiveConfig.read({**table["live"], "policy": policy, "actors": 4, "port": 0})
        handles.append(up(table, str(PLAN.parent), str(PLAN), name="e2e", setup=setup))
        return handles[-1]

    def down() -> None:
        if handles:
            get_result(send(handles.pop().down))

    yield start, down
    down()


def wait_until_drained(ask: Callable[[], Any]) -> Any:
    """The status once no tuple is queued and no turn has run for a second: `down` drops the rest."""
    before, now = None, ask()
    while now.domains[0].held or now.domains[0].turns != before:
        before = now.domains[0].turns
        threading.Event().wait(1.0)
        now = ask()
    return now


@pytest.mark.parametrize(("policy", "swapped"), [("fifo", "chain"), ("fas-mcq", None)])
def test_every_row_that_spark_sends_is_accounted_for(
    policy: str, swapped: str | None, formats: Any, ray_cluster: Any, deployed: Any, expected: Any, tmp_path: Path
) -> None:
    import dsms
    from loadgen.spark.driver import Driver, PushTarget
    from loadgen.spec.load import LoadSpec

    get = ray_cluster.get
    start, down = deployed
    handle = start(policy)
    address = get(handle.status.remote()).gateways[0].address
    with (
        dsms.connect(address) as client,
        Driver(formats, LoadSpec.of(PLAN, duration=SECONDS), PushTarget(address)) as driver,
    ):
        driver.start()
        if swapped is not None:
            threading.Event().wait(SECONDS)  # rows have begun to arrive by then
            get(handle.swap.remote(swapped))
        driver.wait(lambda: threading.Event().wait(0.1))
        windows, stats = driver.read_delivered()
        for stream in ("bids", "clicks"):
            client.end(stream)
        client.flush(30)
    status = wait_until_drained(lambda: get(handle.status.remote()))
    down()  # files are finished
    (domain,) = status.domains
    sent = sum(rows for _, rows in expected["rows"])
    assert windows == driver.windows
    assert stats.rows == status.gateways[0].rows == sent  # sent, acknowledged
    assert sorted((each.name, each.rows) for each in domain.streams) == expected["rows"]  # admitted
    for name in EXPECTED:
        rows = formats.read.parquet(str(tmp_path / f"{name}.parquet")).drop("ts", "sign")
        assert sorted(map(tuple, rows.collect())) == expected[name]
    assert expected["cheap"], "a computation with no results shows nothing"
    assert [phase.policy for phase in domain.phases] == [policy, *([swapped] if swapped else [])]
