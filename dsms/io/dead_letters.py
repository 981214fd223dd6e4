"""The dead-letter file: rows that could not be read or processed, as JSON lines with the reason."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dsms.data.dead_letter import DeadLetter
from dsms.errors import DsmsError
from dsms.io.rejected_row import RejectedRow

ERROR_KIND = "error"


class DeadLetterFile:
    """Writes rejected rows with their operator or stream, kind and reason; the first row creates the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counter[tuple[str, str]] = Counter()  # rows by (operator or stream, kind)
        self._file: IO[str] | None = None
        self._is_resumed = False  # whether it appends to the file of an earlier process

    def begin(self) -> None:
        """Delete the file of an earlier run; raise now if the file could not be written later."""
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise DsmsError(f"dead letters cannot go to {str(self.path)!r}: it must be a file in an existing folder")
        if self.path.is_file():
            self.path.unlink()

    @property
    def size(self) -> int:
        """The bytes written so far."""
        return self.path.stat().st_size if self._file is not None or self._is_resumed else 0

    def resume_at(self, size: int) -> None:
        """Append to the file of an earlier process after its first `size` bytes; truncate the rest."""
        self._is_resumed = self.path.is_file() and size > 0
        if self._is_resumed:
            os.truncate(self.path, min(size, self.path.stat().st_size))

    def add(self, where: str, letter: DeadLetter) -> None:
        """Write the rows that an operator rejected."""
        header = {"where": where, "kind": letter.kind, "reason": letter.reason}
        header |= {"trace": letter.trace} if letter.trace else {}
        instants = letter.batch.each("ts").tolist()
        self._write(
            {**header, "ts": ts, "row": _to_json_row(row)}
            for ts, row in zip(instants, letter.batch.records(), strict=True)
        )
        self.counts[where, letter.kind] += len(letter.batch)

    def add_rejected(self, where: str, row: RejectedRow) -> None:
        """Write a row of a file that could not be read."""
        header = {"where": where, "kind": ERROR_KIND, "reason": row.reason}
        self._write([{**header, "text": row.text, "file": row.file, "line": row.line}])
        self.counts[where, ERROR_KIND] += 1

    def close(self) -> None:
        """Close the file if one was opened."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> DeadLetterFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, letters: Iterable[dict[str, Any]]) -> None:
        if self._file is None:
            self._file = self.path.open("a" if self.counts or self._is_resumed else "w", encoding="utf-8")
        for letter in letters:
            self._file.write(json.dumps(letter, ensure_ascii=False) + "\n")
        self._file.flush()  # rejected rows are rare, and must be readable after a crash


def _to_json_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of JSON values: floats that are not JSON numbers become strings, as in the other files."""
    return {name: _to_json_number(value) if isinstance(value, float) else value for name, value in row.items()}


def _to_json_number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
