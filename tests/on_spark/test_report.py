"""Reports on recorded runs: every figure compared with numpy on the same numbers, and the command's output."""

from __future__ import annotations

import re

import numpy as np
import pyarrow.parquet as parquet
import pytest
from support.load.recordings import FakeRecording, make_recording

import dsms
from dsms.cli import main
from loadgen.report.analysis import Analysis, analyse, read_runs
from loadgen.report.comparison import compare_differences, compare_policies

EXACT = 1e-9
PHASED = make_recording(1, [(5.0, "fifo"), (24.7, "chain"), (24.7, "rr"), (51.0, "fifo")])
RUNS = {
    "phased": PHASED,
    "fifo-0": make_recording(2, [(5.0, "fifo")], arrivals=7),
    "chain-0": make_recording(3, [(5.0, "chain")], arrivals=7),
    "fifo-1": make_recording(4, [(5.0, "fifo")], arrivals=8),
    "chain-1": make_recording(5, [(5.0, "chain")], arrivals=8),
}


@pytest.fixture(scope="module")
def analysis(spark, tmp_path_factory) -> Analysis:
    """The analysis of five runs at once."""
    folder = tmp_path_factory.mktemp("recorded")
    for name, run in RUNS.items():
        run.write(folder / name)
    return analyse(spark, read_runs([folder]), lambda _: None)


def of(rows, **keys):
    (row,) = [row for row in rows if all(row[key] == value for key, value in keys.items())]
    return row


def memory_between(run: FakeRecording, since: float, until: float) -> tuple[float, float]:
    """Mean and maximum: each row holds since the row before it; of several rows at one instant, the last counts."""
    table = run.tables["memory"]
    starts, ends = np.concatenate(([run.since], table["at"][:-1])), table["at"]
    spans = np.clip(np.minimum(ends, until) - np.maximum(starts, since), 0, None)
    return float((spans * table["held"]).sum() / (until - since)), float(table["held"][spans > 0].max())


def bound_between(run: FakeRecording, since: float, until: float) -> tuple[float, float]:
    """The mean lower bound of memory, and the gap of the memory held above it."""
    table = run.tables["bound"]
    starts, ends = np.concatenate(([run.since], table["at"][:-1])), table["at"]
    spans = np.clip(np.minimum(ends, until) - np.maximum(starts, since), 0, None)
    least = float((spans * table["tuples"]).sum() / (until - since))
    return least, memory_between(run, since, until)[0] - least


def latencies(run: FakeRecording, mask: np.ndarray) -> np.ndarray:
    table = run.tables["outputs"]
    return np.repeat((table["at"] - table["arrived"])[mask], table["rows"][mask])


def stale_between(run: FakeRecording, query: str, since: float, until: float) -> float:
    """The length of a union of intervals, by testing every stretch between two ends."""
    table = run.tables["outputs"]
    of_query = table["query"] == query
    begins, ends = np.clip(table["arrived"][of_query], since, until), np.clip(table["at"][of_query], since, until)
    edges = np.unique(np.concatenate((begins, ends, [since, until])))
    middles = (edges[:-1] + edges[1:]) / 2
    covered = ((begins[None, :] <= middles[:, None]) & (middles[:, None] < ends[None, :])).any(axis=1)
    return float(np.diff(edges)[covered].sum())


def assert_figures(row, run: FakeRecording, since: float, until: float, *, last: bool) -> None:
    """Compare a row of figures with numpy's on the same period."""
    at, rows = run.tables["outputs"]["at"], run.tables["outputs"]["rows"]
    inside = (at >= since) & ((at < until) | last)
    values = latencies(run, inside)
    mean, most = memory_between(run, since, until)
    arrivals = run.tables["arrivals"]
    assert row["memory_mean"] == pytest.approx(mean, rel=EXACT)
    assert row["memory_max"] == most
    assert row["results"] == rows[inside].sum()
    assert row["arrived"] == arrivals["rows"][(arrivals["at"] >= since) & ((arrivals["at"] < until) | last)].sum()
    assert row["output_rate"] == pytest.approx(rows[inside].sum() / (until - since), rel=EXACT)
    assert row["latency_mean"] == pytest.approx(values.mean(), rel=EXACT)
    assert row["latency_max"] == values.max()
    for name, share in (("p50", 50), ("p90", 90), ("p99", 99)):
        assert row[f"latency_{name}"] == pytest.approx(np.percentile(values, share), rel=EXACT)
    stale = np.mean([stale_between(run, query, since, until) / (until - since) for query in run.queries])
    assert row["staleness"] == pytest.approx(stale, rel=EXACT)


@pytest.mark.spark
@pytest.mark.parametrize("name", RUNS)
def test_the_figures_of_a_whole_run_equal_numpy_s(name, analysis):
    run = RUNS[name]
    row = of(analysis.runs, run=name)
    assert_figures(row, run, run.since, run.until, last=True)
    assert (row["bytes_max"], row["lag_mean"], row["complete"]) == (None, 0.25, True)


@pytest.mark.spark
def test_the_figures_of_phases_and_windows_equal_numpy_s_and_a_phase_of_length_0_is_dropped(analysis):
    phases = [row for row in analysis.phases if row["run"] == "phased"]
    assert [(row["policy"], row["since"]) for row in phases] == [("fifo", 5.0), ("rr", 24.7), ("fifo", 51.0)]
    for row in phases:
        assert_figures(row, PHASED, row["since"], row["until"], last=row["until"] == PHASED.until)
    windows = [row for row in analysis.windows if row["run"] == "phased" and row["results"]]
    assert len(windows) > 100
    for row in windows[::7]:
        assert_figures(row, PHASED, row["since"], row["until"], last=row["until"] == PHASED.until)


@pytest.mark.spark
def test_the_gap_to_the_lower_bound_of_memory_is_reported_where_the_bound_is_recorded(analysis):
    for row in [row for row in analysis.phases if row["run"] == "phased"][:2]:
        least, gap = bound_between(PHASED, row["since"], row["until"])
        assert (row["bound_mean"], row["gap_mean"]) == pytest.approx((least, gap), rel=EXACT)
    once = of(compare_policies(analysis), policy="rr")
    assert once["gap_mean"] == of(analysis.phases, policy="rr")["gap_mean"]
    assert 0 < once["gap_mean_half"] < once["gap_mean"]
    assert of(analysis.runs, run="fifo-0")["gap_mean"] is None


@pytest.mark.spark
def test_only_phases_that_began_for_a_reason_are_compared_if_there_are_any(analysis):
    analysis.phases[0]["reason"], before = "its turn", analysis.phases[0]["reason"]
    try:
        (only,) = compare_policies(analysis, "its turn")
    finally:
        analysis.phases[0]["reason"] = before
    assert (only["policy"], only["samples"]) == (analysis.phases[0]["policy"], 1)
    assert compare_policies(analysis, "none such") == compare_policies(analysis)


@pytest.mark.spark
def test_every_query_has_its_own_figures_and_one_without_results_has_none(analysis):
    for query in ("a", "b"):
        row = of(analysis.queries, run="phased", query=query)
        values = latencies(PHASED, PHASED.tables["outputs"]["query"] == query)
        assert (row["results"], row["latency_max"]) == (len(values), values.max())
        assert row["latency_mean"] == pytest.approx(values.mean(), rel=EXACT)
        assert row["latency_p99"] == pytest.approx(np.percentile(values, 99), rel=EXACT)
        assert row["staleness"] == pytest.approx(stale_between(PHASED, query, 5.0, 65.0) / 60, rel=EXACT)
    none = of(analysis.queries, run="phased", query="none")
    assert (none["results"], none["staleness"], none["latency_p99"]) == (0, 0.0, None)


@pytest.mark.spark
def test_runs_and_phases_under_a_policy_are_its_samples(analysis):
    rows = {row["policy"]: row for row in compare_policies(analysis)}
    means = [row["memory_mean"] for row in analysis.phases if row["policy"] == "fifo"]
    assert (rows["fifo"]["samples"], len(means)) == (4, 4)
    assert rows["fifo"]["memory_mean"] == pytest.approx(np.mean(means))
    assert rows["fifo"]["memory_mean_half"] == pytest.approx(3.1824 * np.std(means, ddof=1) / 2, rel=1e-4)
    once = rows["rr"]
    assert (once["samples"], once["by"], once["latency_p99_half"]) == (1, "batch means", None)
    assert once["memory_mean"] == of(analysis.phases, policy="rr")["memory_mean"]
    assert 0 < once["memory_mean_half"] < once["memory_mean"]


@pytest.mark.spark
def test_runs_with_the_same_arrivals_are_compared_in_pairs(analysis):
    rows = {row["measure"]: row for row in compare_differences(analysis)}
    whole = {row["run"]: row["latency_mean"] for row in analysis.runs}
    first = compare_policies(analysis)[0]["policy"]
    pairs = [whole[f"fifo-{each}"] - whole[f"chain-{each}"] for each in (0, 1)]
    assert (rows["latency_mean"]["against"], rows["latency_mean"]["pairs"], first) == ("chain", 2, "chain")
    assert rows["latency_mean"]["difference"] == pytest.approx(np.mean(pairs))
    assert rows["latency_mean"]["half"] == pytest.approx(12.7062 * abs(pairs[0] - pairs[1]) / 2, rel=1e-4)


@pytest.mark.spark
def test_the_report_on_a_recorded_simulation_equals_its_measures(spark, plans, tmp_path, capsys):
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
    assert not re.search(r'(src|href)="(?!#)|url\((?!#)|@import', page)  # no external resources
    assert all(text in page for text in ("Policies compared", "Differences", "fas-mcq:beta=0.5", "Hurst"))
    assert {path.stem for path in (recorded_to / "report" / "aggregates").iterdir()} == {
        "runs", "phases", "queries", "windows", "burstiness", "policies", "differences",
    }  # fmt: skip


@pytest.mark.spark
def test_the_page_says_what_was_predicted_what_happened_and_what_each_cause_adds(spark, plans, tmp_path):
    run = dsms.simulate(plans / "path.toml", "fifo", until=300, turn_cost=0.5, record=tmp_path / "recorded")
    assert main(["report", str(tmp_path / "recorded"), "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    table = page.partition("<h2>Predicted and happened</h2>")[2].partition("</table>")[0]
    lines = [re.findall(r"<td[^>]*>([^<]*)</td>", line) for line in table.split("<tr>")[2:]]
    titles, latencies = zip(*((line[0], float(line[2].replace(",", ""))) for line in lines), strict=True)
    assert titles == ("predicted", "+ dead time", "not explained", "happened")
    assert latencies[-1] == pytest.approx(run.latency.mean, rel=1e-3)
    assert sum(latencies[:-1]) == pytest.approx(latencies[-1], rel=2e-3)
    assert latencies[1] > 0


def test_an_incomplete_run_without_results_is_reported_up_to_its_last_row(spark, tmp_path, capsys):
    torn = FakeRecording(
        5.0, 65.0, ["a"], {name: RUNS["fifo-0"].tables[name] for name in ("arrivals", "memory", "phases")}, False
    )
    torn.write(tmp_path / "torn")
    assert main(["report", str(tmp_path / "torn"), "--out", str(tmp_path / "out")]) == 0
    assert "recording torn is incomplete: shown up to 65" in capsys.readouterr().err
    (row,) = parquet.read_table(tmp_path / "out" / "aggregates" / "runs.parquet").to_pylist()
    assert (row["until"], row["results"], row["latency_p99"], row["staleness"]) == (65.0, 0, None, 0.0)
    assert "Incomplete recordings, shown up to their last row: torn" in (tmp_path / "out" / "report.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.spark
def test_a_damaged_part_is_named(spark, tmp_path, capsys):
    RUNS["fifo-0"].write(tmp_path / "run")
    part = tmp_path / "run" / "outputs" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:100])
    assert main(["report", str(tmp_path / "run")]) == 2
    assert f"{part} is damaged" in capsys.readouterr().err


def test_a_folder_without_a_recording_is_refused_before_spark_starts(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert f"no recording in {str(tmp_path)!r}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
