"""A recorded trace over again: as it was, faster or slower, once or without end."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dsms.arrivals.process import Arrivals, Floats
from dsms.batch import NULLS, Batch
from dsms.errors import DsmsError, PlanError
from dsms.schema import Schema


class TraceFile(NamedTuple):
    """A file of what was recorded: CSV, Parquet, or a folder of either's parts, as Spark writes them."""

    path: str

    @classmethod
    def at(cls, path: str, folder: Path) -> TraceFile:
        """The trace of this name, seen from a folder."""
        return cls(str((folder / path).absolute()))

    def column(self, name: str, kind: str) -> Batch:
        """One of its columns, as this type; what cannot be read is told as the fault of `path`."""
        path = Path(self.path)
        if not path.exists():
            raise PlanError(f"no such file; looked for {self.path!r}", "path")
        return _read(self.path, name, kind, path.stat().st_mtime_ns)

    def instants(self, column: str) -> Floats:
        """When its tuples came, from the first on."""
        read = self.column(column, "float64")
        at: Floats = read.columns[column]
        missing = read.columns.get(column + NULLS, np.zeros(len(at), dtype=bool)) | ~np.isfinite(at)
        for row in np.flatnonzero(missing):
            raise PlanError(f"{self.path!r}, row {row + 1}: no instant in column {column!r}", "path")
        for row in np.flatnonzero(at[1:] < at[:-1]) + 1:
            before, value = at[row - 1 : row + 1].tolist()
            said = f"{value!r} given after {before!r}; instants in ascending order wanted"
            raise PlanError(f"{self.path!r}, row {row + 1}, column {column!r}: {said}", "path")
        if not len(at):
            raise PlanError(f"{self.path!r} has no rows: there is nothing to replay", "path")
        since: Floats = at - at[0]
        return since


@lru_cache(maxsize=16)
def _read(path: str, column: str, kind: str, changed: int) -> Batch:
    """A column, kept for the next who asks, as long as the file has not `changed`."""
    from dsms.files import stored

    parts = Path(path).is_dir() and any(Path(path).rglob("*.parquet"))
    form = "parquet" if parts or path.endswith(".parquet") else "csv"
    try:
        read = stored({form: path}, Schema.of({column: kind}), Path())
    except PlanError as error:
        raise PlanError(f"{path!r}: {error.message}", "path") from None
    except DsmsError as error:
        raise PlanError(f"cannot read {path!r}: {error}", "path") from None
    for values in read.columns.values():
        values.flags.writeable = False  # others read it too
    return read


class Replay(Arrivals):
    """The instants of a trace, from 0 on; after the last a mean gap passes, and it begins again if it is to `loop`."""

    def __init__(self, trace: TraceFile, at: Floats, loop: bool) -> None:
        span = float(at[-1])
        super().__init__((len(at) - 1) / span if span else float(len(at)))
        self.trace, self._at = trace, at
        self._length = len(at) / self.rate  # of a round
        if not loop:
            self._count = len(at)

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        first, last = self._before(start), self._before(stop)
        return first, self._instants(np.arange(first, last))

    def _before(self, instant: float) -> int:
        """How many tuples come before an instant, but for rounding."""
        turn = int(max(0.0, instant) / self._length)
        return turn * len(self._at) + int(np.searchsorted(self._at, instant - turn * self._length))

    def _instants(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
        turn, within = np.divmod(numbers, len(self._at))
        return turn * self._length + self._at[within]

    def _instant(self, number: int) -> float:
        return float(self._instants(np.array([number]))[0])
