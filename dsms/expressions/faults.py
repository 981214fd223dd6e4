"""Rows of a batch for which an expression has no value, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsms.batch import Column


@dataclass
class Faults:
    """What went wrong while an expression was worked out; the values of these rows are arbitrary."""

    found: list[tuple[Column | None, str]] = field(default_factory=list)  # positions (None: every row), reason

    def add(self, bad: Any, nulls: Any, reason: str) -> None:
        """Rows that are bad; those that are null anyway are not: a mask, or one answer for all rows."""
        if nulls is not None:
            bad = bad & np.logical_not(nulls)
        if np.ndim(bad):
            positions = bad.nonzero()[0]
            if len(positions):
                self.found.append((positions, reason))
        elif bad:
            self.found.append((None, reason))

    def count(self, inner: Faults, mask: Any) -> None:
        """Those of a part that count only where the mask, or the one answer for all rows, is true."""
        for positions, reason in inner.found:
            if np.ndim(mask) == 0:
                if mask:
                    self.found.append((positions, reason))
            elif positions is None:
                self.add(mask, None, reason)
            elif len(deciding := positions[mask[positions]]):
                self.found.append((deciding, reason))

    def move(self, inner: Faults, at: Column) -> None:
        """Those of a part that was worked out for the rows at some positions alone."""
        self.found += [(at if positions is None else at[positions], reason) for positions, reason in inner.found]

    def by_reason(self, rows: int) -> list[tuple[Column, str]]:
        """Positions of faulty rows and what is wrong with them: each row once, with the first reason."""
        seen = np.zeros(rows, dtype=bool)
        reasons = []
        for positions, reason in self.found:
            mask = np.zeros(rows, dtype=bool)
            mask[slice(None) if positions is None else positions] = True
            first = (mask & ~seen).nonzero()[0]
            if len(first):
                reasons.append((first, reason))
            seen |= mask
        return reasons
