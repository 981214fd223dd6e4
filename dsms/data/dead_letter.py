"""DeadLetter: rows that an operator rejects, with the kind of failure and the reason."""

from __future__ import annotations

from typing import NamedTuple

from dsms.data.batch import Batch


class DeadLetter(NamedTuple):
    """Rows that an operator could not process, and why; a file of dead letters or a counter keeps them."""

    kind: str  # "late" or "error"
    batch: Batch
    reason: str
    trace: str = ""  # the traceback, if the operator raised
