"""Bai and Zaniolo's claims at quick scale: what comes out today, and that it comes from the policies."""

from __future__ import annotations

import json

import pytest
from reproduced import judged, measured

from dsms.charts import Piece
from dsms.papers import Measured, Scale, Verdict
from dsms.papers.bai_zaniolo import PAPER
from dsms.papers.measured import Row
from dsms.policies import partition_latency
from dsms.policies.component import Component

pytestmark = pytest.mark.papers

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}
YES, DIRECTION, NO = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT
FOUND = {
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
    return {name: measured(experiment) for name, experiment in EXPERIMENTS.items()}


def some(name, **wanted):
    """Those points of a sweep, run now."""
    experiment = EXPERIMENTS[name]
    chosen = [point for point in experiment.points(Scale(quick=True)) if wanted.items() <= point.items()]
    return Measured(Row(point, experiment.measure(point)) for point in chosen)


def verdict(name, claim, found):
    (mine,) = (each for each in EXPERIMENTS[name].claims if each.name == claim)
    return mine.judge(found, quick=True).verdict


def test_every_experiment_is_in_the_table():
    assert FOUND.keys() == EXPERIMENTS.keys()


@pytest.mark.parametrize("name", FOUND)
def test_verdicts(name, runs):
    assert {claim: found.verdict for claim, found in judged(EXPERIMENTS[name], runs[name]).items()} == FOUND[name]


@pytest.mark.parametrize("name", FOUND)
def test_what_is_not_reproduced_says_why(name, runs):
    for found in judged(EXPERIMENTS[name], runs[name]).values():
        assert found.verdict is YES or (found.why and found.nearest)


@pytest.mark.parametrize("name", FOUND)
def test_every_figure_has_lines_with_data(name, runs):
    for plot in EXPERIMENTS[name].plots:
        lines = plot.lines(runs[name])
        assert len(lines) > 1
        assert all(len(line.xs) == len(line.ys) > 1 for line in lines)


@pytest.mark.parametrize("name", FOUND)
def test_rows_are_plain_data(name, runs):
    for row in runs[name].rows:
        assert json.loads(json.dumps(row)) == [row.point, row.figures]


def test_figures_5_to_9_12_and_13_can_be_asked_for():
    names = {name for experiment in PAPER.experiments for name in experiment.names}
    assert {f"figure-{number}" for number in (5, 6, 7, 8, 9, 12, 13)} <= names


def test_with_the_fraction_turned_over_component_is_no_longer_near_mss(monkeypatch, runs):
    monkeypatch.setattr(Component, "priority", lambda self, segment: segment.mean_cost / segment.selectivity)
    changed = some("latency", policy="component")
    found = Measured([*runs["latency"].where(policy="mss").rows, *changed.rows])
    assert verdict("latency", "component-within-4", found) is NO
    assert verdict("components", "steeper-first", some("components")) is NO


def test_without_cutting_forks_the_partition_is_neither_by_the_rule_nor_the_best(monkeypatch):
    def whole(trees):
        return [_joined(partition(trees))]

    partition = partition_latency.latency_partitions
    monkeypatch.setattr(partition_latency, "latency_partitions", whole)
    found = some("latency-fork")
    assert verdict("latency-fork", "fork-rule", found) is NO
    assert verdict("latency-fork", "fork-best", found) is NO
    assert verdict("nested-fork", "nested-partitions", some("nested-fork", tuples=1)) is NO


def _joined(pieces):
    members = tuple(member for piece in pieces for member in piece.members)
    return Piece(members, sum(piece.time for piece in pieces), sum(piece.gain for piece in pieces))
