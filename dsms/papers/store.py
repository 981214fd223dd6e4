"""Runs that are done, in a file: what was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import dsms
from dsms.errors import DsmsError
from dsms.papers.experiment import Point

Measure = Callable[[Point], dict[str, Any]]


class Store:
    """A line for each run, first of all one that says by which code; runs of other code do not count.

    Without a file it is all forgotten afterwards.
    """

    def __init__(self, file: Path | None = None, fresh: bool = False) -> None:
        self._done: dict[str, dict[str, Any]] = {}
        self._file: TextIO | None = None
        if file is None:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = [] if fresh or not file.exists() else file.read_text(encoding="utf-8").splitlines(keepends=True)
            whole = [line for line in lines if line.endswith("\n")]  # the last may have been cut off
            if whole[:1] != [_first_line()]:
                whole = [_first_line()]
            for line in whole[1:]:
                entry = json.loads(line)
                self._done[entry["run"]] = entry["figures"]
            self._file = file.open("w", encoding="utf-8")
            self._file.writelines(whole)
            self._file.flush()
        except OSError as error:
            raise DsmsError(f"{str(file)!r} cannot be written: {error.strerror}") from None

    def __len__(self) -> int:
        return len(self._done)

    def find(self, measure: Measure, point: Point) -> dict[str, Any] | None:
        """What came of this run, if it is done."""
        return self._done.get(key(measure, point))

    def add(self, measure: Measure, point: Point, figures: Mapping[str, Any]) -> None:
        """It is in the file, if there is one, when this returns."""
        run = key(measure, point)
        self._done[run] = dict(figures)
        if self._file is not None:
            self._file.write(json.dumps({"run": run, "figures": figures}) + "\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def key(measure: Measure, point: Point) -> str:
    """By what a run is known: the same for experiments that share it."""
    return f"{measure.__module__}.{measure.__qualname__} {json.dumps(point, sort_keys=True)}"


def _first_line() -> str:
    return json.dumps({"code": code()}) + "\n"


@cache
def code() -> str:
    """A digest of all that could change a number."""
    root = Path(dsms.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
