"""Where a query's results go when they go to files or to standard output."""

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

from dsms.batch import Batch
from dsms.errors import DsmsError, PlanError, existing
from dsms.files.columns import ARROW, arrow_of
from dsms.files.writers import WRITERS
from dsms.schema import Schema

PART = ".part"
STANDARD_OUTPUT = "-"


class SinkClosedError(DsmsError):
    """Whoever read standard output has gone: there is no one to write for."""


class Sink:
    """Results as rows with their `ts` in front, and the `sign` of a relation's: a file is there once it is whole.

    Until `close` it is called `name.part`; after `abandon` it stays so, with what was written until then. A `live` one
    is for people who watch it grow: lines are there, under the file's own name, as soon as they are written.
    A timestamp is int64 microseconds in every format. One that is opened `at` a position goes on there: what was behind
    it is cut off.
    """

    def __init__(
        self, form: str, path: Path | None, schema: Schema, appends: bool, live: bool = False, at: int = 0
    ) -> None:
        self.schema = written(schema, appends)
        self._given = schema
        self._live = live and form != "parquet"  # of which nothing can be read before it is whole
        # What is no file, as a pipe or a device, is written to as it is; a link stays one.
        self._path = None if path is None or self._live or _is_special(path) else path.resolve()
        self._file = _StandardOutput() if path is None else _opened(path, self._path, at)
        types = pa.schema([(name, ARROW[kind]) for name, kind in self.schema.fields])
        self._writer = WRITERS[form](cast(BinaryIO, self._file), types, at > 0)

    def write(self, batch: Batch) -> None:
        """Put these rows out; SinkClosedError if whoever read standard output has gone."""
        if len(batch):
            attributes = [batch.each("ts"), batch.each("sign")][: len(self.schema) - len(self._given)]
            leading = [pa.array(np.asarray(values, dtype=np.int64)) for values in attributes]
            columns = [*leading, *arrow_of(batch, self._given).values()]
            self._writer.write(dict(zip(self.schema, columns, strict=True)))
            if self._live:
                self._file.flush()

    def position(self) -> int:
        """The bytes of a live file so far, durable on return; 0 of one that cannot be gone on with."""
        if size := self.size:
            self._file.flush()
            os.fsync(self._file.fileno())
        return size

    @property
    def size(self) -> int:
        """The bytes of a live file so far; 0 of one that cannot be gone on with, as a pipe."""
        return self._file.tell() if self._live and self._file.seekable() else 0

    def close(self) -> None:
        """Finish the file and give it its name; nothing if that is done, or the file is abandoned."""
        finished = self._file.closed
        self.abandon()
        if self._path is not None and not finished:
            os.replace(_part_of(self._path), self._path)

    def discard(self) -> None:
        """Let go of a file that could not be written, and of what it should have got: some of that may be there."""
        (self._file.raw if isinstance(self._file, io.BufferedWriter) else self._file).close()

    def abandon(self) -> None:
        """Finish what was written, and leave it under the name of a part; nothing if the file is closed."""
        if self._file.closed:
            return
        with suppress(SinkClosedError):
            self._writer.close()
        self._file.close()


def written(schema: Schema, appends: bool) -> Schema:
    """The columns a sink writes; `_ts` or `_sign` lead where a query has a column `ts` or `sign` itself."""
    leading = [("ts", "timestamp")] if appends else [("ts", "timestamp"), ("sign", "int64")]
    return Schema((*((_free(name, schema), kind) for name, kind in leading), *schema.fields))


def sink_from(
    target: Mapping[str, Any] | str,
    schema: Schema,
    appends: bool,
    folder: Path,
    overwrite: bool = True,
    live: bool = False,
    at: int = 0,
) -> Sink:
    """The sink that a plan's `{ jsonl = "out.jsonl" }` (or `csv`, or `parquet`) or "stdout" describes.

    A path is relative to `folder`, `-` is standard output, a suffix `.gz` compresses.
    """
    if isinstance(target, str):
        if target != "stdout":
            raise PlanError(f'{target!r} given, "stdout" or a table with one of {sorted(WRITERS)} wanted')
        target = {"jsonl": STANDARD_OUTPUT}
    for key in target:
        if key not in WRITERS:
            raise PlanError(f"no format {key!r}{existing(str(key), WRITERS)}", str(key))
    if len(target) != 1:
        raise PlanError(f"{sorted(target)} given, exactly one of {sorted(WRITERS)} wanted")
    [(form, name)] = target.items()
    if not isinstance(name, str) or not name:
        raise PlanError(f"{name!r} given, the path of a file wanted", form)
    if name == STANDARD_OUTPUT:
        if form == "parquet":
            raise PlanError("Parquet cannot go to standard output, only csv or jsonl", form)
        return Sink(form, None, schema, appends, live)
    path = folder / name
    if path.is_dir():
        raise PlanError(f"{str(path)!r} is a folder: the path of a file wanted", form)
    if path.exists() and not overwrite:
        raise PlanError(f"{str(path)!r} exists already: it would be overwritten", form)
    return Sink(form, path, schema, appends, live, at)


def _free(name: str, schema: Schema) -> str:
    return name if name not in schema else _free("_" + name, schema)


def _part_of(path: Path) -> Path:
    return path.with_name(path.name + PART)


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _opened(path: Path, whole: Path | None, at: int = 0) -> io.BufferedIOBase:
    """A file to write to: a part of the whole that it will be, if it is to be one."""
    part = path if whole is None else _part_of(whole)
    try:
        if at:
            if (size := part.stat().st_size) < at:
                raise PlanError(f"{str(path)!r} has {size} bytes, {at} were written to it: it is another file now")
            os.truncate(part, at)
            return open(part, "ab")
        return gzip.open(part, "wb") if path.suffix == ".gz" else open(part, "wb")
    except OSError as error:
        raise PlanError(f"{str(path)!r} cannot be written: {error.strerror}") from None


class _StandardOutput(io.RawIOBase):
    """Standard output without a buffer: every row is out when it is written, and nothing is left at the end."""

    def __init__(self) -> None:
        if sys.stdout is None:
            raise PlanError("standard output is closed: there is nowhere to write to")
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
