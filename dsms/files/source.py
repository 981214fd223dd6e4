"""Where a stream's rows come from when they are in files."""

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

from dsms.batch import Batch
from dsms.errors import DsmsError, PlanError, existing
from dsms.files.columns import empty
from dsms.files.csv_file import CsvFile
from dsms.files.jsonl_file import JsonlFile
from dsms.files.parquet_file import ParquetFile
from dsms.files.rejected import Reject, fail
from dsms.schema import Schema

ROWS = 10_000
BLOCK = 1 << 20  # bytes read at a time: some ten thousand rows
STANDARD_INPUT = "-"
OPTIONS = {"csv": {"header", "delimiter", "on_error"}, "jsonl": {"on_error"}, "parquet": {"on_error"}}
ON_ERROR = ("dead-letter", "fail")


class SourceError(DsmsError):
    """A file that cannot be read to its end."""


@dataclass(frozen=True)
class Source:
    """Files of one format as batches, read as they are asked for; every iteration begins anew."""

    format: str
    paths: tuple[str, ...]
    schema: Schema
    reject: Reject = fail
    delimiter: str = ","
    header: bool = True
    rows: int = ROWS
    block: int = BLOCK

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
        """The bytes of a file; from standard input whatever there is, so that a slow writer's rows do not wait."""
        if path == STANDARD_INPUT:
            given = cast(io.BufferedReader, sys.stdin.buffer)
            yield from iter(lambda: given.read1(self.block), b"")
            return
        try:
            with _opened(path) as file:
                yield from iter(lambda: file.read(self.block), b"")
        except (OSError, EOFError, zlib.error) as error:
            raise SourceError(f"{path}: {error}") from error


def _opened(path: str) -> BinaryIO | gzip.GzipFile:
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")


def source_from(
    table: Mapping[str, Any],
    schema: Schema,
    folder: Path,
    rejected: Reject | None = None,
    rows: int = ROWS,
    block: int = BLOCK,
) -> Source:
    """The source that a plan's table `{ csv = "bids.csv" }` describes; bad rows go to `rejected`, if any.

    Formats are `csv` (with `header`, by default true, and `delimiter`), `jsonl` and `parquet`; a path is relative to
    `folder` and may be a folder or a pattern; `-` is standard input. With `on_error = "fail"`, or without anyone who
    takes bad rows, the first one raises RowError.
    """
    form = _format(table)
    for key in table:
        if key != form and key not in OPTIONS[form]:
            raise PlanError(f"no option {key!r} of a {form} source{existing(key, OPTIONS[form])}", key)
    on_error = table.get("on_error", ON_ERROR[0])
    if on_error not in ON_ERROR:
        raise PlanError(f"{on_error!r} given, one of {sorted(ON_ERROR)} wanted", "on_error")
    reject = fail if rejected is None or on_error == "fail" else rejected
    header = table.get("header", True)
    if not isinstance(header, bool):
        raise PlanError(f"{header!r} given, true or false wanted", "header")
    paths = _paths(table[form], form, folder)
    return Source(form, paths, schema, reject, _delimiter(table.get("delimiter", ",")), header, rows, block)


def stored(table: Mapping[str, Any], schema: Schema, folder: Path, rejected: Reject | None = None) -> Batch:
    """All the rows of a file as one batch."""
    return Batch.joined(list(source_from(table, schema, folder, rejected)) or [empty(schema)])


def _format(table: Mapping[str, Any]) -> str:
    formats = [key for key in table if key in OPTIONS]
    if len(formats) != 1:
        raise PlanError(f"{sorted(table)} given, exactly one of {sorted(OPTIONS)} wanted")
    return formats[0]


def _delimiter(given: Any) -> str:
    if not isinstance(given, str) or len(given) != 1 or not given.isascii() or given in '"\r\n':
        raise PlanError(f"{given!r} given, one ASCII character wanted that is no quote and no line end", "delimiter")
    return given


def _paths(given: Any, form: str, folder: Path) -> tuple[str, ...]:
    """The files a path stands for: itself, those of a folder, or those that a pattern fits, by name."""
    if not isinstance(given, str) or not given:
        raise PlanError(f"{given!r} given, the path of a file wanted", form)
    if given == STANDARD_INPUT:
        if form == "parquet":
            raise PlanError("standard input cannot be read as Parquet, only as csv or jsonl", form)
        return (given,)
    path = folder / given
    if path.is_dir():
        found = sorted(f for tail in ("", ".gz") for f in path.rglob(f"*.{form}{tail}") if f.is_file())
    elif path.exists():
        found = [path]
    else:
        found = sorted(file for file in map(Path, glob(str(path), recursive=True)) if file.is_file())
    if not found:
        there = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        raise PlanError(f"no file {str(path)!r}{existing(path.name, there)}", form)
    return tuple(map(str, found))
