"""The Spark source `dsms_load`: the same rows for any partitions, windows and lanes; and offsets that are times."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from support.paths import TESTS

from dsms.clock import wall_time_s
from dsms.engine.arrival_schedule import ArrivalSchedule
from dsms.errors import DsmsError
from dsms.query.plan_file import read_plan

pytestmark = pytest.mark.spark

PLAN = TESTS / "plans" / "load.toml"


def read(formats: Any, **options: Any) -> Any:
    return formats.read.format("dsms_load").options(**{"plan": str(PLAN), "duration": 3.0, **options}).load()


def read_stream(formats: Any, folder: Path, **options: Any) -> list[tuple[Any, ...]]:
    """All rows of a load, read in micro-batches."""
    options = {"plan": str(PLAN), "duration": 3.0, "begin": wall_time_s() - 100, **options}
    rows = formats.readStream.format("dsms_load").options(**options).load()
    name = f"t{abs(hash(folder)):x}"
    query = rows.writeStream.format("memory").queryName(name).option("checkpointLocation", str(folder)).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return sorted(map(tuple, formats.table(name).drop("_due").collect()), key=repr)


def test_rows_do_not_depend_on_partitions_windows_or_lanes(formats: Any, tmp_path: Path) -> None:
    whole = sorted(map(tuple, read(formats, partitions=1).drop("_due").collect()), key=repr)
    assert len(whole) > 3000
    assert sorted(map(tuple, read(formats, partitions=7).drop("_due").collect()), key=repr) == whole
    lanes = [
        read_stream(formats, tmp_path / str(lane), lanes=2, lane=lane, window=0.7, windows=1, partitions=3)
        for lane in range(2)
    ]
    assert all(len(lane) > 500 for lane in lanes)
    assert sorted([row for lane in lanes for row in lane], key=repr) == whole


def test_the_load_has_the_arrivals_of_the_simulator(formats: Any) -> None:
    plan = read_plan(PLAN)
    schedule = ArrivalSchedule(plan.streams, plan.settings.seed, math.nextafter(3.0, 0))
    simulated: list[tuple[str, int, float]] = []
    while (chunk := schedule.chunk()) is not None:
        names = [plan.streams[place].name for place in chunk.streams.tolist()]
        simulated += zip(names, chunk.numbers.tolist(), chunk.instants, strict=True)
    generated = read(formats).selectExpr("_stream", "_number", "unix_micros(_due)").collect()
    assert sorted(map(tuple, generated)) == sorted((name, number, round(at * 1e6)) for name, number, at in simulated)


def test_rate_speedup_and_seed_change_the_load(formats: Any) -> None:
    assert read(formats, rate=5000, duration=20.0).count() == pytest.approx(100_000, rel=0.1)
    due = read(formats, stream="bids", speedup=2.0, duration=1.0).selectExpr("max(unix_micros(_due))", "count(*)")
    ((last, twice),) = due.collect()
    assert last < 1e6
    assert twice == read(formats, stream="bids", duration=2.0).count()
    price = read(formats, stream="bids").agg({"price": "sum"}).collect()
    assert price != read(formats, stream="bids", seed=5).agg({"price": "sum"}).collect()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plan": "nowhere.toml"}, "nowhere.toml: cannot be read"),
        ({"stream": "bid"}, "no stream 'bid'"),
        ({"rate": 5, "utilisation": 0.5}, "both a rate and a utilisation"),
        ({"utilisation": 0.5}, "without a declared cost"),
        ({"rte": 5}, "no option 'rte'"),
        ({"rate": "fast"}, "option 'rate': 'fast' is not a positive number"),
    ],
)
def test_wrong_options_are_refused(formats: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        read(formats, **options)


def test_an_endless_load_can_only_be_read_as_a_stream(formats: Any) -> None:
    endless = formats.read.format("dsms_load").options(plan=str(PLAN)).load()
    with pytest.raises(Exception, match="the load never ends: give a `duration`"):
        endless.count()


def test_only_due_windows_are_offered_or_those_due_in_ahead_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    from loadgen.spark.options import Options
    from loadgen.spark.source import FORMAT, OPTIONS, LoadStreamReader, make_schema
    from loadgen.spec.load import LoadSpec, make_load

    def reader(**options: Any) -> LoadStreamReader:
        texts = {"plan": str(PLAN), "window": "0.5", **options}
        return LoadStreamReader(Options(FORMAT, texts, OPTIONS), make_schema(make_load(LoadSpec.of(PLAN))))

    def upto(**options: Any) -> float:
        source = reader(**options)
        return source.latestOffset(source.initialOffset())["upto"] / 1e6

    now = wall_time_s()
    monkeypatch.setattr("loadgen.spark.source.wall_time_s", lambda: now)
    assert upto(begin=str(now - 2.12)) == 2.0
    assert upto(begin=str(now + 10)) == 0.0
    assert upto(begin=str(now + 1.0), ahead="2.2") == 1.0
    assert upto(begin=str(now - 2.12), duration="1.2") == 1.5
    assert upto(begin=str(now - 2.12), duration="1.5") == 1.5
    assert upto(begin=str(now - 2.12), windows="1") == 0.5
    assert upto(begin=str(now + 50), windows="1", lanes="2", lane="1") == 1.0  # the first is offered at once
    assert upto(begin=str(now - 2.12), speedup="10") == 21.0
    assert [upto(begin=str(now - 2.12), lanes="2", lane=lane) for lane in ("0", "1")] == [1.5, 2.0]
    with pytest.raises(DsmsError, match=r"ends at 1\.5 s, where no window of 0\.7 s ends: it was written with another"):
        reader(window="0.7").latestOffset({"origin": 0, "upto": 1_500_000})
