"""Sutherland, Raindrop thesis, reproduced: the verdict on every claim in short runs, and what verdicts depend on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reproduced import judged, measured

import dsms.papers.raindrop.scores as scores
from dsms.papers import Measured, Scale, Verdict
from dsms.papers.raindrop import PAPER
from dsms.papers.raindrop.runs import point
from dsms.papers.raindrop.single import SINGLES
from dsms.papers.raindrop.tables import TABLES
from dsms.papers.raindrop.window_join import LENGTH, WindowJoin
from dsms.policies.mtiq import MostTuplesInQueue

pytestmark = pytest.mark.papers

YES, HALF, NO = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT
# Claims that do not come out; all others are reproduced. "predictive" is ours: nothing in the thesis depends on it.
FALLEN = {
    "tables": {"first output of MTIQ": NO, "next output of MTIQ": NO, "rate of MTIQ": NO},
    "workload-rule": {},
    "single-algorithms": {"FIFO's memory": NO, "FIFO's rate": NO},
    "one-qos": {"memory": NO, "delay": NO, "delay, chosen": NO, "memory, tuned": HALF, "delay, tuned": HALF},
    "mixed-qos": {"figure 6.4": NO, "figure 6.5": HALF, "figure 6.6": NO, "figure 6.7": HALF},
    "changed-qos": {},
}
EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}


@pytest.fixture(scope="module")
def found() -> dict[str, Measured]:
    return {name: measured(experiment) for name, experiment in EXPERIMENTS.items()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_claim_has_its_verdict(name: str, found: dict[str, Measured]) -> None:
    verdicts = {claim: judgement.verdict for claim, judgement in judged(EXPERIMENTS[name], found[name]).items()}
    assert verdicts == dict.fromkeys(verdicts, YES) | FALLEN[name]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_plot_has_lines_with_data(name: str, found: dict[str, Measured]) -> None:
    for plot in EXPERIMENTS[name].plots:
        lines = plot.lines(found[name])
        assert lines, plot.name
        for line in lines:
            assert 0 < len(line.xs) == len(line.ys) <= 300
            assert all(map(math.isfinite, line.ys)), (plot.name, line.label)


def test_what_is_not_reproduced_says_why_and_shows_another_reading(found: dict[str, Measured]) -> None:
    for name, experiment in EXPERIMENTS.items():
        for claim, judgement in judged(experiment, found[name]).items():
            if judgement.verdict is not YES:
                assert judgement.claim.because, (name, claim)
                assert judgement.nearest is not None, (name, claim)


def test_capped_as_the_thesis_must_have_meant_mtiq_puts_out_as_it_says(found: dict[str, Measured]) -> None:
    nearest = {name: judgement.nearest for name, judgement in judged(TABLES, found["tables"]).items()}
    first, rate = nearest["first output of MTIQ"], nearest["rate of MTIQ"]
    assert first is not None
    assert rate is not None
    assert first.mean == pytest.approx(15.25)
    assert rate.mean == pytest.approx(0.070, abs=5e-4)


def test_another_formula_for_mtiq_gives_other_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fewest tuples first instead of the most: the tables do not come out, but there is output."""
    monkeypatch.setattr(MostTuplesInQueue, "priority", lambda self, segment: -segment.pending)
    verdicts = {name: judgement.verdict for name, judgement in judged(TABLES, measured(TABLES)).items()}
    assert verdicts["queues of MTIQ"] is NO
    assert verdicts["MTIQ at twice the rate"] is NO
    assert verdicts["queues of FIFO"] is YES


def test_another_formula_for_the_score_gives_other_leads(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, Measured]
) -> None:
    mixed = EXPERIMENTS["mixed-qos"]
    before = {name: judgement.ours.mean for name, judgement in judged(mixed, found["mixed-qos"]).items()}
    monkeypatch.setattr(scores, "score", lambda qos, z: 1 - sum(z.values()))
    after = {name: judgement.ours.mean for name, judgement in judged(mixed, found["mixed-qos"]).items()}
    assert before["figure 6.4"] != after["figure 6.4"]


def test_points_are_shared_between_experiments_where_they_are_alike() -> None:
    scale = Scale()
    mine = {tuple(p.items()) for p in SINGLES.points(scale)}
    assert tuple(point("fifo", 300, 1).items()) in mine
    assert len(mine & {tuple(p.items()) for p in EXPERIMENTS["mixed-qos"].points(scale)}) == 16


def test_two_tuples_within_the_window_of_each_other_meet_once() -> None:
    """Against all pairs, in two parts: what came before is remembered for as long as the window is."""
    chance = np.random.default_rng(1)
    when, ports = np.sort(chance.uniform(0, 3, 200)), chance.integers(0, 2, 200)
    join = WindowJoin(cost=1.0, name="j", chance=1.0)
    counts = []
    for part in (slice(0, 77), slice(77, 200)):
        join.when, join.ports = when[part], ports[part]
        counts += join.outputs(np.arange(200, dtype=np.uint64)[part]).tolist()
    apart = when[:, None] - when[None, :]
    meet = (apart > 0) & (apart <= LENGTH) & (ports[:, None] != ports[None, :])
    assert counts == meet.sum(axis=1).tolist()


def test_pairs_satisfy_the_predicate_as_often_as_is_said() -> None:
    join = WindowJoin(cost=1.0, name="j", chance=0.05)
    when = np.arange(20_000) / 1000.0
    join.when, join.ports = when, np.arange(20_000) % 2
    passed = join.outputs(np.arange(20_000, dtype=np.uint64))
    assert passed.sum() / (20_000 * 100) == pytest.approx(0.05, rel=0.02)
