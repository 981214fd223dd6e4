"""Rows go when they are due: frames, waiting, and what is said of lateness; in virtual time."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms import Batch
from loadgen.pace import Delivery, Frame, frames, paced


def rows(due: list[float], first: int = 0) -> Batch:
    return Batch.of({"n": np.arange(first, first + len(due))}, arrived=np.array(due, dtype=np.float64))


class Time:
    """A clock that passes by waiting, and by so much with every frame that is sent."""

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


def test_rows_due_in_one_stretch_go_together_with_the_last_of_them() -> None:
    found = frames([("s", rows([0.0, 0.25, 0.5, 0.75, 3.0]))], 0.5)
    assert [(frame.at, frame.rows.columns["n"].tolist()) for frame in found] == [
        (0.25, [0, 1]),
        (0.75, [2, 3]),
        (3.0, [4]),
    ]


def test_frames_of_several_streams_go_in_the_order_they_are_due() -> None:
    found = frames([("s", rows([0.1, 0.2, 1.1])), ("t", rows([0.15, 1.05]))], 1.0)
    assert [(frame.at, frame.stream) for frame in found] == [(0.15, "t"), (0.2, "s"), (1.05, "t"), (1.1, "s")]


@given(st.lists(st.floats(0, 100), max_size=60), st.floats(0.01, 50))
def test_no_row_is_lost_none_goes_early_and_none_later_than_a_grain(due: list[float], grain: float) -> None:
    found = frames([("s", rows(due))], grain)
    assert sorted(n for frame in found for n in frame.rows.columns["n"].tolist()) == list(range(len(due)))
    for frame in found:
        arrived = frame.rows.each("arrived")
        assert (np.diff(arrived) >= 0).all()
        assert frame.at == arrived[-1]
        assert frame.at - arrived[0] <= grain


def test_rows_are_waited_for_and_those_that_are_late_go_at_once() -> None:
    time = Time(start=0.5, cost=1.0)
    schedule = frames([("s", rows([0.25, 1.0, 1.25, 9.0]))], 0.1)
    delivery = paced(schedule, time.send, time.now, time.wait)
    assert [(at, n) for at, _, n in time.sent] == [(0.5, [0]), (1.5, [1]), (2.5, [2]), (9.0, [3])]
    assert (delivery.rows, delivery.frames) == (4, 4)
    assert delivery.late == pytest.approx(2.25)  # the third was sent from 2.5 to 3.5
    assert delivery.lateness == pytest.approx(1.25 + 1.5 + 2.25 + 1.0)


def test_rows_sent_in_another_second_than_due_are_counted_once() -> None:
    delivery = Delivery(rows=10, due=Counter({0: 6, 1: 4}), sent=Counter({0: 5, 1: 3, 2: 2}))
    assert delivery.misplaced == pytest.approx(0.2)
    assert Delivery().misplaced == 0.0


def test_deliveries_add_up() -> None:
    one, other = Time(), Time()
    first = paced(frames([("s", rows([0.5, 1.5]))], 0.1), one.send, one.now, one.wait)
    first.add(paced(frames([("s", rows([1.25]))], 0.1), other.send, other.now, other.wait))
    assert (first.rows, first.frames, first.late) == (3, 3, 0.0)
    assert first.due == first.sent == Counter({1: 2, 0: 1})


def test_a_delivery_survives_being_written_down() -> None:
    delivery = Delivery(rows=3, frames=2, late=0.5, due=Counter({7: 3}), sent=Counter({7: 1, 8: 2}))
    assert Delivery.of_json(json.loads(json.dumps(delivery.to_json()))) == delivery
