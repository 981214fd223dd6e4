"""Experiments run, kept, judged and told: on a small paper of our own."""

from __future__ import annotations

import json
import os
import signal
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import dsms
from dsms.errors import DsmsError, FailedError
from dsms.papers import (
    Claim,
    Experiment,
    Line,
    Measured,
    Paper,
    Plot,
    Scale,
    Verdict,
    above,
    at_least,
    at_most,
    below,
    near,
    report,
)
from dsms.papers.data import claim_data
from dsms.papers.experiment import over
from dsms.papers.figures import drawn
from dsms.papers.measured import Row
from dsms.papers.pools import Inline, Processes, Work, pool_named
from dsms.papers.registry import chosen
from dsms.papers.reproduce import reproduce
from dsms.papers.store import Store
from dsms.policies.greedy import Greedy

EXAMPLE = Path(__file__).parent / "plans" / "chain-example.toml"


def held(point):
    """The mean memory of Chain's first example."""
    run = dsms.simulate(EXAMPLE, point["policy"], sample=1.0)
    return {"mean": run.memory.tuples.mean, "most": run.memory.tuples.max, "held": [y for _, y in run.memory.samples]}


def saved(measured: Measured) -> float:
    return measured.value("mean", policy="greedy") / measured.value("mean", policy="fifo")


def points(scale):
    return [{"policy": policy, "seed": seed} for seed in scale.numbers() for policy in ("fifo", "greedy")]


def lines(measured):
    return [Line(p, range(15), measured.series("held", policy=p), steps=True) for p in measured.values("policy")]


SMALL = Experiment(
    "example",
    "One burst",
    "Two operators.",
    points,
    held,
    (
        Plot("figure-1", "Memory", "time", "tuples", lines),
        Plot("figure-2", "Mean", "seed", "tuples", over("mean", "seed", "policy", {"fifo": "FIFO", "greedy": "G"})),
    ),
    (
        Claim("less", "Greedy holds less than FIFO", "–", saved, at_most(0.9), direction=at_most(1.0)),
        Claim("half", "Greedy holds half", "0.5", saved, near(0.5, 0.01), at_most(1.0), because="It does not.",
              others={"the most": lambda m: m.value("most", policy="greedy") / m.value("most", policy="fifo")}),
        Claim("more", "Greedy holds more | much more", "> 1", saved, at_least(1.0), reading="As printed."),
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
    assert outcome.judgements[0].ours.mean == pytest.approx(saved(Measured(outcome.measured.rows)))
    assert outcome.judgements[0].ours.spread == 0  # both seeds have the same arrivals


def test_what_did_not_come_out_is_told_with_the_nearest_other_reading(outcome):
    less, half, more = (report.row(judgement) for judgement in outcome.judgements)
    assert less[4] == ""
    assert half[4] == "It does not. Nearest other reading: the most, 0.55 ± 0."
    assert more[4] == "As printed."


@pytest.mark.parametrize(
    ("ours", "other", "told"),
    [
        (0.4, 0.9, "Nearest other reading: b, 0.9."),
        (0.4, 0.2, "No other reading that was tried comes nearer; the nearest: b, 0.2."),
        (1.0, 0.2, "It hangs on the reading: b, 0.2."),
        (1.0, 1.1, ""),
    ],
)
def test_another_reading_is_told_if_it_comes_nearer_or_does_not_hold(ours, other, told):
    claim = Claim("a", "a", "1", lambda m: ours, near(1, 0.2), others={"b": lambda m: other})
    found = claim.judge(Measured([Row({"seed": 1}, {})]))
    assert report.row(found)[4] == told
    assert claim_data(found)["others"] == [{"reading": "b", "ours": other, "spread": None}]


def test_another_formula_has_another_verdict(tmp_path, monkeypatch):
    """Nothing is hard-coded: run first whoever frees least, and greedy saves nothing."""
    monkeypatch.setattr(Greedy, "priority", lambda self, segment: segment.mean_cost / segment.freed)
    [found] = reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path)
    assert verdicts(found) == {"less": Verdict.DIRECTION, "half": Verdict.DIRECTION, "more": Verdict.REPRODUCED}


def test_what_is_merely_equal_is_neither_above_nor_below():
    same = Measured([Row({"seed": 1}, {"y": 1.0})])
    for band in (above(1.0), below(1.0)):
        assert Claim("x", "x", "", lambda m: m.value("y"), band).judge(same).verdict is Verdict.NOT
    assert Claim("x", "x", "", lambda m: m.value("y"), above(0.999)).judge(same).verdict is Verdict.REPRODUCED


def test_a_number_that_does_not_exist_reproduces_nothing():
    nothing = Measured([Row({"seed": 1}, {"mean": None})])
    claim = Claim("x", "x", "1", lambda m: m.value("mean"), at_least(0), direction=at_least(-9))
    judgement = claim.judge(nothing)
    assert judgement.verdict is Verdict.NOT
    assert report.number(judgement.ours, ".3g") == "–"


def test_a_number_that_does_not_exist_can_be_written_down_for_several_seeds():
    nothing = Measured([Row({"seed": seed}, {"mean": None}) for seed in (1, 2)])
    found = claim_data(Claim("x", "x", "1", lambda m: m.value("mean"), at_least(0)).judge(nothing))
    assert (found["ours"], found["spread"]) == (None, None)


def test_short_runs_may_have_a_band_of_their_own():
    one = Measured([Row({"seed": 1}, {"y": 3.0})])
    claim = Claim("x", "x", "1", lambda m: m.value("y"), near(1, 0.5), quick=near(1, 2.5))
    assert (claim.judge(one).verdict, claim.judge(one, quick=True).verdict) == (Verdict.NOT, Verdict.REPRODUCED)


def test_a_pooled_claim_is_worked_out_once_from_all_seeds():
    rows = [Row({"seed": seed}, {"y": y}) for seed, y in ((1, 0.0), (2, 4.0))]
    (each, pooled) = (
        Claim("x", "x", "", lambda m: m.value("y") ** 2, near(0, 1), pooled=pooled).judge(Measured(rows)).ours
        for pooled in (False, True)
    )
    assert (each.mean, pooled.mean, pooled.spread) == (8.0, 4.0, None)


def test_asking_for_what_was_not_measured_says_what_was(outcome):
    with pytest.raises(DsmsError, match=r"'mean' of \{'policy': 'lifo'\}.*policy in \['fifo', 'greedy'\]"):
        outcome.measured.value("mean", policy="lifo")


# --- runs that are kept


def counted(file):
    return len(file.read_text().splitlines()) - 1


def test_runs_that_are_done_are_not_done_again(tmp_path):
    calls = []

    class Counting(Inline):
        def results(self, work):
            calls.append(len(work))
            return super().results(work)

    for seeds in (1, 2, 2):
        reproduce([(PAPER, PAPER.experiments)], Scale(seeds=seeds), tmp_path, Counting())
    assert calls == [2, 2]
    assert counted(tmp_path / "runs.jsonl") == 4
    reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path, Counting(), fresh=True)
    assert calls == [2, 2, 2]


def test_who_is_interrupted_goes_on_where_it_was(tmp_path):
    class Interrupted(Inline):
        def results(self, work):
            yield from super().results(work[:1])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path, Interrupted())
    file = tmp_path / "runs.jsonl"
    assert counted(file) == 1
    with file.open("a") as opened:
        opened.write('{"run": "cut o')  # as by a crash
    told = []
    reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path, progress=lambda *each: told.append(each))
    assert told == [("", 1, 2), ("small/example", 2, 2)]


def test_runs_by_other_code_do_not_count(tmp_path):
    store = Store(tmp_path / "runs.jsonl")
    store.add(held, {"seed": 1}, {"mean": 1.0})
    store.close()
    assert len(Store(tmp_path / "runs.jsonl")) == 1
    lines = (tmp_path / "runs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "runs.jsonl").write_text('{"code": "another"}\n' + "".join(lines[1:]))
    assert len(Store(tmp_path / "runs.jsonl")) == 0


def test_broken_lines_cost_only_their_own_runs(tmp_path):
    file = tmp_path / "runs.jsonl"
    reproduce([(PAPER, PAPER.experiments)], Scale(seeds=2), tmp_path)
    first, *lines = file.read_bytes().splitlines(keepends=True)
    broken = [lines[0][:20] + b"\n", b"\xff\x00\n", b"[]\n", b'{"run": "x"}\n', *lines[1:]]
    file.write_bytes(first + b"".join(broken))
    told = []
    reproduce([(PAPER, PAPER.experiments)], Scale(seeds=2), tmp_path, progress=lambda *each: told.append(each[1:]))
    assert told == [(3, 4), (4, 4)]


def test_what_was_not_asked_for_is_kept_when_the_rest_is_done_again(tmp_path):
    reproduce([(PAPER, PAPER.experiments)], Scale(seeds=2), tmp_path)
    told = []
    reproduce([(PAPER, PAPER.experiments)], Scale(), tmp_path, None, True, lambda *each: told.append(each[1:]))
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert len(Store(tmp_path / "runs.jsonl")) == 4


def test_a_folder_is_one_call_s_at_a_time(tmp_path):
    store = Store(tmp_path / "runs.jsonl")
    with pytest.raises(DsmsError, match="another call is at work in"):
        Store(tmp_path / "runs.jsonl")
    store.close()
    Store(tmp_path / "runs.jsonl").close()


def test_a_file_of_something_else_is_left_as_it_is(tmp_path):
    (tmp_path / "runs.jsonl").write_text('{"mine": 1}\n')
    with pytest.raises(DsmsError, match="is no file of runs"):
        Store(tmp_path / "runs.jsonl")
    assert (tmp_path / "runs.jsonl").read_text() == '{"mine": 1}\n'


def test_experiments_that_share_a_run_do_it_once(tmp_path):
    twice = Paper("small", "twice", (SMALL, SMALL))
    reproduce([(twice, twice.experiments)], Scale(), tmp_path)
    assert counted(tmp_path / "runs.jsonl") == 2


# --- who works runs out


def square(point):
    return {"y": point["x"] ** 2}


def die(point):
    os.kill(os.getpid(), signal.SIGKILL)


def test_processes_do_what_this_one_does():
    work = [Work(square, {"x": x, "seed": 1}) for x in range(5)]
    found = [sorted(figures["y"] for _, figures in pool.results(work)) for pool in (Inline(), Processes(2))]
    assert found == [[0, 1, 4, 9, 16]] * 2


def test_a_process_that_dies_is_told_and_not_waited_for():
    with pytest.raises(FailedError, match="has died; what was done is kept"):
        list(Processes(2).results([Work(die, {"seed": 1})]))


def test_nobody_of_that_name_works():
    with pytest.raises(DsmsError, match=r"nobody is called 'rya'.*did you mean 'ray'.*'processes'"):
        pool_named("rya", None)


@pytest.mark.ray
def test_ray_tasks_do_what_this_process_does(ray_cluster):
    # What is measured lies in the package: workers of the session that tests share do not see the tests.
    [(_, [experiment])] = chosen("chain/example")
    work = [Work(experiment.measure, point) for point in experiment.points(Scale(quick=True))]
    found = {str(each.point): figures for each, figures in pool_named("ray", 2).results(work)}
    assert len(found) > 1
    assert found == {str(each.point): figures for each, figures in Inline().results(work)}


# --- what is told


def figure_of(*lines):
    return drawn(Plot("x", "X", "x", "y", lambda measured: lines), Measured(()))


def test_a_line_that_would_hide_another_is_broken():
    lines = (Line("y", (0, 1, 2), ys) for ys in [(1, 5, 2), (1, 5, 2), (1, 5, 3)])
    styles = [line.get_linestyle() for line in figure_of(*lines).axes[0].lines]
    assert styles == ["-", "--", "-"]


@pytest.mark.parametrize("label", ["a", "a policy of a name that takes half of what a row has room for"])
def test_a_legend_covers_no_line_and_is_not_cut_off(label):
    figure = figure_of(*(Line(f"{label} {n}", (0, 1), (n, n)) for n in range(7)))
    figure.draw_without_rendering()
    legend, axes = figure.legends[0].get_window_extent(), figure.axes[0].get_window_extent()
    assert not legend.overlaps(axes)
    assert 0 <= legend.x0 < legend.x1 <= figure.bbox.width
    assert axes.height > 200


def test_the_report_has_every_claim_every_figure_and_the_data(outcome, tmp_path):
    report.write([outcome], Scale(seeds=2), "dsms reproduce small", "2026-01-02", tmp_path)
    told = (tmp_path / "report.md").read_text()
    page = (tmp_path / "report.html").read_text()
    assert "3 claims: 1 reproduced, 1 direction only, 1 not reproduced" in told
    assert "Made on 2026-01-02 by `dsms reproduce small` (the papers' sizes, 2 seeds" in told
    assert "Greedy holds more \\| much more" in told
    assert "“On little” &lt;2026&gt;" in page
    for claim in SMALL.claims:
        assert claim.text.split(" |")[0] in told
        assert claim.text.split(" |")[0] in page
    for plot in SMALL.plots:
        ElementTree.parse(tmp_path / "small" / f"{plot.name}.svg")
        assert f"small/{plot.name}.svg" in told
    assert page.count("data:image/svg+xml;base64,") == len(SMALL.plots)
    data = json.loads((tmp_path / "small" / "example.json").read_text())
    assert [claim["verdict"] for claim in data["claims"]] == ["reproduced", "direction only", "not reproduced"]
    assert len(data["runs"]) == 4
    rows = (tmp_path / "small" / "example.csv").read_text().splitlines()
    assert rows[0] == "policy,seed,mean,most"
    assert len(rows) == 5
    series = (tmp_path / "small" / "example.series.csv").read_text().splitlines()
    assert series[:2] == ["policy,seed,figure,place,value", "fifo,1,held,0,1.0"]
