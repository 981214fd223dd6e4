"""The figures as Parquet: a file for each table, a row for each run, phase, query, window or policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from loadgen.report.analysis import Analysis
from loadgen.report.periods import Run
from loadgen.report.tally import Figures


def aggregates(
    runs: Sequence[Run], found: Analysis, compared: list[Figures], differences: list[Figures]
) -> dict[str, list[Figures]]:
    """All tables by their names; those without rows are left out."""
    tables = {
        "runs": found.runs,
        "phases": found.phases,
        "queries": found.queries,
        "windows": found.windows,
        "burstiness": _scales(runs, found),
        "policies": compared,
        "differences": differences,
    }
    return {name: rows for name, rows in tables.items() if rows}


def write(tables: dict[str, list[Figures]], folder: Path) -> None:
    """Into a folder, instead of what a report has written there before."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("runs", "phases", "queries", "windows", "burstiness", "policies", "differences"):
        path = folder / f"{name}.parquet"
        if name in tables:
            parquet.write_table(_table(tables[name]), path)
        else:
            path.unlink(missing_ok=True)


def _table(rows: list[Figures]) -> pa.Table:
    """Its columns; one in which nothing is known is one of numbers all the same."""
    table = pa.Table.from_pylist(rows)
    kinds = [(each.name, pa.float64() if pa.types.is_null(each.type) else each.type) for each in table.schema]
    return table.cast(pa.schema(kinds))


def _scales(runs: Sequence[Run], found: Analysis) -> list[Figures]:
    rows = []
    for (run, name), flow in found.flows.items():
        told = {"run": runs[run].label, "flow": name, "peak": flow.peak, "hurst": flow.hurst}
        for scale, dispersion in flow.dispersion.items():
            rows.append(
                told | {"scale": scale * flow.width, "dispersion": dispersion, "variance": flow.variances[scale]}
            )
    return rows
