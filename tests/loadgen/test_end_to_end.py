"""From Spark over TCP through the Ray system and back: every row accounted for, beside Spark's own computation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.timeout(300)]

PLAN = Path(__file__).parent.parent / "plans" / "load.toml"
SECONDS = 4.0
EXPECTED = {  # what the queries are to give, in Spark's own words
    "cheap": "SELECT auction, bidder, price, unix_micros(at) AS at FROM load WHERE _stream = 'bids' AND price < 200",
    "busy": """SELECT auction, count(*) AS bids, sum(price) AS worth FROM load WHERE _stream = 'bids'
               GROUP BY auction, floor(unix_micros(at) / 1000000) HAVING count(*) > 20""",
    "eve": "SELECT auction, person FROM load WHERE person = 'eve'",
}


@pytest.fixture(scope="module")
def expected(formats: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The results, and how many rows there are of each stream, by a batch computation over the same load."""
    load = formats.read.format("dsms_load").options(plan=str(PLAN), duration=SECONDS, partitions=3).load()
    load.cache().createOrReplaceTempView("load")
    found = {name: sorted(map(tuple, formats.sql(text).collect())) for name, text in EXPECTED.items()}
    found["rows"] = sorted(map(tuple, load.groupBy("_stream").count().collect()))
    load.unpersist()
    return found


@pytest.fixture
def deployed(ray_cluster: Any, tmp_path: Path) -> Any:
    """Brings the plan to work, its results in files; and takes it down."""
    from actors.deployment import up
    from dsms.live.setup import Setup
    from dsms.planfile import read_table

    handles = []

    def start(policy: str) -> Any:
        table = read_table(PLAN)
        for name, query in table["queries"].items():
            query["sink"] = {"parquet": str(tmp_path / f"{name}.parquet")}
        setup = Setup.read({**table["live"], "policy": policy, "actors": 4, "port": 0})
        handles.append(up(table, str(PLAN.parent), str(PLAN), name="e2e", setup=setup))
        return handles[-1]

    def down() -> None:
        if handles:
            ray_cluster.get(handles.pop().down.remote())

    yield start, down
    down()


def worked_off(ask: Callable[[], Any]) -> Any:
    """How things stand once nothing is held and nobody has had a turn for a while: who is taken down drops the rest."""
    before, now = None, ask()
    while now["domains"][0]["held"] or now["domains"][0]["turns"] != before:
        before = now["domains"][0]["turns"]
        threading.Event().wait(1.0)
        now = ask()
    return now


@pytest.mark.parametrize(("policy", "swapped"), [("fifo", "chain"), ("chain", None), ("fas-mcq", None)])
def test_every_row_that_spark_sends_is_accounted_for(
    policy: str, swapped: str | None, formats: Any, ray_cluster: Any, deployed: Any, expected: Any, tmp_path: Path
) -> None:
    import dsms
    from loadgen.drive import Drive, Way
    from loadgen.load import Recipe

    get = ray_cluster.get
    start, down = deployed
    handle = start(policy)
    address = get(handle.status.remote())["gateways"][0]["address"]
    with dsms.connect(address) as client, Drive(formats, Recipe.of(PLAN, duration=SECONDS), Way(address)) as drive:
        drive.start()
        if swapped is not None:
            threading.Event().wait(SECONDS)  # rows have begun to come by then
            get(handle.swap.remote(swapped))
        drive.wait(lambda: threading.Event().wait(0.1))
        windows, delivery = drive.delivered()
        for stream in ("bids", "clicks"):
            client.end(stream)
        client.flush(30)
    status = worked_off(lambda: get(handle.status.remote()))
    down()  # files are finished
    (domain,) = status["domains"]
    sent = sum(rows for _, rows in expected["rows"])
    assert windows == drive.windows
    assert delivery.rows == status["gateways"][0]["rows"] == sent  # sent, acknowledged
    assert sorted((each["name"], each["rows"]) for each in domain["streams"]) == expected["rows"]  # admitted
    for name in EXPECTED:
        rows = formats.read.parquet(str(tmp_path / f"{name}.parquet")).drop("ts", "sign")
        assert sorted(map(tuple, rows.collect())) == expected[name]
    assert expected["cheap"], "a computation with no results shows nothing"
    assert [phase["policy"] for phase in domain["phases"]] == [policy, *([swapped] if swapped else [])]
