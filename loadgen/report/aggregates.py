"""Writes the figures of a report as Parquet, one file per table: runs, phases, queries, windows, policies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from loadgen.report.analysis import Analysis
from loadgen.report.periods import RecordedRun
from loadgen.report.tally import Figures


def make_aggregates(
    runs: Sequence[RecordedRun], analysis: Analysis, policies: list[Figures], differences: list[Figures]
) -> dict[str, list[Figures]]:
    """All tables by name, without empty ones."""
    tables = {
        "runs": analysis.runs,
        "phases": analysis.phases,
        "queries": analysis.queries,
        "windows": analysis.windows,
        "burstiness": _list_scales(runs, analysis),
        "policies": policies,
        "differences": differences,
    }
    return {name: rows for name, rows in tables.items() if rows}


def write_tables(tables: dict[str, list[Figures]], folder: Path) -> None:
    """Write the tables to a folder, and remove those of an earlier report that no longer exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("runs", "phases", "queries", "windows", "burstiness", "policies", "differences"):
        path = folder / f"{name}.parquet"
        if name in tables:
            parquet.write_table(_make_table(tables[name]), path)
        else:
            path.unlink(missing_ok=True)


def _make_table(rows: list[Figures]) -> pa.Table:
    """An Arrow table of the rows; a column that is null everywhere gets the type float64."""
    table = pa.Table.from_pylist(rows)
    kinds = [(each.name, pa.float64() if pa.types.is_null(each.type) else each.type) for each in table.schema]
    return table.cast(pa.schema(kinds))


def _list_scales(runs: Sequence[RecordedRun], analysis: Analysis) -> list[Figures]:
    rows = []
    for (run, name), flow in analysis.flows.items():
        common = {"run": runs[run].label, "flow": name, "peak": flow.peak, "hurst": flow.hurst}
        for scale, dispersion in flow.dispersion.items():
            rows.append(
                common | {"scale": scale * flow.width, "dispersion": dispersion, "variance": flow.variances[scale]}
            )
    return rows
