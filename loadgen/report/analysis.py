"""Analyses recorded runs: Spark sums the recordings by cell, and numpy makes the tables of figures from the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from dsms.errors import DsmsError
from dsms.recording import Recording, read_recordings
from loadgen.report import flow, memory, results
from loadgen.report.flow import BIN_COUNT, Burstiness, measure_burstiness
from loadgen.report.percentiles import QUANTILES, Percentiles, compute_percentiles
from loadgen.report.periods import RecordedRun, assign_cells, read_phases
from loadgen.report.tables import Tables
from loadgen.report.tally import Figures, RunCells

Columns = dict[str, list[Any]]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Analysis:
    """The tables of figures, each a list of rows with the same keys."""

    runs: list[Figures]
    phases: list[Figures]
    queries: list[Figures]
    windows: list[Figures]
    flows: dict[tuple[int, str], Burstiness]  # by run and flow
    tallies: list[RunCells]


def read_runs(folders: Iterable[str | Path]) -> list[RecordedRun]:
    """Find the runs in these folders, and give each a unique label."""
    recordings = {recording.folder.resolve(): recording for folder in folders for recording in read_recordings(folder)}
    names = Counter(folder.name for folder in recordings)
    labels = [
        folder.name if names[folder.name] == 1 else f"{folder.parent.name}/{folder.name}" for folder in recordings
    ]
    if len(set(labels)) < len(labels):
        labels = [str(folder) for folder in recordings]
    labelled = zip(labels, recordings.values(), strict=True)
    return [_read_run(place, label, recording) for place, (label, recording) in enumerate(labelled)]


def _read_run(place: int, label: str, recording: Recording) -> RecordedRun:
    until = recording.about.get("until")
    return RecordedRun(place, label, recording, recording.since, recording.since if until is None else float(until), [])


def analyse(spark: SparkSession, runs: list[RecordedRun], progress: Progress) -> Analysis:
    """Compute all tables of figures but the comparison of policies."""
    tables = Tables(spark, runs)
    progress("reading the runs")
    arrivals = _by_run(flow.compute_fingerprints(tables))
    _set_ends(tables)
    for run in runs:
        run.phases = read_phases(run.recording, run.until)
        row = arrivals.get(run.place)
        run.arrivals = f"{row['print']}/{row['rows']}" if row else f"none/{run.place}"
    assign_cells(runs)
    tallies = [RunCells(run) for run in runs]
    progress("adding up memory")
    _fill_cells(tallies, _collect_columns(memory.sum_memory(tables)), ("held", "most", "held_bytes", "most_bytes"))
    _fill_cells(tallies, _collect_columns(memory.sum_bound(tables)), ("bound",))
    _fill_cells(tallies, _collect_columns(flow.count_arrivals(tables)), ("arrived",))
    progress("adding up results")
    outputs, stale = _collect_columns(results.sum_results(tables)), _collect_columns(results.sum_staleness(tables))
    _fill_cells(tallies, outputs, ("rows", "latency", "longest"))
    _fill_cells(tallies, stale, ("stale",))
    progress("sorting latencies")
    ranks = compute_percentiles(tables)
    progress("counting arrivals")
    flows = _flows(runs, _collect_columns(flow.count_by_bin(tables)))
    lag = {place: row["lag"] for place, row in arrivals.items()}
    return Analysis(
        [_run_row(tally, ranks, lag.get(tally.run.place)) for tally in tallies],
        [row for tally in tallies for row in _phase_rows(tally, ranks)],
        [row for run in runs for row in _query_rows(run, outputs, stale, ranks)],
        [row for tally in tallies for row in _window_rows(tally, ranks)],
        flows,
        tallies,
    )


def _set_ends(tables: Tables) -> None:
    """Set the end of each incomplete recording to the instant of its last row."""
    if incomplete := [run for run in tables.runs if run.recording.about.get("until") is None]:
        last = [tables.table(name).select("run", "at") for name in ("memory", "outputs", "arrivals")]
        ends = _by_run(last[0].unionAll(last[1]).unionAll(last[2]).groupBy("run").agg(sql.max("at").alias("at")))
        for run in incomplete:
            if run.place not in ends:
                raise DsmsError(f"{run.recording.folder}: this recording has no rows yet")
            run.until = max(ends[run.place]["at"], run.since)


def _collect_columns(frame: DataFrame) -> Columns:
    """Collect Spark's sums by Arrow: transferring Python rows would take longer than computing them."""
    columns: Columns = frame.toArrow().to_pydict()
    return columns


def _by_run(frame: DataFrame) -> dict[int, dict[str, Any]]:
    return {row["run"]: row.asDict() for row in frame.collect()}


def _fill_cells(tallies: Sequence[RunCells], columns: Columns, names: Sequence[str]) -> None:
    """Put each run's sums into its cells."""
    run, cell = (np.array([-1 if each is None else each for each in columns[key]], np.int64) for key in ("run", "cell"))
    for tally in tallies:
        own = np.flatnonzero((run == tally.run.place) & (cell >= 0))
        for name in names:
            tally.put(name, cell[own].tolist(), [columns[name][place] for place in own])


def _select_percentiles(ranks: Percentiles, run: int, key: str = "run") -> Figures:
    percentiles = ranks.get((run, key), {})
    return {f"latency_{name}": percentiles.get(name) for name in QUANTILES}


def _flows(runs: Sequence[RecordedRun], columns: Columns) -> dict[tuple[int, str], Burstiness]:
    counts = {(run.place, name): np.zeros(BIN_COUNT) for run in runs for name in ("arrivals", "outputs")}
    for run, name, place, rows in zip(*(columns[key] for key in ("run", "flow", "bin", "rows")), strict=True):
        counts[run, name][place] = rows
    return {(run, name): measure_burstiness(bins, runs[run].duration) for (run, name), bins in counts.items()}


def _run_row(tally: RunCells, ranks: Percentiles, lag: float | None) -> Figures:
    run, about = tally.run, tally.run.recording.about
    policies = list(dict.fromkeys(phase.policy for phase in run.phases))
    row = {"run": run.label, "policy": ", ".join(policies), "phases": len(run.phases), "runtime": about["runtime"]}
    row |= {"clock": about["clock"], "plan": about["plan"], "complete": run.recording.complete}
    row |= {"since": run.since, "until": run.until, "arrivals": run.arrivals, "lag_mean": lag}
    return row | tally.whole() | _select_percentiles(ranks, run.place)


def _phase_rows(tally: RunCells, ranks: Percentiles) -> Iterable[Figures]:
    run = tally.run
    for place, phase in enumerate(run.phases):
        row = {"run": run.label, "phase": place, **phase._asdict()}
        yield (
            row
            | tally.over(np.flatnonzero(tally.phase == place))
            | _select_percentiles(ranks, run.place, f"phase:{place}")
        )


def _window_rows(tally: RunCells, ranks: Percentiles) -> Iterable[Figures]:
    run = tally.run
    for window in range(run.windows):
        cells = np.flatnonzero(tally.window == window)
        row = {
            "run": run.label,
            "window": window,
            "since": run.cells[cells[0]].since,
            "until": run.cells[cells[-1]].until,
        }
        row["policy"] = run.phases[run.cells[cells[0]].phase].policy
        yield row | tally.over(cells) | _select_percentiles(ranks, run.place, f"window:{window}")


def _query_rows(run: RecordedRun, outputs: Columns, stale: Columns, ranks: Percentiles) -> Iterable[Figures]:
    """A row for every query of the plan, also without results."""
    sums = {name: _select_by_query(outputs, run.place, name) for name in ("rows", "latency", "longest")}
    stale_times = _select_by_query(stale, run.place, "stale")
    weights = {q["name"]: q["weight"] for q in run.recording.about["queries"]}
    for query in run.queries:
        rows = sums["rows"].get(query, 0)
        yield {
            "run": run.label,
            "query": query,
            "weight": weights[query],
            "results": rows,
            "latency_mean": sums["latency"][query] / rows if rows else None,
            "latency_max": sums["longest"].get(query),
            "staleness": stale_times.get(query, 0.0) / run.duration if run.duration else None,
            "output_rate": rows / run.duration if run.duration else None,
        } | _select_percentiles(ranks, run.place, f"query:{query}")


def _select_by_query(columns: Columns, run: int, name: str) -> dict[str, Any]:
    rows = zip(columns["run"], columns["query"], columns[name], strict=True)
    return {query: value for of, query, value in rows if of == run and query is not None}
