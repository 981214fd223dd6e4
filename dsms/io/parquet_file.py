"""Reads Parquet as batches, and converts columns whose types differ from the schema's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.errors import PlanError, existing
from dsms.io.arrow_columns import batch_from_arrow, convert_column
from dsms.io.rejected_row import Reject, RejectedRow, explain_bad_value


@dataclass(frozen=True)
class ParquetFile:
    """Reads a Parquet file as batches; a rejected row's line is its row number, its text the row as JSON."""

    name: str
    schema: Schema
    reject: Reject

    def batches(self, path: str, rows: int) -> Iterator[Batch]:
        """Yield batches of at most `rows` rows, in order."""
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
            column = part.column(name)
            try:
                columns[name], bad = convert_column(column, kind)
            except pa.ArrowNotImplementedError:
                raise PlanError(f"column {name!r} is {column.type}, expected {kind}", file=self.name) from None
            for row in bad.tolist():
                reasons.setdefault(row, explain_bad_value(name, kind, column[row].as_py()))
        if reasons:
            for row in sorted(reasons):
                text = json.dumps(part.slice(row, 1).to_pylist()[0], default=str, ensure_ascii=False)
                self.reject(RejectedRow(self.name, number + row, text, reasons[row]))
            good = pa.array(np.delete(np.arange(part.num_rows), list(reasons)))
            columns = {name: column.take(good) for name, column in columns.items()}
        return batch_from_arrow(columns, self.schema)
