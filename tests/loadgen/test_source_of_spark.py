"""Generated rows in Spark: the same whatever the partitions, windows and lanes; and offsets that are times."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dsms.clock import epoch
from dsms.errors import DsmsError
from dsms.planfile import read_plan
from dsms.schedule import Schedule

pytestmark = pytest.mark.spark

PLAN = Path(__file__).parent.parent / "plans" / "load.toml"


def read(formats: Any, **options: Any) -> Any:
    return formats.read.format("dsms_load").options(**{"plan": str(PLAN), "duration": 3.0, **options}).load()


def streamed(formats: Any, folder: Path, **options: Any) -> list[tuple[Any, ...]]:
    """All rows of a load by way of micro-batches."""
    given = {"plan": str(PLAN), "duration": 3.0, "begin": epoch() - 100, **options}
    rows = formats.readStream.format("dsms_load").options(**given).load()
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
        streamed(formats, tmp_path / str(lane), lanes=2, lane=lane, window=0.7, windows=1, partitions=3)
        for lane in range(2)
    ]
    assert all(len(lane) > 500 for lane in lanes)
    assert sorted([row for lane in lanes for row in lane], key=repr) == whole


def test_the_load_has_the_arrivals_of_the_simulator(formats: Any) -> None:
    plan = read_plan(PLAN)
    schedule = Schedule(plan.streams, plan.settings.seed, math.nextafter(3.0, 0))
    drawn: list[tuple[str, int, float]] = []
    while (chunk := schedule.chunk()) is not None:
        names = [plan.streams[place].name for place in chunk.streams.tolist()]
        drawn += zip(names, chunk.numbers.tolist(), chunk.instants, strict=True)
    found = read(formats).selectExpr("_stream", "_number", "unix_micros(_due)").collect()
    assert sorted(map(tuple, found)) == sorted((name, number, round(at * 1e6)) for name, number, at in drawn)


def test_a_rate_a_speedup_and_a_seed_of_ones_own(formats: Any) -> None:
    assert read(formats, rate=5000, duration=20.0).count() == pytest.approx(100_000, rel=0.1)
    due = read(formats, stream="bids", speedup=2.0, duration=1.0).selectExpr("max(unix_micros(_due))", "count(*)")
    ((last, twice),) = due.collect()
    assert last < 1e6
    assert twice == read(formats, stream="bids", duration=2.0).count()
    price = read(formats, stream="bids").agg({"price": "sum"}).collect()
    assert price != read(formats, stream="bids", seed=5).agg({"price": "sum"}).collect()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"plan": "nowhere.toml"}, "nowhere.toml: cannot be read"),
        ({"stream": "bid"}, "no stream 'bid'"),
        ({"rate": 5, "utilisation": 0.5}, "both a rate and a utilisation"),
        ({"utilisation": 0.5}, "without a declared cost"),
        ({"rte": 5}, "no option 'rte'"),
        ({"rate": "fast"}, "option 'rate' is 'fast'; a number above 0 is wanted"),
    ],
)
def test_what_cannot_be_generated_is_refused(formats: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(Exception, match=said):
        read(formats, **options)


def test_a_load_that_never_ends_is_for_streams_only(formats: Any) -> None:
    endless = formats.read.format("dsms_load").options(plan=str(PLAN)).load()
    with pytest.raises(Exception, match="the load never ends: give a `duration`"):
        endless.count()


def test_only_what_is_due_is_there_unless_it_may_be_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    from loadgen.load import Recipe, load_of
    from loadgen.options import Options
    from loadgen.source import FORMAT, OPTIONS, LoadStreamReader, schema_of

    def reader(**options: Any) -> LoadStreamReader:
        given = {"plan": str(PLAN), "window": "0.5", **options}
        return LoadStreamReader(Options(FORMAT, given, OPTIONS), schema_of(load_of(Recipe.of(PLAN))))

    def upto(**options: Any) -> float:
        made = reader(**options)
        return made.latestOffset(made.initialOffset())["upto"] / 1e6

    now = epoch()
    monkeypatch.setattr("loadgen.source.epoch", lambda: now)
    assert upto(begin=str(now - 2.12)) == 2.0
    assert upto(begin=str(now + 10)) == 0.0
    assert upto(begin=str(now + 1.0), ahead="2.2") == 1.0
    assert upto(begin=str(now - 2.12), duration="1.2") == 1.5
    assert upto(begin=str(now - 2.12), duration="1.5") == 1.5
    assert upto(begin=str(now - 2.12), windows="1") == 0.5
    assert upto(begin=str(now + 50), windows="1", lanes="2", lane="1") == 1.0  # the first is there at once
    assert upto(begin=str(now - 2.12), speedup="10") == 21.0
    assert [upto(begin=str(now - 2.12), lanes="2", lane=lane) for lane in ("0", "1")] == [1.5, 2.0]
    with pytest.raises(DsmsError, match=r"ends at 1\.5 s, where no window of 0\.7 s ends: it was written with another"):
        reader(window="0.7").latestOffset({"origin": 0, "upto": 1_500_000})
