"""CSV in: blocks parsed and converted as columns; only a block with a bad row is looked at row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from csv import reader as read_fields
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import csv

from dsms.batch import Batch, Column
from dsms.errors import PlanError, existing
from dsms.files.columns import batch_of, fitted
from dsms.files.records import Block, Record, Records
from dsms.files.rejected import Reject, Rejected, unfit
from dsms.schema import Schema

BOM = b"\xef\xbb\xbf"
ASCII = bytes(range(128)) + b"x" * 128  # where only the structure counts, bytes that are not UTF-8 must not hurt


@dataclass(frozen=True)
class CsvFile:
    """CSV text as batches: an empty field is null, but empty text in quotes is text."""

    name: str
    schema: Schema
    reject: Reject
    delimiter: str = ","
    header: bool = True

    def batches(self, chunks: Iterable[bytes]) -> Iterator[Batch]:
        """A batch for each block of the text, rows in order."""
        records = Records(self.delimiter)
        layout = None if self.header else Layout({n: place for place, n in enumerate(self.schema)}, len(self.schema))
        for block in records.blocks(_without_bom(chunks)):
            if block.open:
                self._reject(Record(block.line, block.data.rstrip(b"\r\n")), "a quote is opened and never closed")
            elif layout is None:
                header, rest = records.first(block)
                if header.text:
                    layout = self._layout(header)
                    yield from self._rows(rest, records, layout)
            else:
                yield from self._rows(block, records, layout)

    def _layout(self, header: Record) -> Layout:
        """Where the schema's columns stand, by the names in the header."""
        text = header.text.decode("utf-8", "backslashreplace")
        names = [name.strip() for name in next(read_fields([text], delimiter=self.delimiter))]
        for name in self.schema:
            if name not in names:
                raise PlanError(f"no column {name!r} in its header{existing(name, names)}", file=self.name)
            if names.count(name) > 1:
                raise PlanError(f"column {name!r} stands {names.count(name)} times in its header", file=self.name)
        return Layout({name: names.index(name) for name in self.schema}, len(names))

    def _rows(self, block: Block, records: Records, layout: Layout) -> Iterator[Batch]:
        """The good rows of a block as a batch; the bad ones are handed on."""
        found: list[Record] | None = None
        wrong: list[tuple[Record, str]] = []
        try:
            table = _parsed(block.data, self.delimiter, layout)
        except pa.ArrowInvalid:
            found, wrong = self._by_width(block, records, layout)
            table = _parsed(b"\n".join(record.text for record in found), self.delimiter, layout)
        texts = {name: _whole(table.column(str(place))) for name, place in layout.places.items()}
        columns: dict[str, pa.Array] = {}
        reasons: dict[int, str] = {}
        for name, kind in self.schema.fields:
            columns[name], bad = fitted(texts[name], kind)
            for row in bad.tolist():
                reasons.setdefault(row, unfit(name, kind, texts[name][row].as_py()))
        if reasons:
            found = found or records.split(block)
            wrong += [(found[row], reason) for row, reason in reasons.items()]
            good = pa.array(_others(reasons, table.num_rows))
            columns = {name: column.take(good) for name, column in columns.items()}
        for record, reason in sorted(wrong):
            self._reject(record, reason)
        if table.num_rows > len(reasons):
            yield batch_of(columns, self.schema)

    def _by_width(
        self, block: Block, records: Records, layout: Layout
    ) -> tuple[list[Record], list[tuple[Record, str]]]:
        """The records with as many fields as there are columns, and the others with what they have."""
        wrong: dict[int, int] = {}

        def skip(row: csv.InvalidRow) -> str:
            wrong[row.number - 1] = row.actual_columns
            return "skip"

        _parsed(block.data.translate(ASCII), self.delimiter, layout, skip)
        found = records.split(block)
        right = [found[row] for row in _others(wrong, len(found)).tolist()]
        said = {
            row: f"{fields} field{'s' * (fields != 1)} given, {layout.width} wanted" for row, fields in wrong.items()
        }
        return right, [(found[row], reason) for row, reason in said.items()]

    def _reject(self, record: Record, reason: str) -> None:
        text = record.text.decode("utf-8", "backslashreplace")
        self.reject(Rejected(self.name, record.line, text, reason))


@dataclass(frozen=True)
class Layout:
    """Where in a row the wanted columns stand, and how many fields a row has."""

    places: Mapping[str, int]
    width: int


def _parsed(data: bytes, delimiter: str, layout: Layout, skip: Callable[..., str] | None = None) -> pa.Table:
    """The fields as bytes, nulls where there is nothing between two delimiters; a row of another width is an error."""
    names = [str(place) for place in range(layout.width)]
    wanted = [str(place) for place in layout.places.values()]
    if not data.strip(b"\r\n"):
        return pa.table({name: pa.array([], pa.binary()) for name in names})
    if not data.endswith((b"\n", b"\r")):
        data += b"\n"  # without it pyarrow takes an empty last field for quoted if the one before is
    return csv.read_csv(
        pa.py_buffer(data),
        csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip),
        csv.ConvertOptions(
            include_columns=wanted,
            column_types={name: pa.binary() for name in wanted},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], pa.binary())])


def _others(rows: Iterable[int], count: int) -> Column:
    """The numbers below `count` that are not among these."""
    kept = np.ones(count, dtype=bool)
    kept[list(rows)] = False
    return np.flatnonzero(kept)


def _without_bom(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The text without the mark that some systems put at its start."""
    start = b""
    rest = iter(chunks)
    for chunk in rest:
        start += chunk
        if len(start) >= len(BOM):
            break
    yield start.removeprefix(BOM)
    yield from rest
