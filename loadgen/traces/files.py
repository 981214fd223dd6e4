"""A trace's files as they are given: which there are, what they hold, and when their clocks began."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dsms.errors import DsmsError
from loadgen.traces.layouts import Layout, layout_of

HEAD = 100  # lines looked at to know a file
CALENDAR = 1e8  # seconds: a time from here on is one of the calendar, 1973 or later


@dataclass(frozen=True)
class TraceFile:
    """One file; `stamp` is its first line's time if that counts from 1970 and the others' from the whole second."""

    path: Path
    layout: Layout
    stamp: float | None

    @property
    def base(self) -> int | None:
        """The second that its times count from."""
        return None if self.stamp is None else math.floor(self.stamp)


def trace_files(given: Iterable[str | Path], family: str | None = None) -> list[TraceFile]:
    """All files, those in folders included, each with its layout."""
    found = [_known(path, family) for name in given for path in _paths(Path(name))]
    if len({file.path for file in found}) < len(found):
        raise DsmsError("a trace file is given twice: its packets would be, too")
    if len({file.base is None for file in found}) > 1:
        timed = next(file for file in found if file.base is not None)
        other = next(file for file in found if file.base is None)
        raise DsmsError(
            f"{timed.path} says when it began and {other.path} does not: how their packets follow each other is not "
            "known; convert them one by one"
        )
    return found


def _paths(given: Path) -> list[Path]:
    if not given.exists():
        raise DsmsError(f"{given}: no such file or folder")
    if not given.is_dir():
        return [given]
    inside = sorted(path for path in given.iterdir() if path.is_file() and not path.name.startswith("."))
    if not inside:
        raise DsmsError(f"{given}: there is no file in this folder")
    return inside


def _known(path: Path, family: str | None) -> TraceFile:
    if path.suffix == ".Z":
        raise DsmsError(f"{path}: Spark cannot read this compression; `gunzip {path.name}` first")
    first = _head(path)
    if not first:
        raise DsmsError(f"{path}: there is no line in it")
    layout = layout_of(path, first, family)
    return TraceFile(path, layout, _stamp(first) if layout.stamped else None)


def _head(path: Path) -> list[list[str]]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            lines = [line.decode("utf-8", "replace").split() for line in islice(file, HEAD)]
    except (OSError, EOFError, zlib.error) as error:
        raise DsmsError(f"{path}: cannot be read: {error}") from None
    return [fields for fields in lines if fields]


def _stamp(first: list[list[str]]) -> float | None:
    """The first line's time, if it counts from 1970 while the second line's does not."""
    times = []
    for fields in first:
        try:
            times.append(float(fields[0]))
        except ValueError:
            continue
    return times[0] if len(times) > 1 and math.isfinite(times[0]) and times[0] >= CALENDAR > times[1] else None
