"""File sources: opens the files that a plan names for a stream, and yields their rows as batches."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, BinaryIO, cast

from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.errors import DsmsError, PlanError, existing
from dsms.io.arrow_columns import empty_batch
from dsms.io.csv_file import CsvFile
from dsms.io.jsonl_file import JsonlFile
from dsms.io.parquet_file import ParquetFile
from dsms.io.rejected_row import Reject, raise_rejected

BATCH_ROWS = 10_000
BLOCK_BYTES = 1 << 20  # read at a time: some ten thousand rows
STANDARD_INPUT = "-"
OPTIONS = {"csv": {"header", "delimiter", "on_error"}, "jsonl": {"on_error"}, "parquet": {"on_error"}}
ON_ERROR = ("dead-letter", "fail")


class SourceError(DsmsError):
    """A file that cannot be read to its end."""


@dataclass(frozen=True)
class FileSource:
    """Files of one format, read lazily as batches; every iteration starts from the first file."""

    format: str
    paths: tuple[str, ...]
    schema: Schema
    reject: Reject = raise_rejected
    delimiter: str = ","
    header: bool = True
    rows: int = BATCH_ROWS
    block: int = BLOCK_BYTES

    def __iter__(self) -> Iterator[Batch]:
        for path in self.paths:
            for batch in self._read(path):
                for start in range(0, len(batch), self.rows):
                    whole = len(batch) <= self.rows
                    yield batch if whole else batch.pick(slice(start, start + self.rows))

    def _read(self, path: str) -> Iterator[Batch]:
        if self.format == "parquet":
            return ParquetFile(path, self.schema, self.reject).batches(path, self.rows)
        if self.format == "jsonl":
            return JsonlFile(path, self.schema, self.reject).batches(self._chunks(path))
        return CsvFile(path, self.schema, self.reject, self.delimiter, self.header).batches(self._chunks(path))

    def _chunks(self, path: str) -> Iterator[bytes]:
        """Yield the bytes of a file; from standard input as they come, so that a slow writer's rows do not wait."""
        if path == STANDARD_INPUT:
            stdin = cast(io.BufferedReader, sys.stdin.buffer)
            yield from iter(lambda: stdin.read1(self.block), b"")
            return
        try:
            with _open_file(path) as file:
                yield from iter(lambda: file.read(self.block), b"")
        except (OSError, EOFError, zlib.error) as error:
            raise SourceError(f"{path}: {error}") from error


def _open_file(path: str) -> BinaryIO | gzip.GzipFile:
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")


def open_source(
    table: Mapping[str, Any],
    schema: Schema,
    folder: Path,
    rejected: Reject | None = None,
    rows: int = BATCH_ROWS,
    block: int = BLOCK_BYTES,
) -> FileSource:
    """Open the source that a plan's table `{ csv = "bids.csv" }` describes; bad rows go to `rejected`.

    Formats are `csv` (with `header`, by default true, and `delimiter`), `jsonl` and `parquet`; a path is relative to
    `folder` and may be a folder or a pattern; `-` is standard input. With `on_error = "fail"`, or without `rejected`,
    the first bad row raises MalformedRowError.
    """
    form = _read_format(table)
    for key in table:
        if key != form and key not in OPTIONS[form]:
            raise PlanError(f"no option {key!r} of a {form} source{existing(key, OPTIONS[form])}", key)
    on_error = table.get("on_error", ON_ERROR[0])
    if on_error not in ON_ERROR:
        raise PlanError(f"no on_error {on_error!r}; there are {sorted(ON_ERROR)}", "on_error")
    reject = raise_rejected if rejected is None or on_error == "fail" else rejected
    header = table.get("header", True)
    if not isinstance(header, bool):
        raise PlanError(f"header is {header!r}: it must be true or false", "header")
    paths = _expand_paths(table[form], form, folder)
    return FileSource(form, paths, schema, reject, _check_delimiter(table.get("delimiter", ",")), header, rows, block)


def read_relation_rows(table: Mapping[str, Any], schema: Schema, folder: Path, rejected: Reject | None = None) -> Batch:
    """Read all rows of a stored relation as one batch."""
    return Batch.joined(list(open_source(table, schema, folder, rejected)) or [empty_batch(schema)])


def _read_format(table: Mapping[str, Any]) -> str:
    formats = [key for key in table if key in OPTIONS]
    if len(formats) != 1:
        raise PlanError(f"a source with keys {sorted(table)}: it must have exactly one of {sorted(OPTIONS)}")
    return formats[0]


def _check_delimiter(delimiter: Any) -> str:
    is_char = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if not is_char or delimiter in '"\r\n':
        raise PlanError(
            f"delimiter is {delimiter!r}: it must be one ASCII character, not a quote or a line end", "delimiter"
        )
    return str(delimiter)


def _expand_paths(name: Any, form: str, folder: Path) -> tuple[str, ...]:
    """Return the files that a path names: one file, all files of a folder, or the matches of a pattern, sorted."""
    if not isinstance(name, str) or not name:
        raise PlanError(f"{form} is {name!r}: it must be the path of a file", form)
    if name == STANDARD_INPUT:
        if form == "parquet":
            raise PlanError("standard input cannot be read as Parquet, only as csv or jsonl", form)
        return (name,)
    path = folder / name
    if path.is_dir():
        files = sorted(f for tail in ("", ".gz") for f in path.rglob(f"*.{form}{tail}") if f.is_file())
    elif path.exists():
        files = [path]
    else:
        files = sorted(file for file in map(Path, glob(str(path), recursive=True)) if file.is_file())
    if not files:
        siblings = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        raise PlanError(f"no file {str(path)!r}{existing(path.name, siblings)}", form)
    return tuple(map(str, files))
