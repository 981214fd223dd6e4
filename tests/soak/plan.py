"""What long runs run: two operators in a row, and results that say which rows they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsms.batch import Batch, Column

CAPACITY = 20_000  # rows a second, by the declared costs
COLUMNS = 8
SCHEMA = {"id": "int64", **{f"c{number}": "int64" for number in range(1, COLUMNS)}}
SHARE = 0.5  # of a row's cost that the first operator has


def look(batch: Batch) -> Column:
    """All are to be kept."""
    return np.ones(len(batch), dtype=bool)


def ids(batch: Batch) -> Batch:
    """Only which rows they are."""
    return Batch(
        {"id": batch.columns["id"]}, batch.rows, ts=batch.ts, arrived=batch.arrived, seq=batch.seq, upto=batch.upto
    )


def table() -> dict[str, Any]:
    """Every row is looked at by one operator and passed on by another; costs are waited out."""
    cost = SHARE / CAPACITY
    operators = [{"name": name, "function": f"soak.plan:{name}", "cost": cost} for name in ("look", "ids")]
    return {"streams": {"rows": {"schema": SCHEMA}}, "queries": {"seen": {"from": "rows", "operators": operators}}}


def rows(first: int, count: int) -> dict[str, Any]:
    """Rows with these numbers."""
    numbers = np.arange(first, first + count)
    return {"id": numbers, **{f"c{number}": numbers * number for number in range(1, COLUMNS)}}
