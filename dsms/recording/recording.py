"""A recorded run read back: what it is about, and its tables, a part at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.errors import DsmsError, existing
from dsms.files.parts import Texts, read_parts
from dsms.recording.about import VERSION
from dsms.recording.parts import ABOUT
from dsms.recording.stretch import TABLES

DEEPEST = 2  # folders below the one that is given


@dataclass(frozen=True)
class Recording:
    """One run; columns are arrays, those of names `Texts`."""

    folder: Path
    about: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.about["name"])

    @property
    def complete(self) -> bool:
        """Whether it was closed in good order; else the run has died, or still goes on."""
        return bool(self.about["complete"])

    @property
    def since(self) -> float:
        """When the run began, by its own clock."""
        return float(self.about.get("since") or 0.0)

    def table(self, name: str, *columns: str) -> Iterator[dict[str, Any]]:
        """These columns of a table, or all of them, a part at a time, in order."""
        if name not in TABLES:
            raise DsmsError(f"no table {name!r} in a recording{existing(name, TABLES)}")
        return read_parts(self.folder / name, columns or TABLES[name])

    def together(self, *tables: str) -> Iterator[dict[str, dict[str, Any]]]:
        """Several tables in step: the rows of each up to one instant, then on to the next, until all have ended."""
        left: dict[str, dict[str, Any] | None] = dict.fromkeys(tables)
        rest = {name: self.table(name) for name in tables}
        while True:
            for name, parts in list(rest.items()):
                if left[name] is None and (part := next(parts, None)) is not None:
                    left[name] = part
            there = {name: part for name, part in left.items() if part is not None}
            if not there:
                return
            # Up to where the shortest reaches, there may be more of others than is read: these wait.
            upto = min(float(part["at"][-1]) for part in there.values())
            now: dict[str, dict[str, Any]] = {}
            for name, part in there.items():
                end = int(np.searchsorted(part["at"], upto, side="right"))
                if end:
                    now[name] = picked(part, slice(0, end))
                left[name] = picked(part, slice(end, None)) if end < len(part["at"]) else None
            yield now

    def phases(self) -> list[tuple[float, str, str]]:
        """From when who was in charge, and why."""
        found = []
        for part in self.table("phases"):
            columns = (part["at"].tolist(), part["policy"].each().tolist(), part["reason"].each().tolist())
            found += list(zip(*columns, strict=True))
        return found


def picked(columns: dict[str, Any], rows: slice | NDArray[Any]) -> dict[str, Any]:
    """Some rows of a table."""
    return {n: c._replace(codes=c.codes[rows]) if isinstance(c, Texts) else c[rows] for n, c in columns.items()}


def read(folder: str | Path) -> list[Recording]:
    """The recorded runs in a folder: itself, or those one or two folders below it."""
    folder = Path(folder)
    found = [path for depth in range(DEEPEST + 1) for path in sorted(folder.glob("*/" * depth + ABOUT))]
    if not found:
        said = "there is no such folder" if not folder.is_dir() else f"no {ABOUT} in it, nor up to two folders below"
        raise DsmsError(f"no recording in {str(folder)!r}: {said}; `--record DIR` of sim, run and up makes one")
    return [_read(path) for path in found]


def _read(path: Path) -> Recording:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DsmsError(f"{path} cannot be read: {error}") from None
    version = about.get("version") if isinstance(about, dict) else None
    if version != VERSION:
        raise DsmsError(f"{path}: a recording of version {version!r}; {VERSION} is what can be read")
    return Recording(path.parent, about)
