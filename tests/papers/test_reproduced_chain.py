"""Babcock et al., "Chain": the verdict on each claim in short runs, and that it depends on the policies' formulas."""

from __future__ import annotations

import numpy as np
import pytest
from support.experiments import judge_claims, run_experiment

from dsms.errors import DsmsError
from dsms.papers import Scale, Verdict
from dsms.papers.chain import PAPER
from dsms.papers.chain.data import instants
from dsms.papers.registry import select_experiments
from dsms.policies.chain import Chain
from dsms.policies.fifo import Fifo
from dsms.policies.greedy import Greedy

pytestmark = pytest.mark.papers

YES, DIRECTION, NOT = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT
EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}
VERDICTS = {  # in short runs, seed 1
    "example": {
        "table-greedy": YES,
        "table-fifo": YES,
        "threshold-greedy": YES,
        "threshold-fifo": YES,
        "empty-after-13": YES,
    },
    "two-operators": {"greedy-equals-chain": YES, "rr-almost-as-good": YES, "fifo-bad": YES},
    "four-operators": {
        "chain-far-better-than-greedy": NOT,
        "fifo-nearly-as-bad-as-greedy": NOT,
        "rr-nearly-as-bad-as-greedy": NOT,
        "chain-far-better-than-fifo": YES,
    },
    "join-with-relation": {"greedy-bad": YES, "rr-bad": YES},
    "window-join": {"greedy-much-worse": YES, "fifo-much-worse": YES},
    "multiple-queries": {"chain-beats-all": DIRECTION},
    "context-switches": {"fewer-than-fifo": YES, "fewer-than-rr": NOT, "fewer-than-greedy": DIRECTION},
    "uniform-arrivals": {"fifo-least": YES},
    "throughput": {"same-in-the-long-run": YES, "fifo-more-in-a-burst": YES, "fifo-ahead": YES},
    "greedy-as-chain": {"greedy-is-chain": YES, "and-not-elsewhere": YES},
}


@pytest.fixture(scope="module")
def runs():
    return {name: run_experiment(experiment) for name, experiment in EXPERIMENTS.items()}


def verdicts(name, rows):
    return {claim: judgement.verdict for claim, judgement in judge_claims(EXPERIMENTS[name], rows).items()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_claim_has_today_s_verdict(name, runs):
    assert verdicts(name, runs[name]) == VERDICTS[name]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_figure_has_lines_with_data_of_bounded_length(name, runs):
    for plot in EXPERIMENTS[name].plots:
        lines = plot.lines(runs[name])
        assert len(lines) >= 2
        for line in lines:
            assert 0 < len(line.xs) == len(line.ys) <= 300
            assert any(line.ys)


def test_a_claim_that_is_not_reproduced_gives_a_reason_and_a_nearer_reading(runs):
    for name, experiment in EXPERIMENTS.items():
        for claim, judgement in judge_claims(experiment, runs[name]).items():
            if judgement.verdict is not YES:
                assert judgement.claim.because, claim
                assert judgement.nearest is not None, claim
                assert judgement.nearest.off(judgement.claim.band) < judgement.ours.off(judgement.claim.band), claim


def test_fifo_with_the_priority_of_greedy_is_no_longer_bad(monkeypatch):
    monkeypatch.setattr(Fifo, "priority", Greedy.priority)
    assert verdicts("two-operators", run_experiment(EXPERIMENTS["two-operators"]))["fifo-bad"] is NOT
    assert verdicts("example", run_experiment(EXPERIMENTS["example"]))["threshold-fifo"] is NOT


def test_chain_with_the_inverse_priority_reproduces_little(monkeypatch):
    monkeypatch.setattr(Chain, "priority", lambda self, segment: -segment.slope)
    assert verdicts("join-with-relation", run_experiment(EXPERIMENTS["join-with-relation"]))["greedy-bad"] is NOT
    assert verdicts("greedy-as-chain", run_experiment(EXPERIMENTS["greedy-as-chain"]))["greedy-is-chain"] is NOT


# --- real data


def trace(path, seed, packets):
    """Write a trace as in the archive: a timestamp and other columns in each line; two lines are out of order."""
    at = np.cumsum(np.random.default_rng(seed).pareto(1.5, packets)) + 800_000_000
    at[[3, 4]] = at[[4, 3]]
    path.write_text("".join(f"{instant:.6f} 1 2 119 4075 512\n" for instant in at))
    return str(path)


@pytest.mark.parametrize("name", ["two-operators", "window-join"])
def test_a_trace_replaces_the_stand_in(name, tmp_path):
    scale = Scale(quick=True, traces=(trace(tmp_path / "dec-pkt-1.tcp", 1, 30_000),))
    experiment = EXPERIMENTS[name]
    rows = run_experiment(experiment, scale)
    assert "stand-in" not in rows.values("data")
    assert all(row.figures["tuples"] > 5000 for row in rows.where(data="trace").rows)
    real = next(plot for plot in experiment.plots if plot.name.endswith("-real"))
    assert {line.label for line in real.lines(rows)} >= {"Chain (trace)"}
    assert all(judgement.ours.mean >= 0 for judgement in judge_claims(experiment, rows).values())


def test_timestamps_are_sorted_and_counted_from_the_first(tmp_path):
    (tmp_path / "some").write_text("10.5 1 2\n11.0 1 2\n10.75 1 2\n")
    assert instants(str(tmp_path / "some")).tolist() == [0, 0.25, 0.5]


@pytest.mark.parametrize("text", ["", "yesterday 1 2\n", "nan 1\n", "1.5 1 2\n", "1.5 1\n1.5 2\n"])
def test_a_file_that_is_not_a_trace_is_refused_by_name(text, tmp_path):
    (tmp_path / "some").write_text(text)
    with pytest.raises(DsmsError, match=r"some' (cannot be read|has (no|too few) packets|has lines without)"):
        instants(str(tmp_path / "some"))


def test_a_figure_selects_its_experiment():
    ((paper, experiments),) = select_experiments("chain/window-join-real")
    assert paper is PAPER
    assert [experiment.name for experiment in experiments] == ["window-join"]
