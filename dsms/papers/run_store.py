"""Stores the result of every run in a JSON-lines file, so that an interrupted reproduction resumes."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import dsms
from dsms.errors import DsmsError
from dsms.papers.experiment import Point

HEADER_PREFIX = '{"code": '  # start of the first line, which holds the digest of the code
Measure = Callable[[Point], dict[str, Any]]


class ResultStore:
    """The results of finished runs, in memory and, if given, in a file that one process locks at a time.

    The first line of the file holds a digest of the code, every other line one run. Results of other code are
    discarded.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._results: dict[str, dict[str, Any]] = {}
        self._file: TextIO | None = None
        if file is None:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._file = file.open("a+", encoding="utf-8", errors="replace")
            self._open(file, self._file)
        except BlockingIOError:
            self.close()
            raise DsmsError(
                f"folder {str(file.parent)!r} is in use by another `dsms reproduce`: wait for it, or use another folder"
            ) from None
        except OSError as error:
            self.close()
            raise DsmsError(f"{str(file)!r} cannot be written: {error.strerror}") from None
        except DsmsError:
            self.close()
            raise

    def _open(self, file: Path, opened: TextIO) -> None:
        """Lock the file and read its results; empty it if other code wrote them, end an incomplete last line."""
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        opened.seek(0)
        lines = opened.readlines()
        if lines and not lines[0].startswith(HEADER_PREFIX):
            raise DsmsError(f"{str(file)!r} is not a file of runs: move it away, or use another folder")
        if lines[:1] != [_header_line()]:
            lines = [_header_line()]
            opened.truncate(0)
            opened.writelines(lines)
        elif not lines[-1].endswith("\n"):  # the writer was killed
            opened.write("\n")
        opened.flush()
        for entry in map(_parse_entry, lines[1:]):
            if isinstance(entry.get("run"), str) and isinstance(entry.get("figures"), dict):
                self._results[entry["run"]] = entry["figures"]

    def __len__(self) -> int:
        return len(self._results)

    def find(self, measure: Measure, point: Point) -> dict[str, Any] | None:
        """The figures of this run, or None if it has no result."""
        return self._results.get(result_key(measure, point))

    def add(self, measure: Measure, point: Point, figures: Mapping[str, Any]) -> None:
        """Store a result; it is written to the file when this returns."""
        run = result_key(measure, point)
        self._results[run] = dict(figures)
        if self._file is not None:
            self._file.write(json.dumps({"run": run, "figures": figures}) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file, which releases its lock."""
        if self._file is not None:
            self._file.close()


def result_key(measure: Measure, point: Point) -> str:
    """The key of a run: its measure function and its parameters, so that experiments share equal runs."""
    return f"{measure.__module__}.{measure.__qualname__} {json.dumps(point, sort_keys=True)}"


def _parse_entry(line: str) -> dict[str, Any]:
    """The JSON object of a line; empty if the line is broken, so that its run is repeated."""
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _header_line() -> str:
    return f'{HEADER_PREFIX}"{code_digest()}"}}\n'


@cache
def code_digest() -> str:
    """A digest of every source file of the package: any of them could change a number."""
    root = Path(dsms.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
