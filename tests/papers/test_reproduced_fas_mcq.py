"""Sharaf et al.: the verdict on each claim in short runs, and that it depends on the policies' formulas."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.experiments import judge_claims

from dsms.errors import DsmsError
from dsms.papers import Measurements, Scale, Verdict
from dsms.papers.fas_mcq import PAPER, recorded_arrivals, testbed
from dsms.papers.fas_mcq.measuring import FAS, RB, RR, measure, point
from dsms.papers.fas_mcq.readings import READINGS, find_reading
from dsms.papers.fas_mcq.testbed import Setting
from dsms.papers.fas_mcq.traces import TRACES
from dsms.papers.fas_mcq.utilisation import UTILISATION
from dsms.papers.fas_mcq.weights import WEIGHTS
from dsms.papers.measurements import MeasuredPoint
from dsms.policies.freshness import Freshness
from dsms.policies.rate_based import RateBased
from dsms.query import offered_load

pytestmark = pytest.mark.papers

QUICK = Scale(quick=True)
VERDICTS = {
    "utilisation": {
        "order": Verdict.REPRODUCED,
        "response-order": Verdict.REPRODUCED,
        "low-load": Verdict.DIRECTION,
        "rb-level": Verdict.NOT,
        "fas-level": Verdict.NOT,
        "saved": Verdict.DIRECTION,
        "later": Verdict.DIRECTION,
    },
    "beta": {
        "fresher": Verdict.REPRODUCED,
        "slower": Verdict.REPRODUCED,
        "quarter-saved": Verdict.DIRECTION,
        "quarter-later": Verdict.DIRECTION,
    },
    "skew": {
        "rises": Verdict.REPRODUCED,
        "even": Verdict.DIRECTION,
        "skewed": Verdict.REPRODUCED,
        "grows": Verdict.DIRECTION,
    },
    "bursts": {"middle": Verdict.REPRODUCED, "half": Verdict.DIRECTION, "all": Verdict.DIRECTION},
    "traces": {"order": Verdict.REPRODUCED, "high": Verdict.REPRODUCED},
    "scheduling-cost": {"beta-0": Verdict.DIRECTION, "still-fresher": Verdict.NOT},
    "weights": {"weighted": Verdict.REPRODUCED},
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Measurements]:
    """All experiments; runs that several share are made once."""
    figures = {}
    for experiment in PAPER.experiments:
        for each in experiment.points(QUICK):
            if (key := tuple(each.items())) not in figures:
                figures[key] = experiment.measure(each)
    return {
        experiment.name: Measurements(
            MeasuredPoint(each, figures[tuple(each.items())]) for each in experiment.points(QUICK)
        )
        for experiment in PAPER.experiments
    }


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda experiment: experiment.name)
def test_every_claim_has_today_s_verdict(experiment, runs):
    judgements = judge_claims(experiment, runs[experiment.name])
    assert {name: judgement.verdict for name, judgement in judgements.items()} == VERDICTS[experiment.name]
    assert all(each.claim.because for each in judgements.values() if each.verdict is not Verdict.REPRODUCED)


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda experiment: experiment.name)
def test_every_figure_has_lines_with_data(experiment, runs):
    for plot in experiment.plots:
        lines = plot.lines(runs[experiment.name])
        assert lines, plot.name
        assert all(len(line.xs) == len(line.ys) > 1 and np.isfinite(line.ys).all() for line in lines), plot.name


def repeat_runs(before: Measurements, *policies: str) -> Measurements:
    """The same rows, with the runs of these policies repeated."""
    return Measurements(
        MeasuredPoint(row.point, measure(row.point) if row.point["policy"] in policies else row.figures)
        for row in before.rows
    )


def main_line(measured: Measurements) -> Measurements:
    """The runs that decide the order of policies."""
    return Measurements(
        row for row in measured.where(reading="plain", bursty=5).rows if row.point["utilisation"] in (0.5, 0.95)
    )


def test_another_formula_has_another_verdict(runs, monkeypatch):
    """FAS-MCQ that prefers long backlogs is staler than RB-MCQ."""
    mine, order = main_line(runs["utilisation"]), UTILISATION.claims[0]
    assert order.judge(mine).verdict is Verdict.REPRODUCED
    monkeypatch.setattr(Freshness, "priority", lambda self, segment: segment.pending / segment.mean_cost)
    assert order.judge(repeat_runs(mine, FAS)).verdict is Verdict.NOT


def test_ignoring_weights_has_another_verdict(runs, monkeypatch):
    priority = Freshness.priority
    monkeypatch.setattr(Freshness, "priority", lambda self, segment: priority(self, segment) / segment.weight**2)
    assert judge_claims(WEIGHTS, repeat_runs(runs["weights"], FAS))["weighted"].verdict is Verdict.NOT


# --- the test-bed


@pytest.mark.parametrize(
    "changed", [{}, {"zipf": 2.0}, {"equal": True}, {"whole": True}, {"apart": True}, {"steps": 0}]
)
def test_the_streams_reach_the_utilisation(changed):
    setting = Setting(3, 100, 0.7, **changed)
    queries = testbed.draw_queries(setting)
    streams = testbed.arrivals(setting, queries)
    plan = testbed.plan(setting, queries, streams)
    rates = {f"s{place}": table["rate"] for place, table in enumerate(streams)}
    assert offered_load.utilisation(plan, rates) == pytest.approx(0.7)


def test_skewed_selectivities_are_nearer_to_1():
    means = [testbed.draw_queries(Setting(1, zipf=zipf)).selectivities.mean() for zipf in (0.0, 1.0, 3.0)]
    assert means == sorted(means)
    assert means[0] == pytest.approx(0.55, abs=0.05)
    assert means[-1] > 0.9


def test_buffers_make_no_difference_to_freshness():
    plain, shared = (measure(point(2, 40, FAS, reading=name)) for name in ("plain", "shared"))
    assert plain == shared


def test_an_unknown_reading_is_refused_with_those_that_exist():
    with pytest.raises(DsmsError, match=r"no reading 'operators'.*operator"):
        find_reading("operators")


@pytest.mark.parametrize("name", READINGS)
def test_a_reading_does_not_change_other_policies(name):
    assert READINGS[name].policy(RR).name == RR
    freshness, rate_based = READINGS[name].policy(f"{FAS}:beta=0.25"), READINGS[name].policy(f"{RB}:ties=query")
    assert isinstance(freshness, Freshness)
    assert freshness.beta == 0.25
    assert isinstance(rate_based, RateBased)
    assert rate_based.ties == "query"


# --- recorded arrivals


@pytest.fixture
def files(tmp_path) -> list[str]:
    """Two traces in the archive's format: timestamp, hosts, ports, bytes."""
    rng = np.random.default_rng(5)
    for name, gap in (("tcp", 0.01), ("udp", 0.03)):
        at = np.cumsum(rng.exponential(gap, 200))
        lines = (f"{instant:.6f} 2 1 2436 23 {size}\n" for size, instant in enumerate(at))
        (tmp_path / name).write_text("".join(lines))
    return [str(tmp_path / name) for name in ("tcp", "udp")]


def test_trace_files_are_replayed_and_not_labelled_a_stand_in(files, runs):
    points = TRACES.points(Scale(quick=True, traces=tuple(files)))
    (sources,) = {each["recorded"] for each in points} - {""}
    assert [path for path, _ in json.loads(sources)] == files
    short = Measurements([MeasuredPoint(each, measure({**each, "tuples": 40})) for each in points if each["recorded"]])
    (plot,) = TRACES.plots
    assert [line.label for line in plot.lines(short)] == ["FAS-MCQ", "RB-MCQ", "RR", "FCFS"]
    assert all(line.label.endswith(" (stand-in)") for line in plot.lines(runs["traces"]))


def test_another_trace_under_the_same_name_is_another_point(files):
    before = TRACES.points(Scale(quick=True, traces=tuple(files)))
    Path(files[0]).write_text("1.0\n2.0\n")
    after = TRACES.points(Scale(quick=True, traces=tuple(files)))
    assert all(old != new for old, new in zip(before, after, strict=True) if old["recorded"])


def test_all_traces_are_cut_to_one_common_period(files):
    tcp, udp = recorded_arrivals.from_files(files, 60)
    assert len(tcp) + len(udp) == 120
    assert min(tcp[0], udp[0]) == 0
    assert abs(tcp[-1] - udp[-1]) < 0.2
    assert len(tcp) > 2 * len(udp)


def test_recorded_arrivals_are_stretched_to_the_utilisation(files):
    instants = recorded_arrivals.from_files(files, 60)
    queries = testbed.draw_queries(Setting(1), streams=2)
    tables = recorded_arrivals.arrivals(instants, queries, 0.8)
    work = sum(len(table["at"]) * queries.work(place) for place, table in enumerate(tables))
    assert work / max(table["at"][-1] for table in tables) == pytest.approx(0.8)


def test_a_file_that_is_not_a_trace_is_refused_with_its_name(tmp_path):
    (tmp_path / "words").write_text("not a timestamp\n")
    with pytest.raises(DsmsError, match=r"words.*a timestamp first"):
        recorded_arrivals.from_files([str(tmp_path / "words")], 10)
    with pytest.raises(DsmsError, match=r"nowhere.*a timestamp first"):
        recorded_arrivals.from_files([str(tmp_path / "nowhere")], 10)
