"""The plan of long runs: two operators in a row, whose results name the rows they come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsms.data.batch import Batch, Column

CAPACITY = 20_000  # rows a second, by the declared costs
COLUMNS = 8
SCHEMA = {"id": "int64", **{f"c{number}": "int64" for number in range(1, COLUMNS)}}
SHARE = 0.5  # of a row's cost, at each operator


def look(batch: Batch) -> Column:
    """Keep all rows."""
    return np.ones(len(batch), dtype=bool)


def ids(batch: Batch) -> Batch:
    """Keep only the ids of rows."""
    return Batch(
        {"id": batch.columns["id"]},
        batch.rows,
        ts=batch.ts,
        arrived=batch.arrived,
        seq=batch.seq,
        watermark=batch.watermark,
    )


def table() -> dict[str, Any]:
    """Return the plan: one operator reads every row, another passes its id on; on a paced clock costs take time."""
    cost = SHARE / CAPACITY
    operators = [{"name": name, "function": f"soak.plan:{name}", "cost": cost} for name in ("look", "ids")]
    return {"streams": {"rows": {"schema": SCHEMA}}, "queries": {"seen": {"from": "rows", "operators": operators}}}


def rows(first: int, count: int) -> dict[str, Any]:
    """Return rows with these numbers."""
    numbers = np.arange(first, first + count)
    return {"id": numbers, **{f"c{number}": numbers * number for number in range(1, COLUMNS)}}
