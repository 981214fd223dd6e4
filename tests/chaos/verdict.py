"""What came of a run: rows that are missing, that are there too often, and that should not be there at all."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.expected import Rows


@dataclass(frozen=True)
class Verdict:
    """How many of each; all none is right."""

    compared: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0

    @property
    def right(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.compared + other.compared,
            self.lost + other.lost,
            self.doubled + other.doubled,
            self.wrong + other.wrong,
        )

    def __str__(self) -> str:
        return f"{self.compared:,} results compared: {self.lost:,} lost, {self.doubled:,} doubled, {self.wrong:,} wrong"


def compared(found: Rows, wanted: Rows) -> Verdict:
    """Rows as they were found, and as they are wanted."""
    more = found - wanted
    doubled = sum(count for row, count in more.items() if row in wanted)
    taken_back = sum(-count for count in found.values() if count < 0)  # that never were there
    return Verdict(wanted.total(), (wanted - +found).total(), doubled, sum(more.values()) - doubled + taken_back)


def in_order(numbers: Sequence[int]) -> Verdict:
    """The numbers of results as a subscriber has seen them: 1, 2, 3 …"""
    wanted = set(range(1, max(numbers, default=0) + 1))
    turned = sum(later < former for former, later in itertools.pairwise(numbers))
    return Verdict(0, len(wanted - set(numbers)), len(numbers) - len(set(numbers)), turned)
