"""Reports on recorded runs: every figure against numpy on the same numbers, and what the command writes and says."""

from __future__ import annotations

import re

import numpy as np
import pyarrow.parquet as parquet
import pytest
from recordings import Made, made

import dsms
from dsms.cli import main
from loadgen.report.analysis import Analysis, analyse, recorded
from loadgen.report.comparison import compared, differences

EXACT = 1e-9
PHASED = made(1, [(5.0, "fifo"), (24.7, "chain"), (24.7, "rr"), (51.0, "fifo")])
RUNS = {
    "phased": PHASED,
    "fifo-0": made(2, [(5.0, "fifo")], arrivals=7),
    "chain-0": made(3, [(5.0, "chain")], arrivals=7),
    "fifo-1": made(4, [(5.0, "fifo")], arrivals=8),
    "chain-1": made(5, [(5.0, "chain")], arrivals=8),
}


@pytest.fixture(scope="module")
def found(spark, tmp_path_factory) -> Analysis:
    """Five runs analysed at once."""
    folder = tmp_path_factory.mktemp("recorded")
    for name, run in RUNS.items():
        run.write(folder / name)
    return analyse(spark, recorded([folder]), lambda _: None)


def of(rows, **keys):
    (row,) = [row for row in rows if all(row[key] == value for key, value in keys.items())]
    return row


def memory_between(run: Made, since: float, until: float) -> tuple[float, float]:
    """Mean and maximum: each row holds from the row before it, and the last of an instant is the one that lasts."""
    table = run.tables["memory"]
    starts, ends = np.concatenate(([run.since], table["at"][:-1])), table["at"]
    spans = np.clip(np.minimum(ends, until) - np.maximum(starts, since), 0, None)
    return float((spans * table["held"]).sum() / (until - since)), float(table["held"][spans > 0].max())


def bound_between(run: Made, since: float, until: float) -> tuple[float, float]:
    """The least that had to be held, and how far above it was what was: up to where it is known."""
    table = run.tables["bound"]
    starts, ends = np.concatenate(([run.since], table["at"][:-1])), table["at"]
    spans = np.clip(np.minimum(ends, until) - np.maximum(starts, since), 0, None)
    least = float((spans * table["tuples"]).sum() / (until - since))
    return least, memory_between(run, since, until)[0] - least


def latencies(run: Made, mask: np.ndarray) -> np.ndarray:
    table = run.tables["outputs"]
    return np.repeat((table["at"] - table["arrived"])[mask], table["rows"][mask])


def stale_between(run: Made, query: str, since: float, until: float) -> float:
    """The length of a union of intervals, by looking at every stretch between two ends."""
    table = run.tables["outputs"]
    mine = table["query"] == query
    begins, ends = np.clip(table["arrived"][mine], since, until), np.clip(table["at"][mine], since, until)
    edges = np.unique(np.concatenate((begins, ends, [since, until])))
    middles = (edges[:-1] + edges[1:]) / 2
    covered = ((begins[None, :] <= middles[:, None]) & (middles[:, None] < ends[None, :])).any(axis=1)
    return float(np.diff(edges)[covered].sum())


def assert_figures(row, run: Made, since: float, until: float, *, last: bool) -> None:
    """What numpy makes of the same stretch."""
    at, rows = run.tables["outputs"]["at"], run.tables["outputs"]["rows"]
    inside = (at >= since) & ((at < until) | last)
    values = latencies(run, inside)
    mean, most = memory_between(run, since, until)
    came = run.tables["arrivals"]
    assert row["memory_mean"] == pytest.approx(mean, rel=EXACT)
    assert row["memory_max"] == most
    assert row["results"] == rows[inside].sum()
    assert row["arrived"] == came["rows"][(came["at"] >= since) & ((came["at"] < until) | last)].sum()
    assert row["output_rate"] == pytest.approx(rows[inside].sum() / (until - since), rel=EXACT)
    assert row["latency_mean"] == pytest.approx(values.mean(), rel=EXACT)
    assert row["latency_max"] == values.max()
    for name, share in (("p50", 50), ("p90", 90), ("p99", 99)):
        assert row[f"latency_{name}"] == pytest.approx(np.percentile(values, share), rel=EXACT)
    stale = np.mean([stale_between(run, query, since, until) / (until - since) for query in run.queries])
    assert row["staleness"] == pytest.approx(stale, rel=EXACT)


@pytest.mark.spark
@pytest.mark.parametrize("name", RUNS)
def test_a_whole_run_has_the_figures_that_numpy_finds(name, found):
    run = RUNS[name]
    row = of(found.runs, run=name)
    assert_figures(row, run, run.since, run.until, last=True)
    assert (row["bytes_max"], row["lag_mean"], row["complete"]) == (None, 0.25, True)


@pytest.mark.spark
def test_every_phase_and_every_window_has_too_and_a_phase_that_lasted_no_time_is_none(found):
    phases = [row for row in found.phases if row["run"] == "phased"]
    assert [(row["policy"], row["since"]) for row in phases] == [("fifo", 5.0), ("rr", 24.7), ("fifo", 51.0)]
    for row in phases:
        assert_figures(row, PHASED, row["since"], row["until"], last=row["until"] == PHASED.until)
    windows = [row for row in found.windows if row["run"] == "phased" and row["results"]]
    assert len(windows) > 100
    for row in windows[::7]:
        assert_figures(row, PHASED, row["since"], row["until"], last=row["until"] == PHASED.until)


@pytest.mark.spark
def test_what_had_to_be_held_is_beside_what_was_where_it_is_recorded(found):
    for row in [row for row in found.phases if row["run"] == "phased"][:2]:
        least, gap = bound_between(PHASED, row["since"], row["until"])
        assert (row["bound_mean"], row["gap_mean"]) == pytest.approx((least, gap), rel=EXACT)
    once = of(compared(found), policy="rr")
    assert once["gap_mean"] == of(found.phases, policy="rr")["gap_mean"]
    assert 0 < once["gap_mean_half"] < once["gap_mean"]
    assert of(found.runs, run="fifo-0")["gap_mean"] is None


@pytest.mark.spark
def test_only_phases_that_began_for_a_reason_are_compared_if_there_are_any(found):
    found.phases[0]["reason"], before = "its turn", found.phases[0]["reason"]
    try:
        (only,) = compared(found, "its turn")
    finally:
        found.phases[0]["reason"] = before
    assert (only["policy"], only["samples"]) == (found.phases[0]["policy"], 1)
    assert compared(found, "none such") == compared(found)


@pytest.mark.spark
def test_every_query_has_its_own_figures_and_one_without_results_has_none(found):
    for query in ("a", "b"):
        row = of(found.queries, run="phased", query=query)
        values = latencies(PHASED, PHASED.tables["outputs"]["query"] == query)
        assert (row["results"], row["latency_max"]) == (len(values), values.max())
        assert row["latency_mean"] == pytest.approx(values.mean(), rel=EXACT)
        assert row["latency_p99"] == pytest.approx(np.percentile(values, 99), rel=EXACT)
        assert row["staleness"] == pytest.approx(stale_between(PHASED, query, 5.0, 65.0) / 60, rel=EXACT)
    none = of(found.queries, run="phased", query="none")
    assert (none["results"], none["staleness"], none["latency_p99"]) == (0, 0.0, None)


@pytest.mark.spark
def test_runs_and_phases_under_a_policy_are_its_samples(found):
    rows = {row["policy"]: row for row in compared(found)}
    means = [row["memory_mean"] for row in found.phases if row["policy"] == "fifo"]
    assert (rows["fifo"]["samples"], len(means)) == (4, 4)
    assert rows["fifo"]["memory_mean"] == pytest.approx(np.mean(means))
    assert rows["fifo"]["memory_mean_half"] == pytest.approx(3.1824 * np.std(means, ddof=1) / 2, rel=1e-4)
    once = rows["rr"]
    assert (once["samples"], once["by"], once["latency_p99_half"]) == (1, "batch means", None)
    assert once["memory_mean"] == of(found.phases, policy="rr")["memory_mean"]
    assert 0 < once["memory_mean_half"] < once["memory_mean"]


@pytest.mark.spark
def test_runs_with_the_same_arrivals_are_compared_in_pairs(found):
    rows = {row["measure"]: row for row in differences(found)}
    whole = {row["run"]: row["latency_mean"] for row in found.runs}
    first = compared(found)[0]["policy"]
    pairs = [whole[f"fifo-{each}"] - whole[f"chain-{each}"] for each in (0, 1)]
    assert (rows["latency_mean"]["against"], rows["latency_mean"]["pairs"], first) == ("chain", 2, "chain")
    assert rows["latency_mean"]["difference"] == pytest.approx(np.mean(pairs))
    assert rows["latency_mean"]["half"] == pytest.approx(12.7062 * abs(pairs[0] - pairs[1]) / 2, rel=1e-4)


@pytest.mark.spark
def test_a_recorded_simulation_is_reported_as_it_was_measured(spark, plans, tmp_path, capsys):
    recorded_to = tmp_path / "recorded"
    runs = {
        policy: dsms.simulate(plans / "queries.toml", policy, until=60, record=recorded_to)
        for policy in ("fifo", "fas-mcq:beta=0.5")
    }
    assert main(["report", str(recorded_to)]) == 0
    out = capsys.readouterr().out
    rows = parquet.read_table(recorded_to / "report" / "aggregates" / "runs.parquet").to_pylist()
    for policy, run in runs.items():
        row = of(rows, policy=policy)
        assert row["memory_mean"] == pytest.approx(run.memory.tuples.mean, rel=EXACT)
        assert row["memory_max"] == run.memory.tuples.max
        assert row["bytes_mean"] == pytest.approx(run.memory.bytes.mean, rel=EXACT)
        assert row["latency_p99"] == pytest.approx(run.latency.p99, rel=EXACT)
        assert row["staleness"] == pytest.approx(run.staleness.mean, rel=EXACT)
        assert (row["arrived"], row["results"]) == (run.admitted, run.outputs)
        assert policy in out
    assert f"2 runs: {recorded_to / 'report' / 'report.html'}" in out
    page = (recorded_to / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == 5  # the comparison, both together, one each, burstiness
    assert not re.search(r'(src|href)="(?!#)|url\((?!#)|@import', page)  # nothing comes from elsewhere
    assert all(text in page for text in ("Policies compared", "Differences", "fas-mcq:beta=0.5", "Hurst"))
    assert {path.stem for path in (recorded_to / "report" / "aggregates").iterdir()} == {
        "runs", "phases", "queries", "windows", "burstiness", "policies", "differences",
    }  # fmt: skip


@pytest.mark.spark
def test_a_run_that_was_not_closed_is_reported_up_to_its_last_row_and_one_without_results_too(spark, tmp_path, capsys):
    torn = Made(
        5.0, 65.0, ["a"], {name: RUNS["fifo-0"].tables[name] for name in ("arrivals", "memory", "phases")}, False
    )
    torn.write(tmp_path / "torn")
    assert main(["report", str(tmp_path / "torn"), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert "torn was not closed in good order: shown up to 65" in said.err
    (row,) = parquet.read_table(tmp_path / "out" / "aggregates" / "runs.parquet").to_pylist()
    assert (row["until"], row["results"], row["latency_p99"], row["staleness"]) == (65.0, 0, None, 0.0)
    assert "Not closed in good order" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.spark
def test_a_damaged_part_is_named(spark, tmp_path, capsys):
    RUNS["fifo-0"].write(tmp_path / "run")
    part = tmp_path / "run" / "outputs" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:100])
    assert main(["report", str(tmp_path / "run")]) == 2
    assert f"{part} is damaged" in capsys.readouterr().err


def test_a_folder_without_a_recording_is_refused_before_spark_is_started(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert f"no recording in {str(tmp_path)!r}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
