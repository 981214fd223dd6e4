"""Bai and Zaniolo's claims at quick scale: today's verdicts, and that they depend on the policies' formulas."""

from __future__ import annotations

import json

import pytest
from support.experiments import judge_claims, run_experiment

from dsms.charts import ChartPiece, latency_partitions
from dsms.papers import Measurements, Scale, Verdict
from dsms.papers.bai_zaniolo import PAPER
from dsms.papers.measurements import MeasuredPoint
from dsms.policies import partition_latency
from dsms.policies.component import Component

pytestmark = pytest.mark.papers

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}
YES, DIRECTION, NO = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT
VERDICTS = {
    "components": {
        "area-latency": YES, "area-memory": YES, "rectangle": YES, "steeper-first": YES, "path-unbroken": YES,
    },
    "latency-fork": {
        "fork-rule": YES, "fork-crossing": YES, "area-unbroken": YES, "area-broken": NO, "branch-order": NO,
        "fork-best": YES,
    },
    "nested-fork": {"nested-partitions": YES, "nested-order": YES, "nested-best": YES, "nested-unbroken": YES},
    "memory-fork": {
        "memory-partitions": YES, "first-adds": YES, "fork-segment": YES, "fork-segment-time": YES,
        "never-split": YES, "worth-merging": YES, "rest-behind": YES, "branch-order": NO, "private-buffers": YES,
    },
    "two-queues": {"greedy-total": YES, "mss-total": YES},
    "latency": {
        "latency-rises": YES, "greedy-hit-most": YES, "greedy-above-mss": DIRECTION, "component-below-6": YES,
        "component-within-4": YES, "component-parts": NO, "round-robin": YES, "mss-optimal": YES,
    },
    "memory": {"memory-rises": YES, "chain-as-mss": YES, "greedy-hit-most": YES, "greedy-above-mss": YES},
}  # fmt: skip


@pytest.fixture(scope="module")
def runs():
    return {name: run_experiment(experiment) for name, experiment in EXPERIMENTS.items()}


def run_some(name, **conditions):
    """Run the points of an experiment that have these parameters."""
    experiment = EXPERIMENTS[name]
    points = [point for point in experiment.points(Scale(quick=True)) if conditions.items() <= point.items()]
    return Measurements(MeasuredPoint(point, experiment.measure(point)) for point in points)


def verdict(name, claim, found):
    (mine,) = (each for each in EXPERIMENTS[name].claims if each.name == claim)
    return mine.judge(found, quick=True).verdict


def test_every_experiment_is_in_the_table():
    assert VERDICTS.keys() == EXPERIMENTS.keys()


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name, runs):
    judgements = judge_claims(EXPERIMENTS[name], runs[name])
    assert {claim: judgement.verdict for claim, judgement in judgements.items()} == VERDICTS[name]


@pytest.mark.parametrize("name", VERDICTS)
def test_a_claim_that_is_not_reproduced_gives_a_reason(name, runs):
    for judgement in judge_claims(EXPERIMENTS[name], runs[name]).values():
        assert judgement.verdict is YES or (judgement.why and judgement.nearest)


@pytest.mark.parametrize("name", VERDICTS)
def test_every_figure_has_lines_with_data(name, runs):
    for plot in EXPERIMENTS[name].plots:
        lines = plot.lines(runs[name])
        assert len(lines) > 1
        assert all(len(line.xs) == len(line.ys) > 1 for line in lines)


@pytest.mark.parametrize("name", VERDICTS)
def test_rows_are_plain_data(name, runs):
    for row in runs[name].rows:
        assert json.loads(json.dumps(row)) == [row.point, row.figures]


def test_figures_5_to_9_12_and_13_have_names():
    names = {name for experiment in PAPER.experiments for name in experiment.names}
    assert {f"figure-{number}" for number in (5, 6, 7, 8, 9, 12, 13)} <= names


def test_with_the_inverse_priority_component_is_no_longer_near_mss(monkeypatch, runs):
    monkeypatch.setattr(Component, "priority", lambda self, segment: segment.mean_cost / segment.selectivity)
    changed = run_some("latency", policy="component")
    found = Measurements([*runs["latency"].where(policy="mss").rows, *changed.rows])
    assert verdict("latency", "component-within-4", found) is NO
    assert verdict("components", "steeper-first", run_some("components")) is NO


def test_a_partition_that_never_cuts_forks_breaks_the_rule_and_is_not_the_best(monkeypatch):
    def whole(trees):
        return [_joined(latency_partitions(trees))]

    monkeypatch.setattr(partition_latency, "latency_partitions", whole)
    found = run_some("latency-fork")
    assert verdict("latency-fork", "fork-rule", found) is NO
    assert verdict("latency-fork", "fork-best", found) is NO
    assert verdict("nested-fork", "nested-partitions", run_some("nested-fork", tuples=1)) is NO


def _joined(pieces):
    members = tuple(member for piece in pieces for member in piece.members)
    return ChartPiece(members, sum(piece.time for piece in pieces), sum(piece.gain for piece in pieces))
