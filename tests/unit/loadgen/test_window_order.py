"""Pieces of a load are sent in order, whichever task sends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsms.errors import FailedError
from loadgen.push import window_order
from loadgen.push.window_order import WindowOrder


def test_windows_of_two_lanes_in_three_partitions_are_numbered_in_the_order_of_time() -> None:
    lanes = [WindowOrder("", lane, 2, 3) for lane in range(2)]
    places = [lanes[window % 2].place(window // 2, partition) for window in range(4) for partition in range(3)]
    assert places == list(range(12))


def test_a_piece_waits_for_the_one_before_and_the_first_for_none(tmp_path: Path) -> None:
    order, naps = WindowOrder(str(tmp_path), 0, 1, 1), []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            order.mark_sent(0)

    order.wait(0, sleep)
    assert naps == []
    order.wait(1, sleep)
    assert len(naps) == 3


def test_a_piece_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_order, "WAIT_TIMEOUT_S", 0.01)
    with pytest.raises(FailedError, match=r"piece 5 of the load has waited 0\.01 s for a task to send piece 4"):
        WindowOrder(str(tmp_path), 0, 1, 1).wait(5, lambda _: None)
