"""File sinks: write a query's results to a file or to standard output."""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.errors import DsmsError, PlanError, existing
from dsms.io.arrow_columns import ARROW_TYPES, arrow_from_batch
from dsms.io.writers import WRITERS

PART_SUFFIX = ".part"
STANDARD_OUTPUT = "-"


class SinkClosedError(DsmsError):
    """The reader of standard output has closed it."""


class FileSink:
    """Writes results with a leading `ts` column, and a `sign` column for relations; timestamps are int64 microseconds.

    The file is called `name.part` until `close` renames it; `abandon` leaves it under that name. A `live` sink writes
    under the final name and flushes after each batch, for readers that follow the file. A sink opened `at` a position
    truncates the file there and appends.
    """

    def __init__(
        self, form: str, path: Path | None, schema: Schema, is_append_only: bool, live: bool = False, at: int = 0
    ) -> None:
        self.schema = sink_schema(schema, is_append_only)
        self._given = schema
        self._live = live and form != "parquet"  # Parquet cannot be read before it is complete
        # A pipe or a device has no part file; a symbolic link stays one.
        self._path = None if path is None or self._live or _is_special(path) else path.resolve()
        self._file = _StandardOutput() if path is None else _open_file(path, self._path, at)
        types = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in self.schema.fields])
        self._writer = WRITERS[form](cast(BinaryIO, self._file), types, at > 0)

    def write(self, batch: Batch) -> None:
        """Write some rows; raise SinkClosedError if the reader of standard output has closed it."""
        if len(batch):
            attributes = [batch.each("ts"), batch.each("sign")][: len(self.schema) - len(self._given)]
            leading = [pa.array(np.asarray(values, dtype=np.int64)) for values in attributes]
            columns = [*leading, *arrow_from_batch(batch, self._given).values()]
            self._writer.write(dict(zip(self.schema, columns, strict=True)))
            if self._live:
                self._file.flush()

    def position(self) -> int:
        """Sync a live file to disk, and return its size in bytes; 0: it cannot be resumed."""
        if size := self.size:
            self._file.flush()
            os.fsync(self._file.fileno())
        return size

    @property
    def size(self) -> int:
        """The size of a live file in bytes; 0: it cannot be resumed, such as a pipe."""
        return self._file.tell() if self._live and self._file.seekable() else 0

    def close(self) -> None:
        """Finish the file and rename it to its final name; do nothing if it is closed or abandoned."""
        was_closed = self._file.closed
        self.abandon()
        if self._path is not None and not was_closed:
            os.replace(_part_path(self._path), self._path)

    def discard(self) -> None:
        """Close a file after a write error, without flushing; part of the buffered rows may be in the file."""
        (self._file.raw if isinstance(self._file, io.BufferedWriter) else self._file).close()

    def abandon(self) -> None:
        """Finish the file but keep its `.part` name; do nothing if it is closed."""
        if self._file.closed:
            return
        with suppress(SinkClosedError):
            self._writer.close()
        self._file.close()


def sink_schema(schema: Schema, is_append_only: bool) -> Schema:
    """Return the columns that a sink writes; `_ts` or `_sign` lead if a query itself has a column `ts` or `sign`."""
    leading = [("ts", "timestamp")] if is_append_only else [("ts", "timestamp"), ("sign", "int64")]
    return Schema((*((_free_column_name(name, schema), kind) for name, kind in leading), *schema.fields))


def open_sink(
    target: Mapping[str, Any] | str,
    schema: Schema,
    is_append_only: bool,
    folder: Path,
    overwrite: bool = True,
    live: bool = False,
    at: int = 0,
) -> FileSink:
    """Open the sink that a plan's `{ jsonl = "out.jsonl" }` (or `csv`, or `parquet`) or "stdout" describes.

    A path is relative to `folder`, `-` is standard output, a suffix `.gz` compresses.
    """
    if isinstance(target, str):
        if target != "stdout":
            raise PlanError(f'a sink of {target!r}: it must be "stdout" or a table with one of {sorted(WRITERS)}')
        target = {"jsonl": STANDARD_OUTPUT}
    for key in target:
        if key not in WRITERS:
            raise PlanError(f"no format {key!r}{existing(str(key), WRITERS)}", str(key))
    if len(target) != 1:
        raise PlanError(f"a sink with keys {sorted(target)}: it must have exactly one of {sorted(WRITERS)}")
    [(form, name)] = target.items()
    if not isinstance(name, str) or not name:
        raise PlanError(f"{form} is {name!r}: it must be the path of a file", form)
    if name == STANDARD_OUTPUT:
        if form == "parquet":
            raise PlanError("Parquet cannot go to standard output, only csv or jsonl", form)
        return FileSink(form, None, schema, is_append_only, live)
    path = folder / name
    if path.is_dir():
        raise PlanError(f"{str(path)!r} is a folder: it must be the path of a file", form)
    if path.exists() and not overwrite:
        raise PlanError(f"{str(path)!r} already exists and would be overwritten", form)
    return FileSink(form, path, schema, is_append_only, live, at)


def _free_column_name(name: str, schema: Schema) -> str:
    return name if name not in schema else _free_column_name("_" + name, schema)


def _part_path(path: Path) -> Path:
    return path.with_name(path.name + PART_SUFFIX)


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _open_file(path: Path, whole: Path | None, at: int = 0) -> io.BufferedIOBase:
    """Open a file to write: the part file of `whole`, or `path` itself if there is none."""
    part = path if whole is None else _part_path(whole)
    try:
        if at:
            if (size := part.stat().st_size) < at:
                raise PlanError(
                    f"{str(path)!r} has {size} bytes, but {at} were written to it: the file has been replaced"
                )
            os.truncate(part, at)
            return open(part, "ab")
        return gzip.open(part, "wb") if path.suffix == ".gz" else open(part, "wb")
    except OSError as error:
        raise PlanError(f"{str(path)!r} cannot be written: {error.strerror}") from None


class _StandardOutput(io.RawIOBase):
    """Unbuffered standard output: every row is visible to the reader when it is written."""

    def __init__(self) -> None:
        if sys.stdout is None:
            raise PlanError("standard output is closed: write the results to a file instead")
        sys.stdout.flush()
        self._raw = getattr(sys.stdout.buffer, "raw", sys.stdout.buffer)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        left = memoryview(data)
        try:
            while left:
                left = left[self._raw.write(left) :]
        except BrokenPipeError:
            raise SinkClosedError("standard output was closed by its reader") from None
        return memoryview(data).nbytes
