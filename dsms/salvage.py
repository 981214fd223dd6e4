"""What becomes of a batch that an operator raises on: the rows to blame are found by halves, all others get through."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace

from dsms.batch import Batch
from dsms.operators.base import Aside

RAISED = (Exception, SystemExit)  # whatever user code may end by
MOST = 64  # rows that are looked for in a batch: where more are bad, what fails is put aside as it is


def salvaged(
    attempt: Callable[[Batch], Batch], batch: Batch, error: BaseException, most: int = MOST
) -> tuple[Batch, list[Aside]]:
    """What came of the rows that can be taken through, in their order; and those that cannot.

    `attempt` may raise, and has then left nothing behind. On the batch as a whole it has, with this error.
    """
    made, asides = list[Batch](), list[Aside]()
    ahead: list[tuple[Batch, BaseException | None]] = [(batch, error)]
    while ahead:
        part, wrong = ahead.pop()
        if wrong is None:
            try:
                made.append(attempt(part))
                continue
            except RAISED as raised:
                wrong = raised
        if len(part) > 1 and len(asides) < most:
            first, rest = part.cut(len(part) // 2)
            ahead += [(rest, None), (first, None)]
        else:
            asides.append(failed(part, wrong))
            made.append(timed(part))
    rows = [part for part in made if len(part)]
    last = made[-1]
    return replace(Batch.joined(rows), upto=last.upto, ended=last.ended) if rows else last, asides


def failed(batch: Batch, error: BaseException) -> Aside:
    """Rows that an operator has raised on, with what it said and where."""
    among = "" if len(batch) == 1 else f" (on {len(batch)} rows together)"
    trace = "".join(traceback.format_exception(error))
    return Aside("error", batch, f"{type(error).__name__}: {error}{among}", trace)


def timed(batch: Batch) -> Batch:
    """What is left of rows that do not get through: how far time has come with them."""
    return batch.pick(slice(0, 0))
