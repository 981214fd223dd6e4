"""Writes rows to a binary file as JSON lines, CSV or Parquet: one writer for each format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import BinaryIO

import pyarrow as pa
from pyarrow import csv, parquet

from dsms.io.json_text import write_json_lines

ROW_GROUP_ROWS = 100_000  # of Parquet


class Writer(ABC):
    """Writes rows in one format."""

    @abstractmethod
    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Write some rows."""

    @abstractmethod
    def close(self) -> None:
        """Write the remaining rows and the end of the format."""


class JsonlWriter(Writer):
    """Writes one JSON object per line."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, is_resumed: bool = False) -> None:
        self._file = file

    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Write some rows."""
        for text in write_json_lines(columns):
            self._file.write(text)

    def close(self) -> None:
        """Flush the file."""
        self._file.flush()


class CsvWriter(Writer):
    """Writes a header and one line per row; strings are quoted, so that an empty string differs from a null."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, is_resumed: bool = False) -> None:
        self._writer = csv.CSVWriter(file, schema, write_options=csv.WriteOptions(include_header=not is_resumed))
        self._schema = schema

    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Write some rows."""
        self._writer.write(pa.table(dict(columns), schema=self._schema))

    def close(self) -> None:
        """Write the remaining rows."""
        self._writer.close()


class ParquetWriter(Writer):
    """Writes row groups of many batches each: small row groups make files large and slow to read."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, is_resumed: bool = False) -> None:
        self._writer = parquet.ParquetWriter(file, schema)
        self._schema = schema
        self._waiting: list[pa.Table] = []

    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Buffer some rows until they fill a row group."""
        self._waiting.append(pa.table(dict(columns), schema=self._schema))
        if sum(table.num_rows for table in self._waiting) >= ROW_GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
            self._waiting = []


WRITERS: dict[str, type[JsonlWriter] | type[CsvWriter] | type[ParquetWriter]] = {
    "csv": CsvWriter,
    "jsonl": JsonlWriter,
    "parquet": ParquetWriter,
}
