"""A batch of a gateway's log that a domain applies in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef


class LogBatch(NamedTuple):
    """The entries between two offsets of a gateway's log, limited to streams that the domain reads."""

    gateway: str
    after_offset: int  # the offset the domain must have applied before
    last_offset: int  # the offset it has applied then
    contents: Sequence[tuple[str, Batch | BatchRef | int]] = ()  # by stream, in order: rows, or a watermark
    ends: bool = False  # all streams that the domain reads have ended
