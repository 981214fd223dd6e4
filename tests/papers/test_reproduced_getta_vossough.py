"""Getta and Vossough: the verdict on each claim at quick scale, and that it depends on the code."""

from __future__ import annotations

import math

import pytest
from support.experiments import judge_claims, run_experiment

from dsms.dataflow import (
    DataflowExecution,
    JoinTerm,
    StreamItem,
    StreamTerm,
    WindowTradeoff,
    conflict_matrix,
    translate,
)
from dsms.dataflow.simulated_window import DataflowWindow
from dsms.papers import Verdict
from dsms.papers.getta_vossough import PAPER
from dsms.papers.getta_vossough.crossover import crossover
from dsms.papers.getta_vossough.timed import finish_times

pytestmark = pytest.mark.papers

NOT = Verdict.NOT
EXPECTED = {  # all others are reproduced
    ("orders", "item time"): NOT,
    ("difference", "always cheaper first"): NOT,
    ("rates", "wait"): NOT,
    ("concurrent", "loose inputs"): NOT,
}
EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}


@pytest.fixture(scope="module")
def runs():
    return {name: run_experiment(experiment) for name, experiment in EXPERIMENTS.items()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_verdicts(name, runs):
    for claim, judgement in judge_claims(EXPERIMENTS[name], runs[name]).items():
        assert judgement.verdict == EXPECTED.get((name, claim), Verdict.REPRODUCED), (claim, judgement.ours)
        assert math.isfinite(judgement.ours.mean)
        if judgement.verdict is not Verdict.REPRODUCED:
            assert judgement.claim.because
            assert judgement.nearest


@pytest.mark.parametrize("name", [name for name, experiment in EXPERIMENTS.items() if experiment.plots])
def test_plots_have_data(name, runs):
    for plot in EXPERIMENTS[name].plots:
        lines = plot.lines(runs[name])
        assert len({line.label for line in lines}) == len(lines) > 1
        for line in lines:
            assert len(line.xs) == len(line.ys) > 0
            assert all(map(math.isfinite, [*line.xs, *line.ys]))
            assert not plot.ticks or len(plot.ticks) == len(line.xs)


def test_the_crossovers_are_marked(runs):
    for name, plot, executed in (("waiting", 0, 1.0), ("rates", 0, 1.0), ("difference", 0, 0.586)):
        lines = {line.label: line for line in EXPERIMENTS[name].plots[plot].lines(runs[name])}
        assert lines["crossover, executed"].xs[0] == pytest.approx(executed, abs=0.2)


def verdict(experiment, claim):
    return judge_claims(EXPERIMENTS[experiment], run_experiment(EXPERIMENTS[experiment]))[claim].verdict


def test_another_formula_of_item_mode_changes_the_verdict(monkeypatch):
    blockwise = lambda costs, mode="block": [cost.time for cost in costs]  # noqa: E731
    monkeypatch.setattr("dsms.dataflow.cost.operation_start_times", blockwise)
    assert verdict("transit", "item formula") is Verdict.NOT
    assert verdict("transit", "item executed") is Verdict.REPRODUCED


def test_another_equation_of_waiting_changes_the_verdict(monkeypatch):
    monkeypatch.setattr(WindowTradeoff, "wait", lambda self, since: 0.0)
    assert verdict("waiting", "equations") is Verdict.NOT
    assert verdict("waiting", "pays from") is Verdict.REPRODUCED


def test_other_conflicts_change_the_verdicts(monkeypatch):
    monkeypatch.setattr("dsms.dataflow.conflicts.has_conflict", lambda *_: False)
    assert verdict("edges", "edges of r, s, r") is Verdict.NOT
    assert verdict("concurrent", "order preserving") is Verdict.NOT


def test_a_window_that_forgets_what_was_compared_loses_results(monkeypatch):
    monkeypatch.setattr(DataflowWindow, "highest", property(lambda self: -2, lambda self, value: None), raising=False)
    assert verdict("concurrent", "raised") is Verdict.NOT


def test_items_wait_only_for_edges():
    """Both items join; without the timestamp rule s is recorded only after r has read, with it at once."""
    plan = translate(JoinTerm(StreamTerm("r", "b"), StreamTerm("s", "b"), "b"))
    run = DataflowExecution(plan, "serial").run([StreamItem("r", {"b": 1}), StreamItem("s", {"b": 1})])
    times = {"record": 1.0, "join": 2.0}

    def ends(timestamps, arrivals=(0.0, 0.0)):
        done = finish_times(plan, run, "rs", arrivals, times, conflict_matrix(plan, timestamps=timestamps))
        return [list(each.values()) for each in done]

    assert ends(True) == [[1, 3], [1, 3, 4]]  # r has no partner and ends after the join
    assert ends(False) == [[1, 3], [4, 6, 7]]
    assert ends(False, (0.0, 9.0)) == [[1, 3], [10, 12, 13]]


def test_a_crossover_lies_where_the_sign_changes():
    assert crossover([0, 1, 3], [1, 1, -1]) == 2
    assert crossover([0, 1], [-1, 0]) == 1
    assert math.isnan(crossover([0, 1], [1, 2]))
