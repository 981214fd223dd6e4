"""The driver of a load: paced, stopped and resumed, its tasks killed; with real Spark and a real gateway."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.live.in_process_domain import run_plan
from support.paths import TESTS

from dsms.errors import DsmsError
from dsms.query.plan_file import plan_from, read_table

pytestmark = pytest.mark.spark

PLAN = TESTS / "plans" / "load.toml"
TABLE = read_table(PLAN)


@pytest.fixture
def live() -> Any:
    """The streams of the plan, with queries that pass all rows, behind a gateway."""
    streams = {name: {"schema": each["schema"]} for name, each in TABLE["streams"].items()}
    queries = {f"all-{name}": {"cql": f"SELECT * FROM {name}"} for name in streams}
    with run_plan(plan_from({"streams": streams, "queries": queries})) as found:
        yield found


def rows_of(formats: Any, **options: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the load by stream, as Spark reads them in a batch."""
    rows = {}
    for name, each in TABLE["streams"].items():
        load = formats.read.format("dsms_load").options(plan=str(PLAN), stream=name, **options).load()
        columns = [f"unix_micros({c})" if kind == "timestamp" else c for c, kind in each["schema"].items()]
        rows[name] = sorted(map(tuple, load.selectExpr(*columns).collect()))
    return rows


def received_rows(domain: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(tuple(row.values()) for row in domain.records(f"all-{name}")) for name in TABLE["streams"]}


def find_tasks(address: str) -> list[int]:
    """The process ids of Spark's tasks: the processes, other than this, that are connected to an address."""
    port = f":{int(address.rpartition(':')[2]):04X}"
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    sockets = {f"socket:[{line[9]}]" for line in lines if line[2].endswith(port) and line[3] == "01"}
    tasks = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process may have ended meanwhile
            files = {os.readlink(file) for file in (folder / "fd").iterdir()}
            if files & sockets and int(folder.name) != os.getpid():
                tasks.append(int(folder.name))
    return tasks


def test_every_row_arrives_once_although_a_task_is_killed_and_the_load_stopped_and_resumed(
    formats: Any, live: Any, tmp_path: Path
) -> None:
    from loadgen.spark.driver import Driver, PushTarget
    from loadgen.spec.load import LoadSpec

    domain, gateway, address = live
    spec, target = LoadSpec.of(PLAN, duration=8.0), PushTarget(address, window=1.0)
    sleep = threading.Event().wait
    with Driver(formats, spec, target, tmp_path / "checkpoint") as driver:
        driver.start()
        while gateway.status()["rows"] < 1000 or not (tasks := find_tasks(address)):
            driver.check()
            sleep(0.02)
        for pid in tasks:
            os.kill(pid, signal.SIGKILL)
        while driver.read_delivered()[0] < 4:
            driver.check()
            sleep(0.05)
    assert gateway.status()["rows"] < sum(map(len, rows_of(formats, duration=8.0).values()))
    with Driver(formats, spec, target, tmp_path / "checkpoint") as driver:
        driver.start()
        driver.wait(lambda: sleep(0.05))
        windows, stats = driver.read_delivered()
    expected = rows_of(formats, duration=8.0)
    assert received_rows(domain) == expected
    assert windows == 8
    assert gateway.status()["rows"] == stats.rows == sum(map(len, expected.values()))
    with pytest.raises(DsmsError, match="all of this load was delivered before; remove"):
        Driver(formats, spec, target, tmp_path / "checkpoint").start()
    other = LoadSpec.of(PLAN, duration=8.0, seed=9)
    with pytest.raises(DsmsError, match="belongs to another load: seed was None, and is 9"):
        Driver(formats, other, target, tmp_path / "checkpoint").start()
