"""What comes of the claims of Sharaf et al. in short runs, and that it is the policies' doing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from reproduced import judged

from dsms import demand
from dsms.errors import DsmsError
from dsms.papers import Measured, Scale, Verdict
from dsms.papers.fas_mcq import PAPER, recorded, testbed
from dsms.papers.fas_mcq.measuring import FAS, RB, RR, measure, point
from dsms.papers.fas_mcq.readings import READINGS, reading
from dsms.papers.fas_mcq.testbed import Setting
from dsms.papers.fas_mcq.traces import TRACES
from dsms.papers.fas_mcq.utilisation import UTILISATION
from dsms.papers.fas_mcq.weights import WEIGHTS
from dsms.papers.measured import Row
from dsms.policies.freshness import Freshness

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
def found() -> dict[str, Measured]:
    """All experiments; a run that several have in common is made once."""
    known = {}
    for experiment in PAPER.experiments:
        for mine in experiment.points(QUICK):
            if (key := tuple(mine.items())) not in known:
                known[key] = experiment.measure(mine)
    return {
        experiment.name: Measured(Row(mine, known[tuple(mine.items())]) for mine in experiment.points(QUICK))
        for experiment in PAPER.experiments
    }


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda experiment: experiment.name)
def test_every_claim_has_the_verdict_that_was_found(experiment, found):
    judgements = judged(experiment, found[experiment.name])
    assert {name: judgement.verdict for name, judgement in judgements.items()} == VERDICTS[experiment.name]
    assert all(each.claim.because for each in judgements.values() if each.verdict is not Verdict.REPRODUCED)


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda experiment: experiment.name)
def test_every_figure_has_lines_with_data(experiment, found):
    for plot in experiment.plots:
        lines = plot.lines(found[experiment.name])
        assert lines, plot.name
        assert all(len(line.xs) == len(line.ys) > 1 and np.isfinite(line.ys).all() for line in lines), plot.name


def again(before: Measured, *policies: str) -> Measured:
    """The same rows, those of some policies run anew."""
    return Measured(
        Row(row.point, measure(row.point) if row.point["policy"] in policies else row.figures) for row in before.rows
    )


def main_line(measured: Measured) -> Measured:
    """What the order is judged by."""
    return Measured(
        row for row in measured.where(reading="plain", bursty=5).rows if row.point["utilisation"] in (0.5, 0.95)
    )


def test_another_formula_is_another_verdict(found, monkeypatch):
    """FAS-MCQ that prefers long backlogs is staler than RB-MCQ."""
    mine, order = main_line(found["utilisation"]), UTILISATION.claims[0]
    assert order.judge(mine).verdict is Verdict.REPRODUCED
    monkeypatch.setattr(Freshness, "priority", lambda self, segment: segment.pending / segment.mean_cost)
    assert order.judge(again(mine, FAS)).verdict is Verdict.NOT


def test_weights_that_do_not_count_are_another_verdict(found, monkeypatch):
    priority = Freshness.priority
    monkeypatch.setattr(Freshness, "priority", lambda self, segment: priority(self, segment) / segment.weight**2)
    assert judged(WEIGHTS, again(found["weights"], FAS))["weighted"].verdict is Verdict.NOT


# --- the test-bed


@pytest.mark.parametrize(
    "changed", [{}, {"zipf": 2.0}, {"equal": True}, {"whole": True}, {"apart": True}, {"steps": 0}]
)
def test_the_streams_bring_the_utilisation(changed):
    setting = Setting(3, 100, 0.7, **changed)
    queries = testbed.drawn(setting)
    streams = testbed.arrivals(setting, queries)
    plan = testbed.plan(setting, queries, streams)
    rates = {f"s{place}": table["rate"] for place, table in enumerate(streams)}
    assert demand.utilisation(plan, rates) == pytest.approx(0.7)


def test_skewed_selectivities_are_nearer_to_1():
    means = [testbed.drawn(Setting(1, zipf=zipf)).chances.mean() for zipf in (0.0, 1.0, 3.0)]
    assert means == sorted(means)
    assert means[0] == pytest.approx(0.55, abs=0.05)
    assert means[-1] > 0.9


def test_buffers_make_no_difference_to_freshness():
    plain, shared = (measure(point(2, 40, FAS, reading=name)) for name in ("plain", "shared"))
    assert plain == shared


def test_a_reading_that_there_is_not_lists_those_there_are():
    with pytest.raises(DsmsError, match=r"no reading 'operators'.*operator"):
        reading("operators")


@pytest.mark.parametrize("name", READINGS)
def test_a_reading_leaves_policies_alone_that_it_is_not_about(name):
    assert READINGS[name].policy(RR).name == RR
    assert READINGS[name].policy(f"{FAS}:beta=0.25").beta == 0.25
    assert READINGS[name].policy(f"{RB}:ties=query").ties == "query"


# --- recorded arrivals


@pytest.fixture
def files(tmp_path) -> list[str]:
    """Two traces as the archive has them: timestamp, hosts, ports, bytes."""
    rng = np.random.default_rng(5)
    for name, gap in (("tcp", 0.01), ("udp", 0.03)):
        at = np.cumsum(rng.exponential(gap, 200))
        lines = (f"{instant:.6f} 2 1 2436 23 {size}\n" for size, instant in enumerate(at))
        (tmp_path / name).write_text("".join(lines))
    return [str(tmp_path / name) for name in ("tcp", "udp")]


def test_traces_given_are_used_and_not_called_a_stand_in(files, found):
    points = TRACES.points(Scale(quick=True, traces=tuple(files)))
    (given,) = {each["recorded"] for each in points} - {""}
    assert [path for path, _ in json.loads(given)] == files
    mine = Measured([Row(each, measure({**each, "tuples": 40})) for each in points if each["recorded"]])
    (plot,) = TRACES.plots
    assert [line.label for line in plot.lines(mine)] == ["FAS-MCQ", "RB-MCQ", "RR", "FCFS"]
    assert all(line.label.endswith(" (stand-in)") for line in plot.lines(found["traces"]))


def test_another_trace_under_the_same_name_is_run_anew(files):
    before = TRACES.points(Scale(quick=True, traces=tuple(files)))
    Path(files[0]).write_text("1.0\n2.0\n")
    after = TRACES.points(Scale(quick=True, traces=tuple(files)))
    assert all(old != new for old, new in zip(before, after, strict=True) if old["recorded"])


def test_the_beginning_of_all_traces_is_one_stretch_of_time(files):
    tcp, udp = recorded.from_files(files, 60)
    assert len(tcp) + len(udp) == 120
    assert min(tcp[0], udp[0]) == 0
    assert abs(tcp[-1] - udp[-1]) < 0.2
    assert len(tcp) > 2 * len(udp)


def test_recorded_arrivals_are_stretched_to_the_utilisation(files):
    instants = recorded.from_files(files, 60)
    queries = testbed.drawn(Setting(1), streams=2)
    tables = recorded.arrivals(instants, queries, 0.8)
    work = sum(len(table["at"]) * queries.work(place) for place, table in enumerate(tables))
    assert work / max(table["at"][-1] for table in tables) == pytest.approx(0.8)


def test_a_file_that_is_no_trace_is_refused_with_its_name(tmp_path):
    (tmp_path / "words").write_text("not a timestamp\n")
    with pytest.raises(DsmsError, match=r"words.*a timestamp first"):
        recorded.from_files([str(tmp_path / "words")], 10)
    with pytest.raises(DsmsError, match=r"nowhere.*a timestamp first"):
        recorded.from_files([str(tmp_path / "nowhere")], 10)
