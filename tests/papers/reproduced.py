"""Experiments run at once and in this process, for tests."""

from __future__ import annotations

from dsms.papers import Experiment, Judgement, Measured, Scale
from dsms.papers.measured import Row


def measured(experiment: Experiment, scale: Scale | None = None) -> Measured:
    """Every point of its sweep."""
    points = experiment.points(scale or Scale(quick=True))
    return Measured(Row(point, experiment.measure(point)) for point in points)


def judged(experiment: Experiment, found: Measured) -> dict[str, Judgement]:
    """Its claims by name."""
    return {claim.name: claim.judge(found, quick=True) for claim in experiment.claims}
