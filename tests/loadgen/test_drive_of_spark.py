"""A load on its way: paced, stopped and gone on with, its tasks killed; real Spark, a real gateway."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from live_parts import running

from dsms.errors import DsmsError
from dsms.planfile import plan_from, read_table

pytestmark = pytest.mark.spark

PLAN = Path(__file__).parent.parent / "plans" / "load.toml"
TABLE = read_table(PLAN)


@pytest.fixture
def live() -> Any:
    """The streams of the plan with queries that let everything through, behind a gateway."""
    streams = {name: {"schema": each["schema"]} for name, each in TABLE["streams"].items()}
    queries = {f"all-{name}": {"cql": f"SELECT * FROM {name}"} for name in streams}
    with running(plan_from({"streams": streams, "queries": queries})) as found:
        yield found


def rows_of(formats: Any, **options: Any) -> dict[str, list[tuple[Any, ...]]]:
    """By stream, the rows of the load as Spark reads them when nobody waits for them."""
    found = {}
    for name, each in TABLE["streams"].items():
        load = formats.read.format("dsms_load").options(plan=str(PLAN), stream=name, **options).load()
        columns = [f"unix_micros({c})" if kind == "timestamp" else c for c, kind in each["schema"].items()]
        found[name] = sorted(map(tuple, load.selectExpr(*columns).collect()))
    return found


def received(domain: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(tuple(row.values()) for row in domain.records(f"all-{name}")) for name in TABLE["streams"]}


def pushing(address: str) -> list[int]:
    """The processes, other than this, that are connected to an address: Spark's tasks."""
    port = f":{int(address.rpartition(':')[2]):04X}"
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    sockets = {f"socket:[{line[9]}]" for line in lines if line[2].endswith(port) and line[3] == "01"}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may have ended meanwhile
            files = {os.readlink(file) for file in (folder / "fd").iterdir()}
            if files & sockets and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def test_a_load_is_stopped_and_goes_on_and_a_task_is_killed_and_every_row_comes_once(
    formats: Any, live: Any, tmp_path: Path
) -> None:
    from loadgen.drive import Drive, Way
    from loadgen.load import Recipe

    domain, gateway, address = live
    recipe, way = Recipe.of(PLAN, duration=8.0), Way(address, window=1.0)
    nap = threading.Event().wait
    with Drive(formats, recipe, way, tmp_path / "checkpoint") as drive:
        drive.start()
        while gateway.status()["rows"] < 1000 or not (victims := pushing(address)):
            drive.check()
            nap(0.02)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        while drive.delivered()[0] < 4:
            drive.check()
            nap(0.05)
    assert gateway.status()["rows"] < sum(map(len, rows_of(formats, duration=8.0).values()))
    with Drive(formats, recipe, way, tmp_path / "checkpoint") as drive:
        drive.start()
        drive.wait(lambda: nap(0.05))
        windows, delivery = drive.delivered()
    expected = rows_of(formats, duration=8.0)
    assert received(domain) == expected
    assert windows == 8
    assert gateway.status()["rows"] == delivery.rows == sum(map(len, expected.values()))
    with pytest.raises(DsmsError, match="all of this load was delivered before; remove"):
        Drive(formats, recipe, way, tmp_path / "checkpoint").start()
    other = Recipe.of(PLAN, duration=8.0, seed=9)
    with pytest.raises(DsmsError, match="belongs to another load: seed was None, and is 9"):
        Drive(formats, other, way, tmp_path / "checkpoint").start()
