"""The destinations of one query's results: its file, and the order in which subscribers get them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsms import io  # whose functions import pyarrow when they are used
from dsms.data.batch import Batch
from dsms.data.schema import Schema, conform, infer_schema
from dsms.errors import DsmsError, PlanError
from dsms.live.reorder_buffer import ReorderBuffer

log = logging.getLogger("dsms")


@dataclass
class OutputChannel:
    """One query's file, and how far its results are."""

    query: str
    target: Any  # the sink as in its plan; None: subscribers only
    schema: Schema | None
    is_append_only: bool
    folder: Path
    order: ReorderBuffer
    keeps_unwritten: bool  # whether batches that the disk refuses wait, or the file ends with the last complete one
    file_offset: int = 0  # bytes of its file that exist already
    sink: io.FileSink | None = None
    rows: int = 0
    error: str | None = None  # why its file is no longer written
    unwritten: list[Batch] = field(default_factory=list)

    def open_sink(self) -> None:
        """Open the file if its columns are known; else the first rows do."""
        if self.target is None or self.schema is None:
            return
        try:
            self.sink = io.open_sink(
                self.target, self.schema, self.is_append_only, self.folder, live=True, at=self.file_offset
            )
        except PlanError as error:
            raise error.within(f"queries.{self.query}.sink") from None

    def write(self, batch: Batch) -> None:
        """Write to the file; if that fails, subscribers still get the results, and the status says why."""
        if self.target is not None and (self.error is None or self.unwritten):
            self.unwritten.append(batch)
            self._write_waiting()

    def flush(self) -> None:
        """Write the batches that wait; DsmsError while the disk is full."""
        if self.unwritten:
            self._write_waiting()
        if self.unwritten:
            raise DsmsError(f"the results of {self.query!r} cannot be written: {self.error}; it will be retried")

    def position(self) -> int:
        """The bytes of the file up to its last complete batch."""
        return self.file_offset if self.sink is None else self.sink.position()

    def close(self, has_started: bool) -> None:
        """Finish the file; one that has not started is left as it was."""
        if self.sink is not None:
            (self.sink.close if has_started else self.sink.abandon)()

    def _write_waiting(self) -> None:
        """Write the batches that wait, from the last offset that was complete: a failed write may have left a part."""
        self.error = None
        try:
            while self.unwritten:
                sink = self._put(self.unwritten[0])
                if self.keeps_unwritten:
                    self.file_offset = sink.size
                del self.unwritten[0]
        except Exception as error:  # errors of file-format libraries included
            self.error = str(error)
            if not self.keeps_unwritten or not isinstance(error, OSError | PlanError):  # it would fail again
                self.unwritten.clear()
                log.error("results of %r are no longer written: %s", self.query, error)
            elif self.sink is not None:
                self.sink.discard()
                self.sink = None

    def _put(self, batch: Batch) -> io.FileSink:
        """Write to the file, opening it first if needed."""
        if self.schema is None:
            self.schema = infer_schema(batch)
        if self.sink is None:
            self.open_sink()
        assert self.sink is not None
        self.sink.write(conform(batch, self.schema, self.query))
        return self.sink
