"""Counts the lost, duplicated and wrong rows of a run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.expected import Rows


@dataclass(frozen=True)
class DeliveryCheck:
    """Counts of rows; a run is right when none is lost, duplicated or wrong."""

    compared: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0

    @property
    def right(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)

    def __add__(self, other: DeliveryCheck) -> DeliveryCheck:
        return DeliveryCheck(
            self.compared + other.compared,
            self.lost + other.lost,
            self.doubled + other.doubled,
            self.wrong + other.wrong,
        )

    def __str__(self) -> str:
        return f"{self.compared:,} results compared: {self.lost:,} lost, {self.doubled:,} doubled, {self.wrong:,} wrong"


def compare_rows(found: Rows, expected: Rows) -> DeliveryCheck:
    """Compare the rows that came with the expected rows."""
    more = found - expected
    doubled = sum(count for row, count in more.items() if row in expected)
    taken_back = sum(-count for count in found.values() if count < 0)  # of rows that never came
    return DeliveryCheck(
        expected.total(), (expected - +found).total(), doubled, sum(more.values()) - doubled + taken_back
    )


def check_order(numbers: Sequence[int]) -> DeliveryCheck:
    """Check the numbers of results as a subscriber has seen them: they must count from 1."""
    wanted = set(range(1, max(numbers, default=0) + 1))
    turned = sum(later < former for former, later in itertools.pairwise(numbers))
    return DeliveryCheck(0, len(wanted - set(numbers)), len(numbers) - len(set(numbers)), turned)
