"""A row of a file that cannot be read: where it stands, what it says, what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dsms.errors import DsmsError

SHOWN = 200  # characters of a row in a message


class Rejected(NamedTuple):
    """A row that was not read; `line` counts from 1 and is where the row begins (in Parquet: the row)."""

    file: str
    line: int
    text: str
    reason: str


Reject = Callable[[Rejected], None]


class RowError(DsmsError):
    """A bad row where `on_error = "fail"`, or where there is nowhere to put it."""

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected
        text = rejected.text if len(rejected.text) <= SHOWN else rejected.text[:SHOWN] + "…"
        super().__init__(f"{rejected.file}:{rejected.line}: {rejected.reason}; the row is {text!r}")


def fail(rejected: Rejected) -> None:
    """Let a bad row end the run."""
    raise RowError(rejected)


def unfit(column: str, kind: str, value: bytes | object) -> str:
    """Why a value was not taken: what was given, what was wanted."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            return f"column {column!r}: byte 0x{byte:02x} at position {error.start} is not UTF-8"
    return f"column {column!r}: {value!r} given, {WANTED[kind]} wanted"


WANTED = {
    "int64": "a whole number of 64 bits (int64)",
    "float64": "a number (float64)",
    "bool": "true or false (bool)",
    "timestamp": "microseconds or ISO 8601 (timestamp)",
    "string": "text (string)",
}
