"""Parquet in: its columns, converted where their types differ from the schema's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from dsms.batch import Batch
from dsms.errors import PlanError, existing
from dsms.files.columns import batch_of, fitted
from dsms.files.rejected import Reject, Rejected, unfit
from dsms.schema import Schema


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file as batches; the line of a bad row is its number in the file, its text the row as JSON."""

    name: str
    schema: Schema
    reject: Reject

    def batches(self, path: str, rows: int) -> Iterator[Batch]:
        """At most so many rows at a time, in order."""
        try:
            file = parquet.ParquetFile(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise PlanError(f"cannot be read as Parquet: {error}", file=self.name) from None
        with file:
            for name in self.schema:
                if name not in file.schema_arrow.names:
                    raise PlanError(f"no column {name!r}{existing(name, file.schema_arrow.names)}", file=self.name)
            number = 1
            for part in file.iter_batches(rows, columns=list(self.schema)):
                batch = self._batch(part, number)
                number += part.num_rows
                if len(batch):
                    yield batch

    def _batch(self, part: pa.RecordBatch, number: int) -> Batch:
        columns: dict[str, pa.Array] = {}
        reasons: dict[int, str] = {}
        for name, kind in self.schema.fields:
            given = part.column(name)
            try:
                columns[name], bad = fitted(given, kind)
            except pa.ArrowNotImplementedError:
                raise PlanError(f"column {name!r} is {given.type}: {kind} wanted", file=self.name) from None
            for row in bad.tolist():
                reasons.setdefault(row, unfit(name, kind, given[row].as_py()))
        if reasons:
            for row in sorted(reasons):
                text = json.dumps(part.slice(row, 1).to_pylist()[0], default=str, ensure_ascii=False)
                self.reject(Rejected(self.name, number + row, text, reasons[row]))
            good = pa.array(np.delete(np.arange(part.num_rows), list(reasons)))
            columns = {name: column.take(good) for name, column in columns.items()}
        return batch_of(columns, self.schema)
