"""A part of a gateway's log that a domain applies in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef


class LogItem(NamedTuple):
    """What a domain has to know of an entry of the log: rows of a stream, or its watermark."""

    offset: int
    stream: str
    content: Batch | BatchRef | int


class LogBatch(NamedTuple):
    """The entries between two offsets of a gateway's log, limited to streams that the domain reads."""

    gateway: str
    after_offset: int  # the offset the domain must have applied before
    last_offset: int  # the offset it has applied then
    items: Sequence[LogItem] = ()
    ends: bool = False  # all streams that the domain reads have ended

    @classmethod
    def read(cls, fields: Sequence[Any]) -> LogBatch:
        """Return a log batch from its fields as received."""
        gateway, after_offset, last_offset, items, ends = fields
        return cls(gateway, after_offset, last_offset, [LogItem(*item) for item in items], ends)
