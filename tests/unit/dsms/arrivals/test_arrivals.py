"""Arrival processes: their values, their rates, and the same stream however it is split."""

from __future__ import annotations

import itertools
import math
import pickle
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from dsms.arrivals import ARRIVAL_KINDS, Arrivals, arrivals_from, block_generator, poisson
from dsms.arrivals import pareto_flows as flows

TRACE = "at,cost,cost.o1,size,host\n0.5,1,2,40,a\n0.5,3,0,41,b\n\n7,5,6,42,c\n"

EXAMPLES: dict[str, dict[str, object]] = {
    "list": {"at": [0, 0.5, 0.5, 0.5, 3, 9, 9, 17.25]},
    "file": {"path": "trace.csv"},
    "push": {},
    "constant": {"every": 0.1, "start": 0.3},
    "poisson": {"rate": 300},
    "bursts": {"rate": 300, "group": 7},
    "pareto": {"flows": 150, "packets": 3.3, "shortest": 0.4},
    "piecewise": {"rates": [30, 0, 400], "every": 0.7},
    "onoff": {"rate": 300, "sources": 7, "on": 0.3, "off": 0.5},
    "diurnal": {"rate": 300, "period": 0.9, "amplitude": 1, "phase": 0.3},
    "flash": {"rate": 150, "at": 0.4, "peak": 20, "rise": 0.1, "decay": 0.2, "every": 2.1},
    "trace": {"path": "trace.csv", "rate": 100, "loop": True},
}

RANDOM = [kind for kind in EXAMPLES if "seed" in ARRIVAL_KINDS[kind].keys]


def arrivals(kind: str, seed: int = 1, folder: Path = Path(), **keys: object) -> Arrivals:
    return arrivals_from({"kind": kind, **keys}, seed=seed, folder=folder)


def example(kind: str, folder: Path = Path(), **more: object) -> Arrivals:
    return arrivals_from({"kind": kind, **EXAMPLES[kind], **more}, seed=1, folder=folder)


def instants(process: Arrivals, start: float = 0.0, stop: float = math.inf) -> list[float]:
    return [float(instant) for instant in process.between(start, stop)]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    (folder / "trace.csv").write_text(TRACE)
    return folder


def test_every_kind_has_an_example() -> None:
    assert EXAMPLES.keys() == ARRIVAL_KINDS.keys()


def test_list_gives_what_is_listed_from_start_to_before_stop() -> None:
    process = arrivals("list", at=[0, 1, 1, 2.5])
    assert instants(process) == [0, 1, 1, 2.5]
    assert instants(process, 1, 2.5) == [1, 1]
    assert instants(process, 0, 1) == [0]
    assert process.between(0, 9).dtype == np.float64
    assert process.end == math.nextafter(2.5, 3)
    assert process.rate == 4 / 2.5
    assert process.carries == {}


def test_list_may_be_empty_or_all_at_once() -> None:
    empty, crowd = arrivals("list", at=[]), arrivals("list", at=[3, 3, 3])
    assert (instants(empty), empty.end, empty.rate) == ([], 0, 1)
    assert (instants(crowd), crowd.rate) == ([3, 3, 3], 3)


def test_push_gives_nothing_of_its_own() -> None:
    process = arrivals("push")
    assert (instants(process, -5, 1e9), process.end) == ([], 0)


def test_constant_multiplies_rather_than_adds() -> None:
    process = arrivals("constant", every=0.1, start=2)
    assert instants(process, 0, 2.35) == [2, 2.1, 2.2, 2 + 3 * 0.1]
    assert instants(process, 2 + 10**7 * 0.1, 2 + (10**7 + 1) * 0.1) == [2 + 10**7 * 0.1]
    assert (process.end, process.rate) == (math.inf, 10)
    assert instants(arrivals("constant", rate=4), 0, 1) == [0, 0.25, 0.5, 0.75]
    assert instants(arrivals("constant", rate=4, start=0.5, until=1.25), -9, 9) == [0.5, 0.75, 1]


def test_poisson_gaps_are_exponential() -> None:
    gaps = np.diff(arrivals("poisson", rate=2).between(0, 20_000))
    for quantile in (0.1, 0.5, 0.9):
        assert np.quantile(gaps, quantile) == pytest.approx(-math.log(1 - quantile) / 2, rel=0.05)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.02
    counts = np.histogram(np.cumsum(gaps), bins=np.arange(0, 20_000, 10))[0]
    assert np.var(counts) / np.mean(counts) == pytest.approx(1, abs=0.12)


def test_bursts_give_each_group_the_instant_of_its_first() -> None:
    spread, bursts = arrivals("poisson", rate=2).between(0, 5000), arrivals("bursts", rate=2).between(0, 5000)
    assert np.array_equal(bursts, np.repeat(spread[::10], 10))
    assert np.array_equal(arrivals("bursts", rate=2, group=1).between(0, 5000), spread)
    huge = arrivals("bursts", rate=2, group=3000).between(0, 5000)
    assert np.array_equal(huge, np.repeat(spread[::3000], 3000))


def test_pareto_flows_begin_as_a_poisson_stream() -> None:
    begins = arrivals("poisson", rate=5).between(0, 2000)
    of_one_packet = arrivals("pareto", flows=5, packets=1e-3, shortest=1, alpha=9)
    assert np.array_equal(of_one_packet.between(0, 2000), begins)
    assert np.isin(begins, arrivals("pareto", flows=5, packets=1, shortest=2).between(0, 2000)).all()


def test_pareto_flows_send_evenly_and_no_shorter_than_the_shortest() -> None:
    """Flows so rare that hardly two overlap: runs of packets a quarter apart, at least ceil(1.1 * 4) in each."""
    found = arrivals("pareto", flows=0.001, packets=4, shortest=1.1, alpha=3).between(0, 200_000)
    runs = np.split(found, np.flatnonzero(~np.isclose(np.diff(found), 0.25)) + 1)
    assert len(runs) == pytest.approx(200, abs=45)
    assert np.mean([len(run) >= 5 for run in runs]) > 0.95


@pytest.mark.parametrize("alpha", [1.5, 2.5])
def test_pareto_flows_last_as_the_law_says(alpha: float) -> None:
    """A flow sends its packet n, counted from 0, if it lasts longer than n: with chance min(1, (2 / n) ** alpha)."""
    found = arrivals("pareto", flows=200, packets=1, shortest=2, alpha=alpha).between(0, 400)
    nth = np.arange(400)
    chance = np.minimum(1, (2 / np.maximum(nth, 1)) ** alpha)
    assert len(found) == pytest.approx(200 * np.sum(chance * (400 - nth)), rel=0.02)


def test_piecewise_follows_its_rates_in_turn() -> None:
    process = arrivals("piecewise", rates=[10, 0, 100])
    counts = np.histogram(process.between(0, 15_000), bins=np.arange(0, 15_001, 5))[0].reshape(-1, 3)
    assert counts.mean(axis=0) == pytest.approx([50, 0, 500], rel=0.02)
    assert counts.var(axis=0) == pytest.approx([50, 0, 500], rel=0.2)
    assert np.all(counts[:, 1] == 0)
    assert process.rate == pytest.approx(110 / 3)


def test_piecewise_at_random_takes_each_rate_as_often() -> None:
    process = arrivals("piecewise", rates=[0, 100], every=1, order="random")
    busy = np.histogram(process.between(0, 3000), bins=np.arange(0, 3001))[0] > 0
    assert busy.mean() == pytest.approx(0.5, abs=0.04)
    assert np.mean(busy[1:] == busy[:-1]) == pytest.approx(0.5, abs=0.04)
    other = arrivals("piecewise", rates=[0, 100], every=1, order="random", seed=2)
    assert not np.array_equal(busy, np.histogram(other.between(0, 3000), bins=np.arange(0, 3001))[0] > 0)


@pytest.mark.parametrize("seed", [0, 1, 2**64, -3])
@pytest.mark.parametrize(
    ("table", "bound"),
    [
        ({"kind": "constant", "every": 0.2}, 0.001),
        ({"kind": "poisson", "rate": 5}, 0.02),
        ({"kind": "bursts", "rate": 5}, 0.02),
        ({"kind": "piecewise", "rates": [1, 10, 4]}, 0.02),
        ({"kind": "piecewise", "rates": [1, 10, 4], "order": "random", "every": 1}, 0.04),
        ({"kind": "diurnal", "rate": 5, "period": 7, "amplitude": 1}, 0.02),
        ({"kind": "flash", "rate": 3, "at": 2, "peak": 9, "rise": 1, "decay": 2, "every": 20}, 0.02),
        ({"kind": "onoff", "rate": 5, "alpha": 1.8, "on": 0.2, "off": 0.3}, 0.05),
        ({"kind": "pareto", "flows": 2, "packets": 3, "shortest": 0.5, "alpha": 3}, 0.03),
        ({"kind": "pareto", "flows": 20, "packets": 3, "shortest": 0.01, "alpha": 2.5}, 0.03),
        ({"kind": "pareto", "flows": 20, "packets": 3, "shortest": 0.5}, 0.1),
    ],
)
def test_mean_rate_is_the_rate_told(table: dict[str, object], bound: float, seed: int) -> None:
    """Over some 50,000 tuples, the first 1000 time units left out: Pareto flows begin with none."""
    process = arrivals_from(table, seed=seed)
    assert len(process.between(1000, 11_000)) / 10_000 == pytest.approx(process.rate, rel=bound)


@pytest.mark.parametrize("kind", ARRIVAL_KINDS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_stream_is_the_same_however_it_is_split(kind: str, data: st.DataObject, traces: Path) -> None:
    """Cuts at any instant and at arrivals, read in any order, from one object and from a fresh one each."""
    table, origin = {"kind": kind, **EXAMPLES[kind]}, 0.0
    if "start" in ARRIVAL_KINDS[kind].keys:
        table["start"] = origin = data.draw(st.sampled_from([0, 0.3, 7.7, 1e6 + 0.1]))
    if "count" in ARRIVAL_KINDS[kind].keys and data.draw(st.booleans()):
        table["count"] = data.draw(st.integers(1, 5000))
    if "clump" in ARRIVAL_KINDS[kind].keys and data.draw(st.booleans()):
        table["clump"] = data.draw(st.sampled_from([0.05, 0.3, 3.0]))
    if "order" in ARRIVAL_KINDS[kind].keys:
        table["order"] = data.draw(st.sampled_from(["cycle", "random"]))
    seed = data.draw(st.integers(0, 50))
    process = arrivals_from(table, seed=seed, folder=traces)
    whole = arrivals_from(table, seed=seed, folder=traces).between(origin, origin + 20)
    assert np.all(whole[1:] >= whole[:-1])

    somewhere = st.floats(origin, origin + 20)
    cut = st.one_of(somewhere, st.sampled_from(whole.tolist())) if len(whole) else somewhere
    cuts = sorted([origin, origin + 20, *data.draw(st.lists(cut, max_size=6))])
    windows = list(itertools.pairwise(cuts))
    parts = {}
    for window in data.draw(st.permutations(windows)):
        first, parts[window] = process.numbered(*window)
        assert first == np.searchsorted(whole, window[0])
        fresh = arrivals_from(table, seed=seed, folder=traces)
        assert np.array_equal(parts[window], fresh.between(*window))
    assert np.array_equal(np.concatenate([parts[window] for window in windows]), whole)


@pytest.mark.parametrize("kind", RANDOM)
def test_stream_is_the_same_across_many_blocks_in_any_order(kind: str) -> None:
    process, cuts = example(kind), np.linspace(0, 700, 41) ** 1.01
    windows = list(itertools.pairwise(cuts))
    shuffled = [windows[index] for index in np.random.default_rng(4).permutation(len(windows))]
    parts = {window: process.between(*window) for window in [*windows, *shuffled]}
    whole = example(kind).between(0, cuts[-1])
    assert len(whole) > 50_000
    assert np.array_equal(np.concatenate([parts[window] for window in windows]), whole)


@pytest.mark.parametrize("kind", ["constant", *RANDOM])
@pytest.mark.parametrize("count", [1, 9, 15, 5003])
def test_count_ends_the_stream_after_exactly_that_many(kind: str, count: int) -> None:
    endless = example(kind).between(0, 1000)
    process = example(kind, count=count)
    assert np.array_equal(process.between(0, math.inf), endless[:count])
    assert np.array_equal(process.between(0, 1e15), endless[:count])
    assert process.end == math.nextafter(endless[count - 1], math.inf)
    last = float(endless[count - 1])
    by_parts = [example(kind, count=count).between(*w) for w in [(0, last), (last, last + 1)]]
    assert np.array_equal(np.concatenate(by_parts), endless[:count])


def test_count_is_exact_within_a_group_and_far_out() -> None:
    assert len(set(instants(arrivals("bursts", rate=1, count=15)))) == 2
    process = arrivals("pareto", flows=100, packets=10, shortest=1, count=200_000)
    assert len(process.between(0, math.inf)) == 200_000
    assert len(process.between(0, 50)) + len(process.between(50, process.end)) == 200_000
    assert arrivals("poisson", rate=1, count=10**7).end == pytest.approx(10**7, rel=0.002)


def test_until_ends_the_stream_before_that_instant() -> None:
    process = arrivals("constant", every=1, until=3)
    assert (instants(process), process.end) == ([0, 1, 2], 3)
    process = arrivals("poisson", rate=10, until=3, count=10**15)
    assert process.end == 3
    assert np.array_equal(process.between(0, 99), arrivals("poisson", rate=10).between(0, 3))
    assert instants(arrivals("poisson", rate=10, until=3, start=3)) == []


@pytest.mark.parametrize("kind", RANDOM)
def test_start_shifts_the_stream(kind: str) -> None:
    shifted = example(kind, start=100)
    assert instants(shifted, 0, 100) == []
    assert np.array_equal(shifted.between(100, 140), 100 + example(kind).between(0, 40))


@pytest.mark.parametrize("kind", RANDOM)
def test_seed_decides_the_stream_and_a_seed_in_the_table_pins_it(kind: str) -> None:
    def stream(given: int, pinned: int | None = None) -> list[float]:
        own = {} if pinned is None else {"seed": pinned}
        return instants(arrivals_from({"kind": kind, **EXAMPLES[kind], **own}, seed=given), 0, 50)

    assert stream(1) == stream(1)
    assert stream(1) != stream(2)
    assert stream(1, pinned=7) == stream(2, pinned=7) == stream(7)


@pytest.mark.parametrize("kind", ARRIVAL_KINDS)
def test_process_can_be_sent_and_its_answers_are_the_readers_own(kind: str, traces: Path) -> None:
    process = example(kind, traces)
    found = process.between(0, 20)
    before = found.copy()
    found += 1000
    assert np.array_equal(process.between(0, 20), before)
    assert np.array_equal(pickle.loads(pickle.dumps(process)).between(0, 20), before)


@pytest.mark.parametrize("kind", EXAMPLES)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(factor=st.floats(0.01, 100), cuts=st.lists(st.floats(0, 20), max_size=4), limit=st.sampled_from([2, 900, None]))
def test_scaled_stream_has_the_same_tuples_sooner(
    kind: str, factor: float, cuts: list[float], limit: int | None, traces: Path
) -> None:
    limits = {"count": limit, "start": 0.7, "until": 15.5} if limit and "count" in ARRIVAL_KINDS[kind].keys else {}
    process = example(kind, traces, **limits)
    whole, scaled = process.between(0, 20), process.scaled(factor)
    assert scaled.rate == process.rate * factor
    parts = [
        scaled.numbered(a, b) for a, b in itertools.pairwise(sorted([0, *(c / factor for c in cuts), 20 / factor]))
    ]
    assert np.array_equal(np.concatenate([found for _, found in parts])[: len(whole)], whole / factor)
    assert [first for first, _ in parts] == np.cumsum([0, *(len(found) for _, found in parts)])[:-1].tolist()
    if math.isfinite(process.end):
        assert np.array_equal(scaled.between(0, math.inf), process.between(0, math.inf) / factor)


@pytest.mark.parametrize("factor", [0, -1, math.inf, math.nan])
def test_scale_is_a_positive_number(factor: float) -> None:
    with pytest.raises(ValueError, match=r"a factor of .*; expected a finite number above 0"):
        arrivals("poisson", rate=1).scaled(factor)


def test_clumps_come_together_at_the_end_of_what_they_were_collected_in() -> None:
    plain, clumped = (example("poisson", count=2000, **more) for more in ({}, {"clump": 0.25}))
    assert instants(clumped) == (np.ceil(plain.between(0, 100) / 0.25) * 0.25).tolist()
    assert len(set(instants(clumped))) < 40
    assert clumped.end > instants(clumped)[-1]


def test_number_beyond_the_end_is_how_many_there_were() -> None:
    for process in (arrivals("poisson", rate=9, count=50), arrivals("constant", every=1, until=50)):
        assert process.numbered(1e6, 1e7)[0] == process.numbered(1e6, 1e6)[0] == 50
    assert arrivals("push").numbered(3, 4)[0] == 0


def test_trace_begins_at_zero_and_goes_as_fast_as_it_is_told(traces: Path) -> None:
    assert instants(arrivals("trace", path="trace.csv", folder=traces)) == [0, 0, 6.5]
    assert instants(arrivals("trace", path="trace.csv", folder=traces, speedup=2, start=1)) == [1, 1, 4.25]
    fast = arrivals("trace", path="trace.csv", folder=traces, rate=20, loop=True, count=7)
    assert instants(fast) == pytest.approx([0, 0, 0.1, 0.15, 0.15, 0.25, 0.3])
    assert len(arrivals("trace", path="trace.csv", folder=traces, rate=20, loop=True).between(0, 1000)) == 20_000
    assert arrivals("trace", path="trace.csv", folder=traces, count=2).end == 5e-324


def test_trace_is_read_from_parquet_and_from_its_parts(tmp_path: Path) -> None:
    instants_of = {"part-00000.parquet": [3.0, 3.5], "part-00001.parquet": [4.0, 9.0]}
    for name, at in instants_of.items():
        (tmp_path / "parts").mkdir(exist_ok=True)
        parquet.write_table(pa.table({"when": at, "size": [1, 2]}), tmp_path / "parts" / name)
    parts = arrivals("trace", path="parts", column="when", folder=tmp_path)
    assert instants(parts) == [0, 0.5, 1, 6]
    one = arrivals("trace", path="parts/part-00001.parquet", column="when", folder=tmp_path)
    assert (instants(one), one.rate, one.carries) == ([0, 5], 0.2, {})


def test_endless_stream_is_not_read_to_its_end() -> None:
    with pytest.raises(ValueError, match="endless stream; expected a finite stop"):
        arrivals("poisson", rate=1).between(0, math.inf)


def test_empty_windows_are_empty() -> None:
    process = arrivals("poisson", rate=100)
    assert instants(process, 5, 5) == instants(process, 6, 5) == instants(process, -3, 0) == []


@pytest.mark.parametrize(
    "process",
    [
        arrivals("poisson", rate=1000),
        arrivals("pareto", flows=10, packets=10, shortest=3.3),
        arrivals("onoff", rate=1000),
        arrivals("diurnal", rate=1000, period=9),
    ],
)
def test_hundred_thousand_tuples_by_windows_of_a_thousand_take_a_moment(process: Arrivals) -> None:
    """Some 0.03 s where this was written: the bound is for work done per tuple, not for a slow machine."""
    began = time.process_time()
    total = sum(len(process.between(start, start + 1)) for start in range(100))
    assert 70_000 < total < 130_000
    assert time.process_time() - began < 0.2


def test_pareto_windows_draw_each_flow_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """2000 windows over some 100 blocks of flows: old blocks are not drawn again."""
    drawn: list[int] = []

    def counted(seed: int, use: int, block: int) -> np.random.Generator:
        drawn.append(block)
        return block_generator(seed, use, block)

    for module in (poisson, flows):
        monkeypatch.setattr(module, "block_generator", counted)
    process = arrivals("pareto", flows=100, packets=1, shortest=1)
    assert sum(len(process.between(start, start + 0.5)) for start in np.arange(0, 1000, 0.5)) > 200_000
    assert len(drawn) < 10 * 100
