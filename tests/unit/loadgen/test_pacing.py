"""Rows are sent when they are due: frames, waiting, and the counts of lateness; in virtual time."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms import Batch
from loadgen.push.pacing import Frame, SendStats, make_frames, send_paced


def rows(due: list[float], first: int = 0) -> Batch:
    return Batch.of({"n": np.arange(first, first + len(due))}, arrived=np.array(due, dtype=np.float64))


class FakeClock:
    """A clock that advances by waiting, and by `cost` with every frame that is sent."""

    def __init__(self, start: float = 0.0, cost: float = 0.0) -> None:
        self.at, self.cost = start, cost
        self.sent: list[tuple[float, str, list[int]]] = []

    def now(self) -> float:
        return self.at

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.at += seconds

    def send(self, frame: Frame) -> None:
        self.sent.append((self.at, frame.stream, frame.rows.columns["n"].tolist()))
        self.at += self.cost


def test_rows_due_in_one_interval_are_sent_together_with_the_last_of_them() -> None:
    frames = make_frames([("s", rows([0.0, 0.25, 0.5, 0.75, 3.0]))], 0.5)
    assert [(frame.at, frame.rows.columns["n"].tolist()) for frame in frames] == [
        (0.25, [0, 1]),
        (0.75, [2, 3]),
        (3.0, [4]),
    ]


def test_frames_of_several_streams_are_in_the_order_in_which_they_are_due() -> None:
    frames = make_frames([("s", rows([0.1, 0.2, 1.1])), ("t", rows([0.15, 1.05]))], 1.0)
    assert [(frame.at, frame.stream) for frame in frames] == [(0.15, "t"), (0.2, "s"), (1.05, "t"), (1.1, "s")]


@given(st.lists(st.floats(0, 100), max_size=60), st.floats(0.01, 50))
def test_no_row_is_lost_or_early_and_none_later_than_a_grain(due: list[float], grain: float) -> None:
    frames = make_frames([("s", rows(due))], grain)
    assert sorted(n for frame in frames for n in frame.rows.columns["n"].tolist()) == list(range(len(due)))
    for frame in frames:
        arrived = frame.rows.each("arrived")
        assert (np.diff(arrived) >= 0).all()
        assert frame.at == arrived[-1]
        assert frame.at - arrived[0] <= grain


def test_rows_wait_until_they_are_due_and_late_rows_are_sent_at_once() -> None:
    time = FakeClock(start=0.5, cost=1.0)
    schedule = make_frames([("s", rows([0.25, 1.0, 1.25, 9.0]))], 0.1)
    stats = send_paced(schedule, time.send, time.now, time.wait)
    assert [(at, n) for at, _, n in time.sent] == [(0.5, [0]), (1.5, [1]), (2.5, [2]), (9.0, [3])]
    assert (stats.rows, stats.frames) == (4, 4)
    assert stats.late == pytest.approx(2.25)  # the third was sent from 2.5 to 3.5
    assert stats.lateness == pytest.approx(1.25 + 1.5 + 2.25 + 1.0)


def test_rows_sent_in_another_second_than_due_are_counted_once() -> None:
    stats = SendStats(rows=10, due=Counter({0: 6, 1: 4}), sent=Counter({0: 5, 1: 3, 2: 2}))
    assert stats.share_misplaced == pytest.approx(0.2)
    assert SendStats().share_misplaced == 0.0


def test_counts_of_tasks_add_up() -> None:
    one, other = FakeClock(), FakeClock()
    first = send_paced(make_frames([("s", rows([0.5, 1.5]))], 0.1), one.send, one.now, one.wait)
    first.add(send_paced(make_frames([("s", rows([1.25]))], 0.1), other.send, other.now, other.wait))
    assert (first.rows, first.frames, first.late) == (3, 3, 0.0)
    assert first.due == first.sent == Counter({1: 2, 0: 1})


def test_counts_survive_json() -> None:
    stats = SendStats(rows=3, frames=2, late=0.5, due=Counter({7: 3}), sent=Counter({7: 1, 8: 2}))
    assert SendStats.of_json(json.loads(json.dumps(stats.to_json()))) == stats
