"""Pieces of a load go one after the other, whoever sends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsms.errors import FailedError
from loadgen import turns
from loadgen.turns import Turns


def test_windows_of_two_lanes_in_three_partitions_are_numbered_in_the_order_of_time() -> None:
    lanes = [Turns("", lane, 2, 3) for lane in range(2)]
    found = [lanes[window % 2].place(window // 2, partition) for window in range(4) for partition in range(3)]
    assert found == list(range(12))


def test_a_piece_waits_for_the_one_before_and_the_first_for_none(tmp_path: Path) -> None:
    one, naps = Turns(str(tmp_path), 0, 1, 1), []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            one.done(0)

    one.wait(0, nap)
    assert naps == []
    one.wait(1, nap)
    assert len(naps) == 3


def test_a_piece_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.01)
    with pytest.raises(FailedError, match=r"piece 5 of the load waits for the one before: not sent after 0\.01 s"):
        Turns(str(tmp_path), 0, 1, 1).wait(5, lambda _: None)
