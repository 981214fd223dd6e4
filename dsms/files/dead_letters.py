"""What could not be read or processed, kept with the reason: JSON lines for people and programs."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dsms.errors import DsmsError
from dsms.files.rejected import Rejected
from dsms.operators.base import Aside

ERROR = "error"


class DeadLetters:
    """A file of rows put aside, each with where, what kind and why; there is no file as long as there are none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counter[tuple[str, str]] = Counter()  # rows by (where, kind)
        self._file: IO[str] | None = None
        self._goes_on = False  # whether it is added to what is there

    def begin(self) -> None:
        """Let go of what an earlier run left; what could not be written later is refused now."""
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise DsmsError(f"dead letters cannot go to {str(self.path)!r}: a file in a folder that is there is wanted")
        if self.path.is_file():
            self.path.unlink()

    @property
    def size(self) -> int:
        """The bytes that have been written."""
        return self.path.stat().st_size if self._file is not None or self._goes_on else 0

    def go_on(self, size: int) -> None:
        """Write on where an earlier process had written so many bytes; what it wrote after them goes."""
        self._goes_on = self.path.is_file() and size > 0
        if self._goes_on:
            os.truncate(self.path, min(size, self.path.stat().st_size))

    def aside(self, where: str, aside: Aside) -> None:
        """Keep the rows that an operator could not take through."""
        said = {"where": where, "kind": aside.kind, "reason": aside.reason}
        said |= {"trace": aside.trace} if aside.trace else {}
        instants = aside.batch.each("ts").tolist()
        self._write(
            {**said, "ts": ts, "row": _plain(row)} for ts, row in zip(instants, aside.batch.records(), strict=True)
        )
        self.counts[where, aside.kind] += len(aside.batch)

    def rejected(self, where: str, row: Rejected) -> None:
        """Keep a row of a file that could not be read."""
        said = {"where": where, "kind": ERROR, "reason": row.reason}
        self._write([{**said, "text": row.text, "file": row.file, "line": row.line}])
        self.counts[where, ERROR] += 1

    def close(self) -> None:
        """Close the file if one was opened."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> DeadLetters:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, letters: Iterable[dict[str, Any]]) -> None:
        if self._file is None:
            self._file = self.path.open("a" if self.counts or self._goes_on else "w", encoding="utf-8")
        for letter in letters:
            self._file.write(json.dumps(letter, ensure_ascii=False) + "\n")
        self._file.flush()  # they are rare, and what is wrong should be there to read after a crash


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON can hold it: floats that are no numbers become strings, as in the other files."""
    return {name: _named(value) if isinstance(value, float) else value for name, value in row.items()}


def _named(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
