"""Reads CSV as batches: parses blocks as columns, and reads only a block with a bad row row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from csv import reader as read_fields
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import csv

from dsms.data.batch import Batch, Column
from dsms.data.schema import Schema
from dsms.errors import PlanError, existing
from dsms.io.arrow_columns import batch_from_arrow, convert_column
from dsms.io.csv_records import CsvBlock, CsvRecord, CsvSplitter
from dsms.io.rejected_row import Reject, RejectedRow, explain_bad_value

BOM = b"\xef\xbb\xbf"
ASCII_TRANSLATION = bytes(range(128)) + b"x" * 128  # hides bytes that are not UTF-8 where only the structure counts


@dataclass(frozen=True)
class CsvFile:
    """Reads CSV text as batches: an empty field is null, a quoted empty field is an empty string."""

    name: str
    schema: Schema
    reject: Reject
    delimiter: str = ","
    header: bool = True

    def batches(self, chunks: Iterable[bytes]) -> Iterator[Batch]:
        """Yield a batch for each block of the text, rows in order."""
        records = CsvSplitter(self.delimiter)
        layout = None if self.header else CsvLayout({n: place for place, n in enumerate(self.schema)}, len(self.schema))
        for block in records.blocks(_strip_bom(chunks)):
            if block.open:
                self._reject(CsvRecord(block.line, block.data.rstrip(b"\r\n")), "a quote is never closed")
            elif layout is None:
                header, rest = records.first(block)
                if header.text:
                    layout = self._layout(header)
                    yield from self._rows(rest, records, layout)
            else:
                yield from self._rows(block, records, layout)

    def _layout(self, header: CsvRecord) -> CsvLayout:
        """Find the positions of the schema's columns in the header."""
        text = header.text.decode("utf-8", "backslashreplace")
        names = [name.strip() for name in next(read_fields([text], delimiter=self.delimiter))]
        for name in self.schema:
            if name not in names:
                raise PlanError(f"no column {name!r} in its header{existing(name, names)}", file=self.name)
            if names.count(name) > 1:
                raise PlanError(f"column {name!r} occurs {names.count(name)} times in its header", file=self.name)
        return CsvLayout({name: names.index(name) for name in self.schema}, len(names))

    def _rows(self, block: CsvBlock, records: CsvSplitter, layout: CsvLayout) -> Iterator[Batch]:
        """Yield the good rows of a block as a batch, and reject the bad rows."""
        found: list[CsvRecord] | None = None
        rejected: list[tuple[CsvRecord, str]] = []
        try:
            table = _parse_csv(block.data, self.delimiter, layout)
        except pa.ArrowInvalid:
            found, rejected = self._split_by_width(block, records, layout)
            table = _parse_csv(b"\n".join(record.text for record in found), self.delimiter, layout)
        texts = {name: _combine_chunks(table.column(str(place))) for name, place in layout.places.items()}
        columns: dict[str, pa.Array] = {}
        reasons: dict[int, str] = {}
        for name, kind in self.schema.fields:
            columns[name], bad = convert_column(texts[name], kind)
            for row in bad.tolist():
                reasons.setdefault(row, explain_bad_value(name, kind, texts[name][row].as_py()))
        if reasons:
            found = found or records.split(block)
            rejected += [(found[row], reason) for row, reason in reasons.items()]
            good = pa.array(_other_positions(reasons, table.num_rows))
            columns = {name: column.take(good) for name, column in columns.items()}
        for record, reason in sorted(rejected):
            self._reject(record, reason)
        if table.num_rows > len(reasons):
            yield batch_from_arrow(columns, self.schema)

    def _split_by_width(
        self, block: CsvBlock, records: CsvSplitter, layout: CsvLayout
    ) -> tuple[list[CsvRecord], list[tuple[CsvRecord, str]]]:
        """Return the records with the right number of fields, and the others with the reason to reject them."""
        field_counts: dict[int, int] = {}

        def skip(row: csv.InvalidRow) -> str:
            field_counts[row.number - 1] = row.actual_columns
            return "skip"

        _parse_csv(block.data.translate(ASCII_TRANSLATION), self.delimiter, layout, skip)
        found = records.split(block)
        right = [found[row] for row in _other_positions(field_counts, len(found)).tolist()]
        reasons = {
            row: f"{fields} field{'s' * (fields != 1)}, expected {layout.width}" for row, fields in field_counts.items()
        }
        return right, [(found[row], reason) for row, reason in reasons.items()]

    def _reject(self, record: CsvRecord, reason: str) -> None:
        text = record.text.decode("utf-8", "backslashreplace")
        self.reject(RejectedRow(self.name, record.line, text, reason))


@dataclass(frozen=True)
class CsvLayout:
    """The positions of the schema's columns in a row, and the number of fields of a row."""

    places: Mapping[str, int]
    width: int


def _parse_csv(data: bytes, delimiter: str, layout: CsvLayout, skip: Callable[..., str] | None = None) -> pa.Table:
    """Parse the fields as bytes, an empty field as null; a row of another width is an error, or calls `skip`."""
    names = [str(place) for place in range(layout.width)]
    included = [str(place) for place in layout.places.values()]
    if not data.strip(b"\r\n"):
        return pa.table({name: pa.array([], pa.binary()) for name in names})
    if not data.endswith((b"\n", b"\r")):
        data += b"\n"  # without it pyarrow reads an empty last field as quoted if the one before is
    return csv.read_csv(
        pa.py_buffer(data),
        csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip),
        csv.ConvertOptions(
            include_columns=included,
            column_types={name: pa.binary() for name in included},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], pa.binary())])


def _other_positions(rows: Iterable[int], count: int) -> Column:
    """Return the numbers below `count` that are not in `rows`."""
    kept = np.ones(count, dtype=bool)
    kept[list(rows)] = False
    return np.flatnonzero(kept)


def _strip_bom(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Remove the byte order mark that some systems write at the start of a file."""
    start = b""
    rest = iter(chunks)
    for chunk in rest:
        start += chunk
        if len(start) >= len(BOM):
            break
    yield start.removeprefix(BOM)
    yield from rest
