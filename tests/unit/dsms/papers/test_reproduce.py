"""Runs, stores, judges and reports the experiments of a small paper made up here."""

from __future__ import annotations

import json
import os
import signal
import xml.etree.ElementTree as ElementTree

import pytest
from support.paths import TESTS

import dsms
from dsms.errors import DsmsError, FailedError
from dsms.papers import (
    Claim,
    Experiment,
    Measurements,
    Paper,
    Plot,
    PlotLine,
    Scale,
    Verdict,
    band_above,
    band_below,
    band_from,
    band_near,
    band_up_to,
    report,
)
from dsms.papers.experiment import lines_over
from dsms.papers.export import describe_claim
from dsms.papers.figures import draw_plot
from dsms.papers.measurements import MeasuredPoint
from dsms.papers.registry import select_experiments
from dsms.papers.reproduce import reproduce
from dsms.papers.run_store import ResultStore
from dsms.papers.worker_pools import Inline, Job, Processes, create_pool
from dsms.policies.greedy import Greedy

EXAMPLE = TESTS / "plans" / "chain-example.toml"


def held(point):
    """The mean memory of Chain's first example."""
    run = dsms.simulate(EXAMPLE, point["policy"], sample=1.0)
    return {"mean": run.memory.tuples.mean, "most": run.memory.tuples.max, "held": [y for _, y in run.memory.samples]}


def saved(measured: Measurements) -> float:
    return measured.value("mean", policy="greedy") / measured.value("mean", policy="fifo")


def points(scale):
    return [{"policy": policy, "seed": seed} for seed in scale.numbers() for policy in ("fifo", "greedy")]


def lines(measured):
    return [PlotLine(p, range(15), measured.series("held", policy=p), steps=True) for p in measured.values("policy")]


SMALL = Experiment(
    "example",
    "One burst",
    "Two operators.",
    points,
    held,
    (
        Plot("figure-1", "Memory", "time", "tuples", lines),
        Plot("figure-2", "Mean", "seed", "tuples",
             lines_over("mean", "seed", "policy", {"fifo": "FIFO", "greedy": "G"})),
    ),
    (
        Claim("less", "Greedy holds less than FIFO", "–", saved, band_up_to(0.9), direction=band_up_to(1.0)),
        Claim("half", "Greedy holds half", "0.5", saved, band_near(0.5, 0.01), band_up_to(1.0), because="It does not.",
              others={"the most": lambda m: m.value("most", policy="greedy") / m.value("most", policy="fifo")}),
        Claim("more", "Greedy holds more | much more", "> 1", saved, band_from(1.0), reading="As printed."),
    ),
)  # fmt: skip
PAPER = Paper("small", "Nobody: “On little” <2026>", (SMALL,), "A note.")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    [found] = reproduce([(PAPER, PAPER.experiments)], Scale(seeds=2), tmp_path_factory.mktemp("out"))
    return found


def verdicts(outcome):
    return {judgement.claim.name: judgement.verdict for judgement in outcome.judgements}


def test_a_claim_is_reproduced_or_right_in_direction_or_neither(outcome):
    assert verdicts(outcome) == {"less": Verdict.REPRODUCED, "half": Verdict.DIRECTION, "more": Verdict.NOT}
    assert outcome.judgements[0].ours.mean == pytest.approx(saved(Measurements(outcome.measured.rows)))
    assert outcome.judgements[0].ours.spread == 0  # both seeds have the same arrivals


def test_a_claim_that_is_not_reproduced_names_the_nearest_other_reading(outcome):
    less, half, more = (report.claim_row(judgement) for judgement in outcome.judgements)
    assert less[4] == ""
    assert half[4] == "It does not. Nearest other reading: the most, 0.55 ± 0."
    assert more[4] == "As printed."


@pytest.mark.parametrize(
    ("ours", "other", "sentence"),
    [
        (0.4, 0.9, "Nearest other reading: b, 0.9."),
        (0.4, 0.2, "No other reading that was tried is nearer; the nearest: b, 0.2."),
        (1.0, 0.2, "It depends on the reading: b, 0.2."),
        (1.0, 1.1, ""),
    ],
)
def test_another_reading_is_named_if_it_is_nearer_or_does_not_hold(ours, other, sentence):
    claim = Claim("a", "a", "1", lambda m: ours, band_near(1, 0.2), others={"b": lambda m: other})
    judgement = claim.judge(Measurements([MeasuredPoint({"seed": 1}, {})]))
    assert report.claim_row(judgement)[4] == sentence
    assert describe_claim(judgement)["others"] == [{"reading": "b", "ours": other, "spread": None}]


def test_another_formula_has_another_verdict(tmp_path, monkeypatch):
    """No verdict is hard-coded: with the inverse priority Greedy saves no memory."""
    monkeypatch.setattr(Greedy, "priority", lambda self, segment: segment.mean_cost / segment.freed)
    [found] = reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path)
    assert verdicts(found) == {"less": Verdict.DIRECTION, "half": Verdict.DIRECTION, "more": Verdict.REPRODUCED}


def test_an_equal_value_is_neither_above_nor_below():
    same = Measurements([MeasuredPoint({"seed": 1}, {"y": 1.0})])
    for band in (band_above(1.0), band_below(1.0)):
        assert Claim("x", "x", "", lambda m: m.value("y"), band).judge(same).verdict is Verdict.NOT
    assert Claim("x", "x", "", lambda m: m.value("y"), band_above(0.999)).judge(same).verdict is Verdict.REPRODUCED


def test_a_number_that_does_not_exist_reproduces_nothing():
    nothing = Measurements([MeasuredPoint({"seed": 1}, {"mean": None})])
    claim = Claim("x", "x", "1", lambda m: m.value("mean"), band_from(0), direction=band_from(-9))
    judgement = claim.judge(nothing)
    assert judgement.verdict is Verdict.NOT
    assert report.format_value(judgement.ours, ".3g") == "–"


def test_a_number_that_does_not_exist_is_null_in_json_also_over_several_seeds():
    nothing = Measurements([MeasuredPoint({"seed": seed}, {"mean": None}) for seed in (1, 2)])
    found = describe_claim(Claim("x", "x", "1", lambda m: m.value("mean"), band_from(0)).judge(nothing))
    assert (found["ours"], found["spread"]) == (None, None)


def test_short_runs_may_have_a_band_of_their_own():
    one = Measurements([MeasuredPoint({"seed": 1}, {"y": 3.0})])
    claim = Claim("x", "x", "1", lambda m: m.value("y"), band_near(1, 0.5), quick=band_near(1, 2.5))
    assert (claim.judge(one).verdict, claim.judge(one, quick=True).verdict) == (Verdict.NOT, Verdict.REPRODUCED)


def test_a_pooled_claim_is_computed_once_from_all_seeds():
    rows = [MeasuredPoint({"seed": seed}, {"y": y}) for seed, y in ((1, 0.0), (2, 4.0))]
    (each, pooled) = (
        Claim("x", "x", "", lambda m: m.value("y") ** 2, band_near(0, 1), pooled=pooled).judge(Measurements(rows)).ours
        for pooled in (False, True)
    )
    assert (each.mean, pooled.mean, pooled.spread) == (8.0, 4.0, None)


def test_a_query_for_parameters_that_were_not_measured_names_the_measured_ones(outcome):
    with pytest.raises(DsmsError, match=r"'mean' of \{'policy': 'lifo'\}.*policy in \['fifo', 'greedy'\]"):
        outcome.measured.value("mean", policy="lifo")


# --- stored runs


def count_runs(file):
    return len(file.read_text().splitlines()) - 1


def test_runs_that_are_done_are_not_done_again(tmp_path):
    calls = []

    class CountingPool(Inline):
        def results(self, jobs):
            calls.append(len(jobs))
            return super().results(jobs)

    for seeds in (1, 2, 2):
        reproduce([(PAPER, PAPER.experiments)], Scale(seeds=seeds), tmp_path, CountingPool())
    assert calls == [2, 2]
    assert count_runs(tmp_path / "runs.jsonl") == 4
    reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path, CountingPool(), fresh=True)
    assert calls == [2, 2, 2]


def test_an_interrupted_reproduction_resumes(tmp_path):
    class InterruptedPool(Inline):
        def results(self, jobs):
            yield from super().results(jobs[:1])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path, InterruptedPool())
    file = tmp_path / "runs.jsonl"
    assert count_runs(file) == 1
    with file.open("a") as opened:
        opened.write('{"run": "cut o')  # as by a crash
    progress = []
    reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path, progress=lambda *each: progress.append(each))
    assert progress == [("", 1, 2), ("small/example", 2, 2)]


def test_results_of_other_code_are_discarded(tmp_path):
    store = ResultStore(tmp_path / "runs.jsonl")
    store.add(held, {"seed": 1}, {"mean": 1.0})
    store.close()
    assert len(ResultStore(tmp_path / "runs.jsonl")) == 1
    lines = (tmp_path / "runs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "runs.jsonl").write_text('{"code": "another"}\n' + "".join(lines[1:]))
    assert len(ResultStore(tmp_path / "runs.jsonl")) == 0


def test_a_broken_line_loses_only_its_own_run(tmp_path):
    file = tmp_path / "runs.jsonl"
    reproduce([(PAPER, PAPER.experiments)], Scale(seeds=2), tmp_path)
    first, *lines = file.read_bytes().splitlines(keepends=True)
    broken = [lines[0][:20] + b"\n", b"\xff\x00\n", b"[]\n", b'{"run": "x"}\n', *lines[1:]]
    file.write_bytes(first + b"".join(broken))
    progress = []
    reproduce([(PAPER, PAPER.experiments)], Scale(seeds=2), tmp_path, progress=lambda *each: progress.append(each[1:]))
    assert progress == [(3, 4), (4, 4)]


def test_repeating_some_runs_keeps_the_results_of_the_others(tmp_path):
    reproduce([(PAPER, PAPER.experiments)], Scale(seeds=2), tmp_path)
    progress = []
    reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path, None, True, lambda *each: progress.append(each[1:]))
    assert progress == [(0, 2), (1, 2), (2, 2)]
    assert len(ResultStore(tmp_path / "runs.jsonl")) == 4


def test_one_process_at_a_time_uses_a_folder(tmp_path):
    store = ResultStore(tmp_path / "runs.jsonl")
    with pytest.raises(DsmsError, match="is in use by another `dsms reproduce`"):
        ResultStore(tmp_path / "runs.jsonl")
    store.close()
    ResultStore(tmp_path / "runs.jsonl").close()


def test_a_file_that_is_not_ours_is_left_unchanged(tmp_path):
    (tmp_path / "runs.jsonl").write_text('{"mine": 1}\n')
    with pytest.raises(DsmsError, match="is not a file of runs"):
        ResultStore(tmp_path / "runs.jsonl")
    assert (tmp_path / "runs.jsonl").read_text() == '{"mine": 1}\n'


def test_experiments_that_share_a_run_do_it_once(tmp_path):
    twice = Paper("small", "twice", (SMALL, SMALL))
    reproduce([(twice, twice.experiments)], Scale(), tmp_path)
    assert count_runs(tmp_path / "runs.jsonl") == 2


# --- pools


def square(point):
    return {"y": point["x"] ** 2}


def die(point):
    os.kill(os.getpid(), signal.SIGKILL)


def test_worker_processes_give_the_same_results_as_this_one():
    jobs = [Job(square, {"x": x, "seed": 1}) for x in range(5)]
    results = [sorted(figures["y"] for _, figures in pool.results(jobs)) for pool in (Inline(), Processes(2))]
    assert results == [[0, 1, 4, 9, 16]] * 2


def test_a_worker_process_that_dies_is_an_error():
    with pytest.raises(FailedError, match="a worker process died; finished runs are kept"):
        list(Processes(2).results([Job(die, {"seed": 1})]))


def test_an_unknown_pool_is_refused_with_the_names_of_those_that_exist():
    with pytest.raises(DsmsError, match=r"no pool 'rya'.*did you mean 'ray'.*'processes'"):
        create_pool("rya", None)


@pytest.mark.ray
def test_ray_tasks_give_the_same_results_as_this_process(ray_cluster):
    # An experiment of the package: the workers of the shared Ray session cannot import the tests.
    [(_, [experiment])] = select_experiments("chain/example")
    jobs = [Job(experiment.measure, point) for point in experiment.points(Scale(quick=True))]
    results = {str(job.point): figures for job, figures in create_pool("ray", 2).results(jobs)}
    assert len(results) > 1
    assert results == {str(job.point): figures for job, figures in Inline().results(jobs)}


# --- figures and reports


def figure_of(*lines):
    return draw_plot(Plot("x", "X", "x", "y", lambda measured: lines), Measurements(()))


def test_a_line_that_would_hide_another_is_dashed():
    lines = (PlotLine("y", (0, 1, 2), ys) for ys in [(1, 5, 2), (1, 5, 2), (1, 5, 3)])
    styles = [line.get_linestyle() for line in figure_of(*lines).axes[0].lines]
    assert styles == ["-", "--", "-"]


@pytest.mark.parametrize("label", ["a", "a policy of a name that takes half of what a row has room for"])
def test_a_legend_covers_no_line_and_is_not_cut_off(label):
    figure = figure_of(*(PlotLine(f"{label} {n}", (0, 1), (n, n)) for n in range(7)))
    figure.draw_without_rendering()
    legend, axes = figure.legends[0].get_window_extent(), figure.axes[0].get_window_extent()
    assert not legend.overlaps(axes)
    assert 0 <= legend.x0 < legend.x1 <= figure.bbox.width
    assert axes.height > 200


def test_the_report_has_every_claim_every_figure_and_the_data(outcome, tmp_path):
    report.write_report([outcome], Scale(seeds=2), "dsms reproduce small", "2026-01-02", tmp_path)
    markdown = (tmp_path / "report.md").read_text()
    page = (tmp_path / "report.html").read_text()
    assert "3 claims: 1 reproduced, 1 direction only, 1 not reproduced" in markdown
    assert "Made on 2026-01-02 by `dsms reproduce small` (the papers' sizes, 2 seeds" in markdown
    assert "Greedy holds more \\| much more" in markdown
    assert "“On little” &lt;2026&gt;" in page
    for claim in SMALL.claims:
        assert claim.text.split(" |")[0] in markdown
        assert claim.text.split(" |")[0] in page
    for plot in SMALL.plots:
        ElementTree.parse(tmp_path / "small" / f"{plot.name}.svg")
        assert f"small/{plot.name}.svg" in markdown
    assert page.count("data:image/svg+xml;base64,") == len(SMALL.plots)
    data = json.loads((tmp_path / "small" / "example.json").read_text())
    assert [claim["verdict"] for claim in data["claims"]] == ["reproduced", "direction only", "not reproduced"]
    assert len(data["runs"]) == 4
    rows = (tmp_path / "small" / "example.csv").read_text().splitlines()
    assert rows[0] == "policy,seed,mean,most"
    assert len(rows) == 5
    series = (tmp_path / "small" / "example.series.csv").read_text().splitlines()
    assert series[:2] == ["policy,seed,figure,place,value", "fifo,1,held,0,1.0"]
