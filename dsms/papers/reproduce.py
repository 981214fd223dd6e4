"""Runs every missing point of the selected experiments and judges their claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsms.papers.claim import Judgement
from dsms.papers.experiment import Experiment, Paper, Point, Scale
from dsms.papers.measurements import MeasuredPoint, Measurements
from dsms.papers.registry import select_experiments
from dsms.papers.run_store import ResultStore, result_key
from dsms.papers.worker_pools import Inline, Job, Pool

Progress = Callable[[str, int, int], None]  # called with the last experiment's name, the runs done, all runs


@dataclass(frozen=True)
class ExperimentResult:
    """One experiment, its measurements, and the verdicts on its claims."""

    paper: Paper
    experiment: Experiment
    measured: Measurements
    judgements: tuple[Judgement, ...]


def reproduce(
    selection: str | Sequence[tuple[Paper, Sequence[Experiment]]] | None = None,
    scale: Scale | None = None,
    out: Path | None = None,
    pool: Pool | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> list[ExperimentResult]:
    """Run the points that have no stored result, and judge the claims.

    `selection` is a text `PAPER[/FIGURE]`, None for all papers, or experiments by paper. Results are stored in
    `out`/runs.jsonl; without `out` they are not stored. `fresh` repeats runs that have a stored result.
    """
    scale = scale or Scale()
    if selection is None or isinstance(selection, str):
        selection = select_experiments(selection)
    sweeps = [(paper, each, each.points(scale)) for paper, experiments in selection for each in experiments]
    store = ResultStore(None if out is None else out / "runs.jsonl")
    try:
        _run_missing_points(sweeps, store, pool or Inline(), fresh, progress)
        return [_judge_experiment(paper, experiment, points, store, scale) for paper, experiment, points in sweeps]
    finally:
        store.close()


def _run_missing_points(
    sweeps: Sequence[tuple[Paper, Experiment, Sequence[Point]]],
    store: ResultStore,
    pool: Pool,
    fresh: bool,
    progress: Progress | None,
) -> None:
    jobs: dict[str, Job] = {}  # by result key: experiments may share runs
    names: dict[str, str] = {}
    for paper, experiment, points in sweeps:
        for point in points:
            key = result_key(experiment.measure, point)
            jobs[key] = Job(experiment.measure, point)
            names.setdefault(key, f"{paper.name}/{experiment.name}")
    missing = [job for job in jobs.values() if fresh or store.find(*job) is None]
    done = len(jobs) - len(missing)
    if progress is not None:
        progress("", done, len(jobs))
    for job, figures in pool.results(missing) if missing else ():
        store.add(*job, figures)
        done += 1
        if progress is not None:
            progress(names[result_key(*job)], done, len(jobs))


def _judge_experiment(
    paper: Paper, experiment: Experiment, points: Sequence[Point], store: ResultStore, scale: Scale
) -> ExperimentResult:
    measured = Measurements(MeasuredPoint(point, _find_result(store, experiment, point)) for point in points)
    return ExperimentResult(
        paper, experiment, measured, tuple(c.judge(measured, scale.quick) for c in experiment.claims)
    )


def _find_result(store: ResultStore, experiment: Experiment, point: Point) -> Mapping[str, object]:
    figures = store.find(experiment.measure, point)
    assert figures is not None, "every point has been run"
    return figures
