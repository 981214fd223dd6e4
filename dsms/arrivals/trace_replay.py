"""Replays a recorded trace: at its own speed, faster or slower, once or in a loop."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dsms.arrivals.process import Arrivals, Floats
from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.schema import Schema
from dsms.errors import DsmsError, PlanError


class ArrivalTraceFile(NamedTuple):
    """A recorded trace: a CSV or Parquet file, or a folder of parts as Spark writes them."""

    path: str

    @classmethod
    def at(cls, path: str, folder: Path) -> ArrivalTraceFile:
        """Return the trace of this name, relative to a folder."""
        return cls(str((folder / path).absolute()))

    def column(self, name: str, kind: str) -> Batch:
        """Return a column as this type; errors point at `path`."""
        path = Path(self.path)
        if not path.exists():
            raise PlanError(f"no such file; looked for {self.path!r}", "path")
        return _read_column(self.path, name, kind, path.stat().st_mtime_ns)

    def instants(self, column: str) -> Floats:
        """Return the arrival instants relative to the first."""
        read = self.column(column, "float64")
        at: Floats = read.columns[column]
        missing = read.columns.get(column + NULLS_SUFFIX, np.zeros(len(at), dtype=bool)) | ~np.isfinite(at)
        for row in np.flatnonzero(missing):
            raise PlanError(f"{self.path!r}, row {row + 1}: no instant in column {column!r}", "path")
        for row in np.flatnonzero(at[1:] < at[:-1]) + 1:
            before, value = at[row - 1 : row + 1].tolist()
            said = f"{value!r} given after {before!r}; expected instants in ascending order"
            raise PlanError(f"{self.path!r}, row {row + 1}, column {column!r}: {said}", "path")
        if not len(at):
            raise PlanError(f"{self.path!r} has no rows: there is nothing to replay", "path")
        since: Floats = at - at[0]
        return since


@lru_cache(maxsize=16)
def _read_column(path: str, column: str, kind: str, changed: int) -> Batch:
    """Return a column, cached until the file has `changed`."""
    from dsms.io import read_relation_rows

    parts = Path(path).is_dir() and any(Path(path).rglob("*.parquet"))
    form = "parquet" if parts or path.endswith(".parquet") else "csv"
    try:
        read = read_relation_rows({form: path}, Schema.of({column: kind}), Path())
    except PlanError as error:
        raise PlanError(f"{path!r}: {error.message}", "path") from None
    except DsmsError as error:
        raise PlanError(f"cannot read {path!r}: {error}", "path") from None
    for values in read.columns.values():
        values.flags.writeable = False  # the cache shares it
    return read


class ReplayedArrivals(Arrivals):
    """A trace from instant 0 on; with `loop` it starts again one mean gap after its last tuple."""

    def __init__(self, trace: ArrivalTraceFile, at: Floats, loop: bool) -> None:
        span = float(at[-1])
        super().__init__((len(at) - 1) / span if span else float(len(at)))
        self.trace, self._at = trace, at
        self._length = len(at) / self.rate  # of one round
        if not loop:
            self._count = len(at)

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        first, last = self._before(start), self._before(stop)
        return first, self._instants(np.arange(first, last))

    def _before(self, instant: float) -> int:
        """Return how many tuples come before an instant, up to rounding."""
        turn = int(max(0.0, instant) / self._length)
        return turn * len(self._at) + int(np.searchsorted(self._at, instant - turn * self._length))

    def _instants(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
        turn, within = np.divmod(numbers, len(self._at))
        return turn * self._length + self._at[within]

    def _instant(self, number: int) -> float:
        return float(self._instants(np.array([number]))[0])
