"""From recorded runs to tables of figures: Spark adds up by cell, the rest is done with what comes of that."""

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
from dsms.recording import Recording, read
from loadgen.report import flow, memory, results
from loadgen.report.flow import BINS, Burstiness, burstiness
from loadgen.report.percentiles import QUANTILES, Percentiles, percentiles
from loadgen.report.periods import Run, cut, phases_of
from loadgen.report.tables import Tables
from loadgen.report.tally import Figures, Tally

Columns = dict[str, list[Any]]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Analysis:
    """Every table a list of rows; rows of one run, phase, query or window have the same keys."""

    runs: list[Figures]
    phases: list[Figures]
    queries: list[Figures]
    windows: list[Figures]
    flows: dict[tuple[int, str], Burstiness]  # by run and flow
    tallies: list[Tally]


def recorded(folders: Iterable[str | Path]) -> list[Run]:
    """The runs in these folders, each under a name that is its own."""
    found = {recording.folder.resolve(): recording for folder in folders for recording in read(folder)}
    names = Counter(folder.name for folder in found)
    labels = [folder.name if names[folder.name] == 1 else f"{folder.parent.name}/{folder.name}" for folder in found]
    if len(set(labels)) < len(labels):
        labels = [str(folder) for folder in found]
    return [_run(place, label, one) for place, (label, one) in enumerate(zip(labels, found.values(), strict=True))]


def _run(place: int, label: str, recording: Recording) -> Run:
    until = recording.about.get("until")
    return Run(place, label, recording, recording.since, recording.since if until is None else float(until), [])


def analyse(spark: SparkSession, runs: list[Run], say: Say) -> Analysis:
    """All there is to say of these runs but how their policies compare."""
    tables = Tables(spark, runs)
    say("reading the runs")
    came = _by_run(flow.fingerprints(tables))
    _set_ends(tables)
    for run in runs:
        run.phases = phases_of(run.recording, run.until)
        mine = came.get(run.place)
        run.arrivals = f"{mine['print']}/{mine['rows']}" if mine else f"none/{run.place}"
    cut(runs)
    tallies = [Tally(run) for run in runs]
    say("adding up memory")
    _put(tallies, _columns(memory.memory(tables)), ("held", "most", "held_bytes", "most_bytes"))
    _put(tallies, _columns(memory.bound(tables)), ("bound",))
    _put(tallies, _columns(flow.arrived(tables)), ("arrived",))
    say("adding up results")
    gone, stale = _columns(results.results(tables)), _columns(results.staleness(tables))
    _put(tallies, gone, ("rows", "latency", "longest"))
    _put(tallies, stale, ("stale",))
    say("sorting latencies")
    ranks = percentiles(tables)
    say("counting arrivals")
    flows = _flows(runs, _columns(flow.counts(tables)))
    lag = {place: row["lag"] for place, row in came.items()}
    return Analysis(
        [_of_run(tally, ranks, lag.get(tally.run.place)) for tally in tallies],
        [row for tally in tallies for row in _of_phases(tally, ranks)],
        [row for run in runs for row in _of_queries(run, gone, stale, ranks)],
        [row for tally in tallies for row in _of_windows(tally, ranks)],
        flows,
        tallies,
    )


def _set_ends(tables: Tables) -> None:
    """A run that was not closed ends with the last that is recorded of it."""
    if open_ones := [run for run in tables.runs if run.recording.about.get("until") is None]:
        last = [tables.table(name).select("run", "at") for name in ("memory", "outputs", "arrivals")]
        ends = _by_run(last[0].unionAll(last[1]).unionAll(last[2]).groupBy("run").agg(sql.max("at").alias("at")))
        for run in open_ones:
            if run.place not in ends:
                raise DsmsError(f"{run.recording.folder}: nothing is recorded of this run yet")
            run.until = max(ends[run.place]["at"], run.since)


def _columns(frame: DataFrame) -> Columns:
    """What Spark has added up; by Arrow, as rows would take longer to come than to be worked out."""
    columns: Columns = frame.toArrow().to_pydict()
    return columns


def _by_run(frame: DataFrame) -> dict[int, dict[str, Any]]:
    return {row["run"]: row.asDict() for row in frame.collect()}


def _put(tallies: Sequence[Tally], columns: Columns, names: Sequence[str]) -> None:
    """Into each run's tally what is its own, by cell."""
    run, cell = (np.array([-1 if each is None else each for each in columns[key]], np.int64) for key in ("run", "cell"))
    for tally in tallies:
        mine = np.flatnonzero((run == tally.run.place) & (cell >= 0))
        for name in names:
            tally.put(name, cell[mine].tolist(), [columns[name][place] for place in mine])


def _ranked(ranks: Percentiles, run: int, key: str = "run") -> Figures:
    mine = ranks.get((run, key), {})
    return {f"latency_{name}": mine.get(name) for name in QUANTILES}


def _flows(runs: Sequence[Run], columns: Columns) -> dict[tuple[int, str], Burstiness]:
    counted = {(run.place, name): np.zeros(BINS) for run in runs for name in ("arrivals", "outputs")}
    for run, name, place, rows in zip(*(columns[key] for key in ("run", "flow", "bin", "rows")), strict=True):
        counted[run, name][place] = rows
    return {(run, name): burstiness(bins, runs[run].duration) for (run, name), bins in counted.items()}


def _of_run(tally: Tally, ranks: Percentiles, lag: float | None) -> Figures:
    run, about = tally.run, tally.run.recording.about
    policies = list(dict.fromkeys(phase.policy for phase in run.phases))
    told = {"run": run.label, "policy": ", ".join(policies), "phases": len(run.phases), "runtime": about["runtime"]}
    told |= {"clock": about["clock"], "plan": about["plan"], "complete": run.recording.complete}
    told |= {"since": run.since, "until": run.until, "arrivals": run.arrivals, "lag_mean": lag}
    return told | tally.whole() | _ranked(ranks, run.place)


def _of_phases(tally: Tally, ranks: Percentiles) -> Iterable[Figures]:
    run = tally.run
    for place, phase in enumerate(run.phases):
        told = {"run": run.label, "phase": place, **phase._asdict()}
        yield told | tally.over(np.flatnonzero(tally.phase == place)) | _ranked(ranks, run.place, f"phase:{place}")


def _of_windows(tally: Tally, ranks: Percentiles) -> Iterable[Figures]:
    run = tally.run
    for window in range(run.windows):
        mine = np.flatnonzero(tally.window == window)
        told = {
            "run": run.label,
            "window": window,
            "since": run.cells[mine[0]].since,
            "until": run.cells[mine[-1]].until,
        }
        told["policy"] = run.phases[run.cells[mine[0]].phase].policy
        yield told | tally.over(mine) | _ranked(ranks, run.place, f"window:{window}")


def _of_queries(run: Run, gone: Columns, stale: Columns, ranks: Percentiles) -> Iterable[Figures]:
    """A row for every query of the plan, those without results too."""
    mine = {name: _named(gone, run.place, name) for name in ("rows", "latency", "longest")}
    behind, weights = (
        _named(stale, run.place, "stale"),
        {q["name"]: q["weight"] for q in run.recording.about["queries"]},
    )
    for query in run.queries:
        rows = mine["rows"].get(query, 0)
        yield {
            "run": run.label,
            "query": query,
            "weight": weights[query],
            "results": rows,
            "latency_mean": mine["latency"][query] / rows if rows else None,
            "latency_max": mine["longest"].get(query),
            "staleness": behind.get(query, 0.0) / run.duration if run.duration else None,
            "output_rate": rows / run.duration if run.duration else None,
        } | _ranked(ranks, run.place, f"query:{query}")


def _named(columns: Columns, run: int, name: str) -> dict[str, Any]:
    rows = zip(columns["run"], columns["query"], columns[name], strict=True)
    return {query: value for of, query, value in rows if of == run and query is not None}
