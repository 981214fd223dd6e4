"""The formats results are written in: rows to bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import BinaryIO

import pyarrow as pa
from pyarrow import csv, parquet

from dsms.files.json_text import json_lines

GROUP = 100_000  # rows in a row group of Parquet


class Writer(ABC):
    """One format: rows to bytes."""

    @abstractmethod
    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Put these rows out."""

    @abstractmethod
    def close(self) -> None:
        """Put out what is left, and what the format wants at its end."""


class JsonlWriter(Writer):
    """An object a line."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, goes_on: bool = False) -> None:
        self._file = file

    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Put these rows out."""
        for text in json_lines(columns):
            self._file.write(text)

    def close(self) -> None:
        """Put out what is left."""
        self._file.flush()


class CsvWriter(Writer):
    """A header and a line a row; text in quotes, so that empty text is not null, which is nothing at all."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, goes_on: bool = False) -> None:
        self._writer = csv.CSVWriter(file, schema, write_options=csv.WriteOptions(include_header=not goes_on))
        self._schema = schema

    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Put these rows out."""
        self._writer.write(pa.table(dict(columns), schema=self._schema))

    def close(self) -> None:
        """Put out what is left."""
        self._writer.close()


class ParquetWriter(Writer):
    """Row groups of many batches each: small ones make large files that are slow to read."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, goes_on: bool = False) -> None:
        self._writer = parquet.ParquetWriter(file, schema)
        self._schema = schema
        self._waiting: list[pa.Table] = []

    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Keep these rows until they are worth a row group."""
        self._waiting.append(pa.table(dict(columns), schema=self._schema))
        if sum(table.num_rows for table in self._waiting) >= GROUP:
            self._flush()

    def close(self) -> None:
        """Put out what is left, and the footer."""
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
