"""Finds the rows of a batch that an operator raises on, by bisection, and processes all others."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace

from dsms.data.batch import Batch
from dsms.data.dead_letter import DeadLetter

OPERATOR_EXCEPTIONS = (Exception, SystemExit)  # what user code may raise
MAX_BAD_ROWS = 64  # per batch; beyond it, a failing part is rejected whole


def process_without_bad_rows(
    attempt: Callable[[Batch], Batch], batch: Batch, error: BaseException, most: int = MAX_BAD_ROWS
) -> tuple[Batch, list[DeadLetter]]:
    """Return the output of the good rows, in order, and the bad rows as dead letters.

    `attempt` raised `error` on the whole batch. It must leave no trace when it raises.
    """
    made, dead_letters = list[Batch](), list[DeadLetter]()
    pending: list[tuple[Batch, BaseException | None]] = [(batch, error)]
    while pending:
        part, failure = pending.pop()
        if failure is None:
            try:
                made.append(attempt(part))
                continue
            except OPERATOR_EXCEPTIONS as raised:
                failure = raised
        if len(part) > 1 and len(dead_letters) < most:
            first, rest = part.cut(len(part) // 2)
            pending += [(rest, None), (first, None)]
        else:
            dead_letters.append(dead_letter(part, failure))
            made.append(watermark_only(part))
    rows = [part for part in made if len(part)]
    last = made[-1]
    return replace(Batch.joined(rows), watermark=last.watermark, ended=last.ended) if rows else last, dead_letters


def dead_letter(batch: Batch, error: BaseException) -> DeadLetter:
    """Return rows that an operator raised on as a dead letter, with the error and its traceback."""
    among = "" if len(batch) == 1 else f" (on {len(batch)} rows together)"
    trace = "".join(traceback.format_exception(error))
    return DeadLetter("error", batch, f"{type(error).__name__}: {error}{among}", trace)


def watermark_only(batch: Batch) -> Batch:
    """Return the watermark of rejected rows, without the rows."""
    return batch.pick(slice(0, 0))
