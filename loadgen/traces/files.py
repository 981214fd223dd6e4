"""Finds the files of a trace, and determines the layout and the time base of each."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dsms.errors import DsmsError
from loadgen.traces.layouts import TraceLayout, find_layout

HEAD_LINES = 100  # lines read to recognise a file
CALENDAR_TIME_MIN_S = 1e8  # a greater time counts from 1970: it is in 1973 or later


@dataclass(frozen=True)
class RawTraceFile:
    """A trace file; `stamp` is the first line's time if only that counts from 1970, and the others from its second."""

    path: Path
    layout: TraceLayout
    stamp: float | None

    @property
    def base(self) -> int | None:
        """The second from which the file's times count; None if it is unknown."""
        return None if self.stamp is None else math.floor(self.stamp)


def find_trace_files(paths: Iterable[str | Path], family: str | None = None) -> list[RawTraceFile]:
    """The trace files of these paths and folders, each with its layout."""
    files = [_identify(path, family) for name in paths for path in _expand_path(Path(name))]
    if len({file.path for file in files}) < len(files):
        raise DsmsError("a trace file is given twice: its packets would be doubled")
    if len({file.base is None for file in files}) > 1:
        timed = next(file for file in files if file.base is not None)
        other = next(file for file in files if file.base is None)
        raise DsmsError(
            f"{timed.path} has a start time and {other.path} does not, so the order of their packets is unknown: "
            "convert them one by one"
        )
    return files


def _expand_path(path: Path) -> list[Path]:
    if not path.exists():
        raise DsmsError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    if not files:
        raise DsmsError(f"{path}: no file in this folder")
    return files


def _identify(path: Path, family: str | None) -> RawTraceFile:
    if path.suffix == ".Z":
        raise DsmsError(f"{path}: Spark cannot read this compression; `gunzip {path.name}` first")
    first = _read_head(path)
    if not first:
        raise DsmsError(f"{path}: the file is empty")
    layout = find_layout(path, first, family)
    return RawTraceFile(path, layout, _find_stamp(first) if layout.stamped else None)


def _read_head(path: Path) -> list[list[str]]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            lines = [line.decode("utf-8", "replace").split() for line in islice(file, HEAD_LINES)]
    except (OSError, EOFError, zlib.error) as error:
        raise DsmsError(f"{path}: cannot be read: {error}") from None
    return [fields for fields in lines if fields]


def _find_stamp(first: list[list[str]]) -> float | None:
    """The first line's time, if it counts from 1970 and the second line's does not."""
    times = []
    for fields in first:
        try:
            times.append(float(fields[0]))
        except ValueError:
            continue
    return (
        times[0] if len(times) > 1 and math.isfinite(times[0]) and times[0] >= CALENDAR_TIME_MIN_S > times[1] else None
    )
