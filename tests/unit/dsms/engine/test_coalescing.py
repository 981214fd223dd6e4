"""Which batches that wait together share a step, and what of them is kept."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

from dsms.data.batch import Batch
from dsms.engine.runners.coalescing import COALESCE_LIMIT_ROWS, join_in_order, take_joinable


def rows(*values: Any, **attributes: Any) -> Batch:
    return Batch.of({"x": np.array(values)}, **attributes)


def split(first: Batch, *others: Batch, most: float = float("inf")) -> tuple[int, int]:
    """How many batches share the step, and how many still wait."""
    queue = deque((batch, 0.0) for batch in others)
    return len(take_joinable(queue, first, most)), len(queue)


def test_batches_join_up_to_the_rows_of_the_share() -> None:
    assert split(rows(1, 2), rows(3), rows(4, 5), rows(6), most=5) == (3, 1)
    assert split(rows(1, 2), rows(3, 4), most=3) == (1, 1)


def test_large_batches_are_not_copied_together() -> None:
    assert split(rows(1), rows(*range(COALESCE_LIMIT_ROWS))) == (1, 1)


def test_every_row_keeps_what_belongs_to_it() -> None:
    parts = [
        rows(1, 2, seq=3, ts=10, arrived=0.5, sign=1),
        rows(3, seq=5, ts=20, arrived=0.75, sign=-1, watermark=21),
        Batch(watermark=30, seq=6),
    ]
    joined = join_in_order(parts)
    assert joined.columns["x"].tolist() == [1, 2, 3]
    assert joined.each("seq").tolist() == [3, 3, 5]
    assert joined.each("ts").tolist() == [10, 10, 20]
    assert joined.each("arrived").tolist() == [0.5, 0.5, 0.75]
    assert joined.each("sign").tolist() == [1, 1, -1]
    assert (joined.watermark, joined.ended) == (30, False)


def test_an_earlier_watermark_holds_for_rows_behind_it() -> None:
    assert join_in_order([rows(1, watermark=5), rows(2, ts=7)]).watermark == 5


def test_the_end_of_a_stream_is_kept() -> None:
    joined = join_in_order([rows(1), Batch(watermark=9, ended=True)])
    assert (len(joined), joined.watermark, joined.ended) == (1, 9, True)


@pytest.mark.parametrize("following", [
    rows(0.5),  # of another type
    Batch.of({"y": [1]}),
    rows(2, ts=4),  # older than the watermark: an operator may reject it as late
])  # fmt: skip
def test_what_would_change_by_joining_waits_for_its_own_step(following: Batch) -> None:
    assert split(rows(1, ts=5, watermark=6), following) == (1, 1)
