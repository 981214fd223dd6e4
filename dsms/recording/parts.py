"""A recording's files being written: in a thread of its own, so that whoever records hands columns on and goes on."""

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
from dsms.files.parts import Columns, write_part

WAITING = 16  # parts that may wait to be written
ABOUT = "run.json"


class Parts:
    """One recorded run's folder: numbered parts of tables, and what the run is about."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.error: str | None = None  # why nothing is written any more
        self._numbers: Counter[str] = Counter()
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, name=f"recording {folder.name}", daemon=True)
        self._begun = False

    def begin(self) -> None:
        """Make the folder and be ready; an error where something is there already, or it cannot be made."""
        check_free(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DsmsError(f"recording to {str(self.folder)!r}: {error.strerror}") from None
        self._thread.start()
        self._begun = True

    def table(self, name: str, columns: Columns, wait: bool) -> bool:
        """The next part of a table; False if it is not to wait, and as many as may wait already."""
        number = self._numbers[name]
        self._numbers[name] += 1
        return self._put(partial(write_part, self.folder / name, number, columns), wait)

    def about(self, told: Mapping[str, Any], wait: bool) -> bool:
        """What the run is about, instead of what was said before."""
        return self._put(partial(_write_about, self.folder, json.dumps(told, indent=1, default=str)), wait)

    def close(self) -> None:
        """Write all that waits; nothing is written after."""
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
                continue  # a hole in it would not be seen: all or nothing from here on
            try:
                job()
            except Exception as error:  # a thread has nobody to raise it to
                self.error = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"


def check_free(folder: Path) -> None:
    """Refuse a folder in which something is."""
    if folder.is_dir() and any(folder.iterdir()):
        raise DsmsError(
            f"recording to {str(folder)!r}: something is there already; give another folder, or remove that one first"
        )


def _write_about(folder: Path, text: str) -> None:
    aside = folder / f".{ABOUT}"
    aside.write_text(text + "\n", encoding="utf-8")
    os.replace(aside, folder / ABOUT)
