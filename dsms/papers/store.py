"""Runs that are done, in a file: what was interrupted goes on where it was."""

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

FIRST = '{"code": '  # how a file of runs begins
Measure = Callable[[Point], dict[str, Any]]


class Store:
    """A line for each run, first of all one that says by which code; runs of other code do not count.

    Without a file it is all forgotten afterwards. A file is one process's at a time.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._done: dict[str, dict[str, Any]] = {}
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
                f"another call is at work in {str(file.parent)!r}: wait for it, or take another folder"
            ) from None
        except OSError as error:
            self.close()
            raise DsmsError(f"{str(file)!r} cannot be written: {error.strerror}") from None
        except DsmsError:
            self.close()
            raise

    def _open(self, file: Path, opened: TextIO) -> None:
        """Read what there is; only what other code has written, or half a line at the end, goes."""
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        opened.seek(0)
        lines = opened.readlines()
        if lines and not lines[0].startswith(FIRST):
            raise DsmsError(f"{str(file)!r} is no file of runs: move it away, or take another folder")
        if lines[:1] != [_first_line()]:
            lines = [_first_line()]
            opened.truncate(0)
            opened.writelines(lines)
        elif not lines[-1].endswith("\n"):  # cut off
            opened.write("\n")
        opened.flush()
        for entry in map(_entry, lines[1:]):
            if isinstance(entry.get("run"), str) and isinstance(entry.get("figures"), dict):
                self._done[entry["run"]] = entry["figures"]

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


def _entry(line: str) -> dict[str, Any]:
    """What stands in a line; nothing, if it is broken: then that run is done anew."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _first_line() -> str:
    return f'{FIRST}"{code()}"}}\n'


@cache
def code() -> str:
    """A digest of all that could change a number."""
    root = Path(dsms.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
