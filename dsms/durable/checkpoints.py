"""Checkpoints in a folder: each a file that is whole or not there, the last three kept, a damaged one passed over."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from dsms.errors import DsmsError

KEPT = 3
MAGIC = b"dsms checkpoint 2\n"
LENGTH = 8  # bytes that say how long the table of contents is
NAME = re.compile(r"checkpoint-(\d{12})")
Data = bytes | bytearray | memoryview


class DamagedError(DsmsError):
    """A checkpoint that is not as it was written."""


@dataclass
class Checkpoint:
    """The newest that can be read, and what is said of newer ones that cannot."""

    number: int
    sections: dict[str, bytearray]
    damaged: list[str] = field(default_factory=list)


class Checkpoints:
    """Numbered files; one process writes, and the number of a new one is higher than any before."""

    def __init__(self, folder: Path, kept: int = KEPT) -> None:
        self.folder, self._kept = folder, kept

    def numbers(self) -> list[int]:
        """Of those there are, the oldest first; whether they can be read is not looked at."""
        if not self.folder.is_dir():
            return []
        found = (NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match is not None)

    @property
    def following(self) -> int:
        """The number of the next."""
        return max(self.numbers(), default=0) + 1

    def save(self, sections: Mapping[str, Data]) -> int:
        """Store a new one, durable on return, and let go of the oldest; answers its number."""
        number = self.following
        path = self._path(number)
        aside = path.with_suffix(".part")
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            with aside.open("wb") as file:
                file.writelines(_written(sections))
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, path)
            _synchronise(self.folder)
        except OSError as error:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise DsmsError(f"the checkpoint {str(path)!r} cannot be written: {error.strerror or error}") from None
        for old in self.numbers()[: -self._kept]:
            self._path(old).unlink(missing_ok=True)
        return number

    def latest(self) -> Checkpoint | None:
        """The newest that is sound; None if there never was one, DsmsError if there is none that can be read."""
        damaged: list[str] = []
        for number in reversed(self.numbers()):
            try:
                return Checkpoint(number, self.read(number), damaged)
            except DamagedError as error:
                damaged.append(str(error))
        if damaged:
            raise DsmsError("no checkpoint can be read: " + "; ".join(damaged))
        return None

    def read(self, number: int) -> dict[str, bytearray]:
        """The sections of one; DamagedError if they are not as they were written."""
        path = self._path(number)
        try:
            return _read(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"the checkpoint {str(path)!r} is damaged: {error}") from None

    def size(self, number: int) -> int:
        """The bytes of one."""
        return self._path(number).stat().st_size

    def discard(self, numbers: Iterable[int]) -> None:
        """Let go of these."""
        for number in numbers:
            self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"checkpoint-{number:012}"


def _written(sections: Mapping[str, Data]) -> list[Data]:
    """A file's parts: what it is, the table of contents with the length and sum of each section, then these."""
    contents = json.dumps([[name, len(data), crc32(data)] for name, data in sections.items()]).encode()
    head = len(contents).to_bytes(LENGTH, "little") + crc32(contents).to_bytes(LENGTH, "little")
    return [MAGIC, head, contents, *sections.values()]


def _read(path: Path) -> dict[str, bytearray]:
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"it does not begin with {MAGIC.decode().strip()!r}: another version, or no checkpoint")
        length, total = (int.from_bytes(file.read(LENGTH), "little") for _ in range(2))
        contents = file.read(min(length, path.stat().st_size))
        if crc32(contents) != total:
            raise ValueError("its table of contents is not as it was written")
        sections: dict[str, bytearray] = {}
        for name, size, expected in json.loads(contents):
            sections[name] = data = bytearray(size)
            if (found := file.readinto(data)) != size:
                raise ValueError(f"{name!r} ends after {found} of {size} bytes")
            if crc32(data) != expected:
                raise ValueError(f"{name!r} is not as it was written")
        return sections


def _synchronise(folder: Path) -> None:
    """Make a file's new name durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
