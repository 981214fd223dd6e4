"""Collects the rows of a batch for which an expression fails, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsms.data.batch import Column


@dataclass
class RowErrors:
    """The rows for which an evaluation failed; their values are arbitrary."""

    found: list[tuple[Column | None, str]] = field(default_factory=list)  # positions (None: every row), reason

    def add(self, bad: Any, nulls: Any, reason: str) -> None:
        """Add the bad rows that are not null; `bad` is a mask, or one value for all rows."""
        if nulls is not None:
            bad = bad & np.logical_not(nulls)
        if np.ndim(bad):
            positions = bad.nonzero()[0]
            if len(positions):
                self.found.append((positions, reason))
        elif bad:
            self.found.append((None, reason))

    def count(self, inner: RowErrors, mask: Any) -> None:
        """Add a part's errors where the mask, or one value for all rows, is true."""
        for positions, reason in inner.found:
            if np.ndim(mask) == 0:
                if mask:
                    self.found.append((positions, reason))
            elif positions is None:
                self.add(mask, None, reason)
            elif len(deciding := positions[mask[positions]]):
                self.found.append((deciding, reason))

    def move(self, inner: RowErrors, at: Column) -> None:
        """Add the errors of a part that was evaluated only for the rows at some positions."""
        self.found += [(at if positions is None else at[positions], reason) for positions, reason in inner.found]

    def by_reason(self, rows: int) -> list[tuple[Column, str]]:
        """Return positions of bad rows with the reason: each row once, with its first reason."""
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
