"""All runs of the experiments that were asked for, and what was found of every claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsms.papers.claim import Judgement
from dsms.papers.experiment import Experiment, Paper, Point, Scale
from dsms.papers.measured import Measured, Row
from dsms.papers.pools import Inline, Pool, Work
from dsms.papers.registry import chosen
from dsms.papers.store import Store, key

Progress = Callable[[str, int, int], None]  # what was done last, runs done, runs in all


@dataclass(frozen=True)
class Outcome:
    """One experiment, what was measured, and what came of its claims."""

    paper: Paper
    experiment: Experiment
    measured: Measured
    judgements: tuple[Judgement, ...]


def reproduce(
    wanted: str | Sequence[tuple[Paper, Sequence[Experiment]]] | None = None,
    scale: Scale | None = None,
    out: Path | None = None,
    pool: Pool | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Do what is not yet done, and judge; without a folder `out` nothing is kept of it.

    `wanted` is a text `PAPER[/FIGURE]`, None for everything, or experiments by paper.
    """
    scale = scale or Scale()
    if wanted is None or isinstance(wanted, str):
        wanted = chosen(wanted)
    sweeps = [(paper, each, each.points(scale)) for paper, experiments in wanted for each in experiments]
    store = Store(None if out is None else out / "runs.jsonl")
    try:
        _run(sweeps, store, pool or Inline(), fresh, progress)
        return [_judged(paper, experiment, points, store, scale) for paper, experiment, points in sweeps]
    finally:
        store.close()


def _run(
    sweeps: Sequence[tuple[Paper, Experiment, Sequence[Point]]],
    store: Store,
    pool: Pool,
    fresh: bool,
    progress: Progress | None,
) -> None:
    work: dict[str, Work] = {}
    whose: dict[str, str] = {}
    for paper, experiment, points in sweeps:
        for point in points:
            run = key(experiment.measure, point)
            work[run] = Work(experiment.measure, point)
            whose.setdefault(run, f"{paper.name}/{experiment.name}")
    left = [each for each in work.values() if fresh or store.find(*each) is None]
    done = len(work) - len(left)
    if progress is not None:
        progress("", done, len(work))
    for each, figures in pool.results(left) if left else ():
        store.add(*each, figures)
        done += 1
        if progress is not None:
            progress(whose[key(*each)], done, len(work))


def _judged(paper: Paper, experiment: Experiment, points: Sequence[Point], store: Store, scale: Scale) -> Outcome:
    measured = Measured(Row(point, _found(store, experiment, point)) for point in points)
    return Outcome(paper, experiment, measured, tuple(c.judge(measured, scale.quick) for c in experiment.claims))


def _found(store: Store, experiment: Experiment, point: Point) -> Mapping[str, object]:
    found = store.find(experiment.measure, point)
    assert found is not None, "every point has been run"
    return found
