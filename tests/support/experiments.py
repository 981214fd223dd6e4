"""Experiments run at once and in this process, for tests."""

from __future__ import annotations

from dsms.papers import Experiment, Judgement, Measurements, Scale
from dsms.papers.measurements import MeasuredPoint


def run_experiment(experiment: Experiment, scale: Scale | None = None) -> Measurements:
    """Every point of its sweep."""
    points = experiment.points(scale or Scale(quick=True))
    return Measurements(MeasuredPoint(point, experiment.measure(point)) for point in points)


def judge_claims(experiment: Experiment, found: Measurements) -> dict[str, Judgement]:
    """Its claims by name."""
    return {claim.name: claim.judge(found, quick=True) for claim in experiment.claims}
