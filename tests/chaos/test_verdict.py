"""Chaos runs count lost, duplicated and wrong rows."""

from __future__ import annotations

from collections import Counter

import pytest

from chaos.verdict import DeliveryCheck, check_order, compare_rows

WANTED = Counter({(1,): 2, (2,): 1})


@pytest.mark.parametrize(
    ("found", "lost", "doubled", "wrong"),
    [
        ({(1,): 2, (2,): 1}, 0, 0, 0),
        ({(1,): 2, (2,): 1, (3,): 0}, 0, 0, 0),  # came, and was taken back
        ({(1,): 1, (2,): 1}, 1, 0, 0),
        ({}, 3, 0, 0),
        ({(1,): 4, (2,): 1}, 0, 2, 0),
        ({(1,): 2, (2,): 1, (3,): 1}, 0, 0, 1),
        ({(1,): 2, (2,): 1, (3,): -1}, 0, 0, 1),
        ({(1,): 3, (3,): 2}, 1, 1, 2),
    ],
)
def test_rows_are_compared(found, lost, doubled, wrong):
    verdict = compare_rows(Counter(found), WANTED)
    assert verdict == DeliveryCheck(3, lost, doubled, wrong)
    assert verdict.right == (lost == doubled == wrong == 0)


@pytest.mark.parametrize(
    ("numbers", "lost", "doubled", "wrong"),
    [([], 0, 0, 0), ([1, 2, 3], 0, 0, 0), ([1, 3], 1, 0, 0), ([1, 2, 2], 0, 1, 0), ([2, 1], 0, 0, 1)],
)
def test_numbers_are_one_after_the_other(numbers, lost, doubled, wrong):
    assert check_order(numbers) == DeliveryCheck(0, lost, doubled, wrong)
