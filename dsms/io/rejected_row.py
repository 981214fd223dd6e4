"""A row of a file that cannot be read: its file and line, its text, and the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dsms.errors import DsmsError

SHOWN_CHARACTERS = 200  # of a row in a message


class RejectedRow(NamedTuple):
    """A rejected row; `line` is the number of its first line, from 1 (in Parquet: of the row)."""

    file: str
    line: int
    text: str
    reason: str


Reject = Callable[[RejectedRow], None]


class MalformedRowError(DsmsError):
    """A bad row ends the run, because `on_error` is "fail" or because there is no dead-letter file."""

    def __init__(self, rejected: RejectedRow) -> None:
        self.rejected = rejected
        text = rejected.text if len(rejected.text) <= SHOWN_CHARACTERS else rejected.text[:SHOWN_CHARACTERS] + "…"
        super().__init__(f"{rejected.file}:{rejected.line}: {rejected.reason}; the row is {text!r}")


def raise_rejected(rejected: RejectedRow) -> None:
    """End the run with the error of a bad row."""
    raise MalformedRowError(rejected)


def explain_bad_value(column: str, kind: str, value: bytes | object) -> str:
    """Return why a value is bad: the value, and what its column expects."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            return f"column {column!r}: byte 0x{byte:02x} at position {error.start} is not UTF-8"
    return f"column {column!r}: {value!r} is not {TYPE_DESCRIPTIONS[kind]}"


TYPE_DESCRIPTIONS = {
    "int64": "a 64-bit integer (int64)",
    "float64": "a number (float64)",
    "bool": "true or false (bool)",
    "timestamp": "microseconds or ISO 8601 (timestamp)",
    "string": "text (string)",
}
