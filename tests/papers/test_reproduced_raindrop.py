"""Sutherland's Raindrop thesis: the verdict on each claim in short runs, and that it depends on the formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.experiments import judge_claims, run_experiment

import dsms.papers.raindrop.scores as scores
from dsms.papers import Measurements, Scale, Verdict
from dsms.papers.raindrop import PAPER
from dsms.papers.raindrop.runs import point
from dsms.papers.raindrop.single import SINGLES
from dsms.papers.raindrop.tables import TABLES
from dsms.papers.raindrop.window_join import LENGTH_S, WindowJoin
from dsms.policies.mtiq import MostTuplesInQueue

pytestmark = pytest.mark.papers

YES, HALF, NO = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT
# Claims that are not reproduced; all others are. "predictive" is ours: nothing in the thesis depends on it.
NOT_REPRODUCED = {
    "tables": {"first output of MTIQ": NO, "next output of MTIQ": NO, "rate of MTIQ": NO},
    "workload-rule": {},
    "single-algorithms": {"FIFO's memory": NO, "FIFO's rate": NO},
    "one-qos": {"memory": NO, "delay": NO, "delay, chosen": NO, "memory, tuned": HALF, "delay, tuned": HALF},
    "mixed-qos": {"figure 6.4": NO, "figure 6.5": HALF, "figure 6.6": NO, "figure 6.7": HALF},
    "changed-qos": {},
}
EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}


@pytest.fixture(scope="module")
def runs() -> dict[str, Measurements]:
    return {name: run_experiment(experiment) for name, experiment in EXPERIMENTS.items()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_claim_has_its_verdict(name: str, runs: dict[str, Measurements]) -> None:
    verdicts = {claim: judgement.verdict for claim, judgement in judge_claims(EXPERIMENTS[name], runs[name]).items()}
    assert verdicts == dict.fromkeys(verdicts, YES) | NOT_REPRODUCED[name]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_plot_has_lines_with_data(name: str, runs: dict[str, Measurements]) -> None:
    for plot in EXPERIMENTS[name].plots:
        lines = plot.lines(runs[name])
        assert lines, plot.name
        for line in lines:
            assert 0 < len(line.xs) == len(line.ys) <= 300
            assert all(map(math.isfinite, line.ys)), (plot.name, line.label)


def test_a_claim_that_is_not_reproduced_gives_a_reason_and_another_reading(runs: dict[str, Measurements]) -> None:
    for name, experiment in EXPERIMENTS.items():
        for claim, judgement in judge_claims(experiment, runs[name]).items():
            if judgement.verdict is not YES:
                assert judgement.claim.because, (name, claim)
                assert judgement.nearest is not None, (name, claim)


def test_with_a_capped_queue_mtiq_has_the_thesis_s_output(runs: dict[str, Measurements]) -> None:
    nearest = {name: judgement.nearest for name, judgement in judge_claims(TABLES, runs["tables"]).items()}
    first, rate = nearest["first output of MTIQ"], nearest["rate of MTIQ"]
    assert first is not None
    assert rate is not None
    assert first.mean == pytest.approx(15.25)
    assert rate.mean == pytest.approx(0.070, abs=5e-4)


def test_another_formula_for_mtiq_gives_other_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the fewest tuples first instead of the most, the tables are not reproduced, but there is output."""
    monkeypatch.setattr(MostTuplesInQueue, "priority", lambda self, segment: -segment.pending)
    verdicts = {name: judgement.verdict for name, judgement in judge_claims(TABLES, run_experiment(TABLES)).items()}
    assert verdicts["queues of MTIQ"] is NO
    assert verdicts["MTIQ at twice the rate"] is NO
    assert verdicts["queues of FIFO"] is YES


def test_another_formula_for_the_score_gives_other_leads(
    monkeypatch: pytest.MonkeyPatch, runs: dict[str, Measurements]
) -> None:
    mixed = EXPERIMENTS["mixed-qos"]
    before = {name: judgement.ours.mean for name, judgement in judge_claims(mixed, runs["mixed-qos"]).items()}
    monkeypatch.setattr(scores, "score_qos", lambda qos, z: 1 - sum(z.values()))
    after = {name: judgement.ours.mean for name, judgement in judge_claims(mixed, runs["mixed-qos"]).items()}
    assert before["figure 6.4"] != after["figure 6.4"]


def test_experiments_share_equal_points() -> None:
    scale = Scale()
    mine = {tuple(p.items()) for p in SINGLES.points(scale)}
    assert tuple(point("fifo", 300, 1).items()) in mine
    assert len(mine & {tuple(p.items()) for p in EXPERIMENTS["mixed-qos"].points(scale)}) == 16


def test_two_tuples_within_the_window_of_each_other_join_once() -> None:
    """Compared with all pairs; the second part remembers the first for the length of the window."""
    rng = np.random.default_rng(1)
    when, ports = np.sort(rng.uniform(0, 3, 200)), rng.integers(0, 2, 200)
    join = WindowJoin(cost=1.0, name="j", chance=1.0)
    counts = []
    for part in (slice(0, 77), slice(77, 200)):
        join.when, join.ports = when[part], ports[part]
        counts += join.outputs(np.arange(200, dtype=np.uint64)[part]).tolist()
    apart = when[:, None] - when[None, :]
    is_pair = (apart > 0) & (apart <= LENGTH_S) & (ports[:, None] != ports[None, :])
    assert counts == is_pair.sum(axis=1).tolist()


def test_pairs_satisfy_the_predicate_with_the_given_probability() -> None:
    join = WindowJoin(cost=1.0, name="j", chance=0.05)
    when = np.arange(20_000) / 1000.0
    join.when, join.ports = when, np.arange(20_000) % 2
    passed = join.outputs(np.arange(20_000, dtype=np.uint64))
    assert passed.sum() / (20_000 * 100) == pytest.approx(0.05, rel=0.02)
