"""Checkpoint files in a folder: written atomically, the last three kept, damaged ones skipped on reading."""

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

KEPT_CHECKPOINTS = 3
FORMAT = 4  # raise it when a pickled class moves or changes
MAGIC_PREFIX = b"dsms checkpoint "
MAGIC = MAGIC_PREFIX + b"%d\n" % FORMAT
LENGTH_BYTES = 8  # of the length of the table of contents
FILE_PATTERN = re.compile(r"checkpoint-(\d{12})")
Data = bytes | bytearray | memoryview


class DamagedError(DsmsError):
    """A checkpoint file whose contents do not match their checksums."""


class FormatError(DsmsError):
    """A checkpoint that another version of dsms has written."""


@dataclass
class Checkpoint:
    """The newest readable checkpoint, and why newer ones could not be read."""

    number: int
    sections: dict[str, bytearray]
    damaged: list[str] = field(default_factory=list)


class CheckpointFolder:
    """Numbered checkpoint files, written by one process with increasing numbers."""

    def __init__(self, folder: Path, kept: int = KEPT_CHECKPOINTS) -> None:
        self.folder, self._kept = folder, kept

    def numbers(self) -> list[int]:
        """The numbers of all checkpoint files, oldest first, readable or not."""
        if not self.folder.is_dir():
            return []
        found = (FILE_PATTERN.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match is not None)

    @property
    def next_number(self) -> int:
        """The number of the next checkpoint."""
        return max(self.numbers(), default=0) + 1

    def save(self, sections: Mapping[str, Data]) -> int:
        """Write a checkpoint durably, delete the oldest ones, and return the new number."""
        number = self.next_number
        path = self._path(number)
        part = path.with_suffix(".part")
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.writelines(_encode_sections(sections))
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
            _fsync_folder(self.folder)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise DsmsError(f"the checkpoint {str(path)!r} cannot be written: {error.strerror or error}") from None
        for old in self.numbers()[: -self._kept]:
            self._path(old).unlink(missing_ok=True)
        return number

    def latest(self) -> Checkpoint | None:
        """The newest readable checkpoint; None if the folder has none, DsmsError if all are damaged."""
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
        """The sections of a checkpoint; DamagedError if a checksum differs."""
        path = self._path(number)
        try:
            return _read_sections(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"the checkpoint {str(path)!r} is damaged: {error}") from None

    def size(self, number: int) -> int:
        """The size of a checkpoint file in bytes."""
        return self._path(number).stat().st_size

    def discard(self, numbers: Iterable[int]) -> None:
        """Delete these checkpoints."""
        for number in numbers:
            self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"checkpoint-{number:012}"


def _encode_sections(sections: Mapping[str, Data]) -> list[Data]:
    """The file in parts: format, table of contents with length and checksum of each section, sections."""
    contents = json.dumps([[name, len(data), crc32(data)] for name, data in sections.items()]).encode()
    head = len(contents).to_bytes(LENGTH_BYTES, "little") + crc32(contents).to_bytes(LENGTH_BYTES, "little")
    return [MAGIC, head, contents, *sections.values()]


def _read_sections(path: Path) -> dict[str, bytearray]:
    with path.open("rb") as file:
        magic = file.read(len(MAGIC))
        if magic != MAGIC and magic.startswith(MAGIC_PREFIX):
            written = magic.removeprefix(MAGIC_PREFIX).decode(errors="replace").strip()
            raise FormatError(
                f"the checkpoint {str(path)!r} has format {written}, this version of dsms reads format {FORMAT}: "
                "resume with the version that wrote it, or start in another folder"
            )
        if magic != MAGIC:
            raise ValueError(f"it does not begin with {MAGIC.decode().strip()!r}")
        length, total = (int.from_bytes(file.read(LENGTH_BYTES), "little") for _ in range(2))
        contents = file.read(min(length, path.stat().st_size))
        if crc32(contents) != total:
            raise ValueError("the checksum of its table of contents differs")
        sections: dict[str, bytearray] = {}
        for name, size, expected in json.loads(contents):
            sections[name] = data = bytearray(size)
            if (found := file.readinto(data)) != size:
                raise ValueError(f"section {name!r} ends after {found} of {size} bytes")
            if crc32(data) != expected:
                raise ValueError(f"the checksum of section {name!r} differs")
        return sections


def _fsync_folder(folder: Path) -> None:
    """Make the renaming of a file in this folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
