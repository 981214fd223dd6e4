"""Reads a recorded run: its description, and its tables part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.errors import DsmsError, existing
from dsms.io.table_parts import DictionaryColumn, read_parts
from dsms.recording.manifest import FORMAT_VERSION
from dsms.recording.part_writer import METADATA_FILE
from dsms.recording.table_buffer import TABLE_COLUMNS

MAX_FOLDER_DEPTH = 2  # below the given folder


@dataclass(frozen=True)
class Recording:
    """One recorded run; columns are arrays, columns of names are `DictionaryColumn`s."""

    folder: Path
    about: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.about["name"])

    @property
    def complete(self) -> bool:
        """Whether the run ended normally; else it crashed, or is still running."""
        return bool(self.about["complete"])

    @property
    def since(self) -> float:
        """When the run began, by its own clock."""
        return float(self.about.get("since") or 0.0)

    def hosts(self) -> dict[str, int]:
        """By station: the number of its host; empty if all were in one process."""
        return {one["name"]: one["host"] for one in self.about["stations"] if one.get("host") is not None}

    def table(self, name: str, *columns: str) -> Iterator[dict[str, Any]]:
        """Read these columns of a table, or all of them, part by part in order."""
        if name not in TABLE_COLUMNS:
            raise DsmsError(f"no table {name!r} in a recording{existing(name, TABLE_COLUMNS)}")
        return read_parts(self.folder / name, columns or TABLE_COLUMNS[name])

    def together(self, *tables: str) -> Iterator[dict[str, dict[str, Any]]]:
        """Read several tables in step: the rows of each up to one instant, then up to the next, to their end."""
        left: dict[str, dict[str, Any] | None] = dict.fromkeys(tables)
        rest = {name: self.table(name) for name in tables}
        while True:
            for name, parts in list(rest.items()):
                if left[name] is None and (part := next(parts, None)) is not None:
                    left[name] = part
            there = {name: part for name, part in left.items() if part is not None}
            if not there:
                return
            # All rows up to the end of the shortest part are known; later rows wait.
            limit = min(float(part["at"][-1]) for part in there.values())
            now: dict[str, dict[str, Any]] = {}
            for name, part in there.items():
                end = int(np.searchsorted(part["at"], limit, side="right"))
                if end:
                    now[name] = pick_rows(part, slice(0, end))
                left[name] = pick_rows(part, slice(end, None)) if end < len(part["at"]) else None
            yield now

    def phases(self) -> list[tuple[float, str, str]]:
        """The phases: start, policy, and reason of the change."""
        found = []
        for part in self.table("phases"):
            columns = (part["at"].tolist(), part["policy"].each().tolist(), part["reason"].each().tolist())
            found += list(zip(*columns, strict=True))
        return found


def pick_rows(columns: dict[str, Any], rows: slice | NDArray[Any]) -> dict[str, Any]:
    """Select rows of a table."""
    return {
        n: c._replace(codes=c.codes[rows]) if isinstance(c, DictionaryColumn) else c[rows] for n, c in columns.items()
    }


def read_recordings(folder: str | Path) -> list[Recording]:
    """Find recorded runs: the folder itself, or folders one or two levels below it."""
    folder = Path(folder)
    found = [
        path for depth in range(MAX_FOLDER_DEPTH + 1) for path in sorted(folder.glob("*/" * depth + METADATA_FILE))
    ]
    if not found:
        reason = (
            "there is no such folder"
            if not folder.is_dir()
            else f"no {METADATA_FILE} in it, nor up to two folders below"
        )
        raise DsmsError(f"no recording in {str(folder)!r}: {reason}; make one with `--record DIR` of sim, run or up")
    return [_read_recording(path) for path in found]


def _read_recording(path: Path) -> Recording:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DsmsError(f"{path} cannot be read: {error}") from None
    version = about.get("version") if isinstance(about, dict) else None
    if version != FORMAT_VERSION:
        raise DsmsError(f"{path}: recording of version {version!r}; this dsms reads version {FORMAT_VERSION}")
    return Recording(path.parent, about)
