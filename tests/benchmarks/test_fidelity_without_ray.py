"""The parts of `make fidelity` that need no cluster: rows in virtual time, and the plot."""

from __future__ import annotations

import pytest
from benchmarks.live.fidelity import PLANS, FidelityRow, Outcome, draw
from benchmarks.live.row_runs import make_frames, simulate_rows

PLAN = PLANS["auction"]
HOSTS = 3


@pytest.fixture(scope="module")
def frames():
    return make_frames(PLAN, 2.0)


def test_rows_that_are_due_together_are_one_frame_in_order_of_time(frames):
    assert [frame.due for frame in frames] == sorted(frame.due for frame in frames)
    assert {frame.stream for frame in frames} == {"bids", "auctions"}
    assert len({(frame.due, frame.stream) for frame in frames}) == len(frames)
    assert max(len(frame.batch) for frame in frames) > 1


def test_every_policy_gives_the_same_results_on_the_same_rows_and_is_repeatable(frames):
    runs = {policy: simulate_rows(PLAN, policy, frames, HOSTS) for policy in ("fifo", "chain", "fas-mcq")}
    assert len({run.results for run in runs.values()}) == 1
    assert simulate_rows(PLAN, "chain", frames, HOSTS) == runs["chain"]
    assert runs["chain"].latency != runs["fifo"].latency


def test_a_row_takes_a_thousand_times_its_cost_and_latency_counts_from_when_it_is_due(frames):
    """Alone, a frame of bids passes at least the operator of one query: a millisecond a row."""
    first = next(frame for frame in frames if frame.stream == "bids")._replace(due=5.0)
    alone = simulate_rows(PLAN, "fifo", [first], HOSTS)
    assert 5.0 + 1e-3 * len(first.batch) <= alone.elapsed < 5.0 + 20e-3 * len(first.batch)
    assert 1e-3 <= alone.latency <= alone.elapsed - 5.0


def test_the_plot_is_written_to_the_folder(tmp_path):
    simulated = Outcome(10, 0.1, 5.0, 7)
    live = simulated._replace(latency=0.12, memory=6.0)
    rows = [FidelityRow(plan, policy, simulated, live) for plan in ("path", "fork") for policy in ("fifo", "chain")]
    draw(rows, tmp_path / "plots")
    assert [file.name for file in (tmp_path / "plots").iterdir()] == ["fidelity.svg"]
    text = (tmp_path / "plots/fidelity.svg").read_text(encoding="utf-8")
    assert text.count('id="axes_') == 4
    assert "<!-- fork: mean memory -->" in text
