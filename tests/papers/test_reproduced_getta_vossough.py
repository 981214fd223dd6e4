"""Getta and Vossough as experiments: every verdict at quick scale, and that verdicts follow the code."""

from __future__ import annotations

import math

import pytest
from reproduced import judged, measured

from dsms.dataflow import Detour, Execution, Item, Join, Stream, conflict_matrix, translate
from dsms.dataflow.window import Window
from dsms.papers import Verdict
from dsms.papers.getta_vossough import PAPER
from dsms.papers.getta_vossough.crossover import crossover
from dsms.papers.getta_vossough.timed import finished

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
def found():
    return {name: measured(experiment) for name, experiment in EXPERIMENTS.items()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_verdicts(name, found):
    for claim, judgement in judged(EXPERIMENTS[name], found[name]).items():
        assert judgement.verdict == EXPECTED.get((name, claim), Verdict.REPRODUCED), (claim, judgement.ours)
        assert math.isfinite(judgement.ours.mean)
        if judgement.verdict is not Verdict.REPRODUCED:
            assert judgement.claim.because
            assert judgement.nearest


@pytest.mark.parametrize("name", [name for name, experiment in EXPERIMENTS.items() if experiment.plots])
def test_plots_have_data(name, found):
    for plot in EXPERIMENTS[name].plots:
        lines = plot.lines(found[name])
        assert len({line.label for line in lines}) == len(lines) > 1
        for line in lines:
            assert len(line.xs) == len(line.ys) > 0
            assert all(map(math.isfinite, [*line.xs, *line.ys]))
            assert not plot.ticks or len(plot.ticks) == len(line.xs)


def test_the_crossovers_are_marked(found):
    for name, plot, executed in (("waiting", 0, 1.0), ("rates", 0, 1.0), ("difference", 0, 0.586)):
        lines = {line.label: line for line in EXPERIMENTS[name].plots[plot].lines(found[name])}
        assert lines["crossover, executed"].xs[0] == pytest.approx(executed, abs=0.2)


def verdict(experiment, claim):
    return judged(EXPERIMENTS[experiment], measured(EXPERIMENTS[experiment]))[claim].verdict


def test_another_formula_of_item_mode_changes_the_verdict(monkeypatch):
    blockwise = lambda costs, mode="block": [cost.time for cost in costs]  # noqa: E731
    monkeypatch.setattr("dsms.dataflow.cost.delays", blockwise)
    assert verdict("transit", "item formula") is Verdict.NOT
    assert verdict("transit", "item executed") is Verdict.REPRODUCED


def test_another_equation_of_waiting_changes_the_verdict(monkeypatch):
    monkeypatch.setattr(Detour, "wait", lambda self, since: 0.0)
    assert verdict("waiting", "equations") is Verdict.NOT
    assert verdict("waiting", "pays from") is Verdict.REPRODUCED


def test_other_conflicts_change_the_verdicts(monkeypatch):
    monkeypatch.setattr("dsms.dataflow.conflicts.conflict", lambda *_: False)
    assert verdict("edges", "edges of r, s, r") is Verdict.NOT
    assert verdict("concurrent", "order preserving") is Verdict.NOT


def test_a_window_that_forgets_what_was_compared_loses_results(monkeypatch):
    monkeypatch.setattr(Window, "highest", property(lambda self: -2, lambda self, value: None), raising=False)
    assert verdict("concurrent", "raised") is Verdict.NOT


def test_items_wait_for_edges_and_for_nothing_else():
    """Both items meet; without the rule s is recorded only after r has read, with it at once."""
    plan = translate(Join(Stream("r", "b"), Stream("s", "b"), "b"))
    run = Execution(plan, "serial").run([Item("r", {"b": 1}), Item("s", {"b": 1})])
    times = {"record": 1.0, "join": 2.0}

    def ends(timestamps, arrivals=(0.0, 0.0)):
        done = finished(plan, run, "rs", arrivals, times, conflict_matrix(plan, timestamps=timestamps))
        return [list(each.values()) for each in done]

    assert ends(True) == [[1, 3], [1, 3, 4]]  # r meets nothing and ends with that
    assert ends(False) == [[1, 3], [4, 6, 7]]
    assert ends(False, (0.0, 9.0)) == [[1, 3], [10, 12, 13]]


def test_a_crossover_lies_where_the_sign_changes():
    assert crossover([0, 1, 3], [1, 1, -1]) == 2
    assert crossover([0, 1], [-1, 0]) == 1
    assert math.isnan(crossover([0, 1], [1, 2]))
