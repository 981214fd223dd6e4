"""Writes a recording's files in a thread of its own, so that the recorded run does not wait for the disk."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dsms.errors import DsmsError
from dsms.io.table_parts import Columns, write_part

MAX_QUEUED_PARTS = 16  # that may wait to be written
METADATA_FILE = "run.json"


class PartWriter:
    """Writes the folder of one recorded run: numbered parts of tables, and its description."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.error: str | None = None  # why writing has stopped
        self._numbers: Counter[str] = Counter()
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(MAX_QUEUED_PARTS)
        self._thread = threading.Thread(target=self._run, name=f"recording {folder.name}", daemon=True)
        self._begun = False

    def begin(self) -> None:
        """Make the folder and start the thread; refuse a folder that is not empty."""
        check_folder_free(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DsmsError(f"recording to {str(self.folder)!r}: {error.strerror}") from None
        self._thread.start()
        self._begun = True

    def table(self, name: str, columns: Columns, wait: bool) -> bool:
        """Write the next part of a table; False if `wait` is false and the queue is full."""
        number = self._numbers[name]
        self._numbers[name] += 1
        return self._put(partial(write_part, self.folder / name, number, columns), wait)

    def about(self, description: Mapping[str, Any], wait: bool) -> bool:
        """Replace the description of the run."""
        return self._put(partial(_write_metadata, self.folder, json.dumps(description, indent=1, default=str)), wait)

    def close(self) -> None:
        """Write all parts that wait, and stop."""
        if self._begun:
            self._begun = False
            self._jobs.put(None)
            self._thread.join()

    def _put(self, job: Callable[[], None], wait: bool) -> bool:
        try:
            self._jobs.put(job, block=wait)
        except queue.Full:
            return False
        return True

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            if self.error is not None:
                continue  # a missing part would not be noticed: write nothing more
            try:
                job()
            except Exception as error:  # the recorder reads it: a thread has no caller
                self.error = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"


def check_folder_free(folder: Path) -> None:
    """Refuse a folder that is not empty."""
    if folder.is_dir() and any(folder.iterdir()):
        raise DsmsError(
            f"recording to {str(folder)!r}: the folder is not empty; give another folder, or remove it first"
        )


def _write_metadata(folder: Path, text: str) -> None:
    temporary = folder / f".{METADATA_FILE}"
    temporary.write_text(text + "\n", encoding="utf-8")
    os.replace(temporary, folder / METADATA_FILE)
