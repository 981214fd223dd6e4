"""A log in SQLite: write-ahead, synchronised at every commit, one transaction for all that is appended at once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

from dsms.durable.log import Entry, Standing, Stored
from dsms.errors import DsmsError

VERSION = 1
WAIT = 10.0  # seconds for another connection of this process to be done
PART = 64  # entries that are fetched at once: with large frames these are many bytes
TABLES = """
CREATE TABLE entries (offset INTEGER PRIMARY KEY AUTOINCREMENT, sum INTEGER NOT NULL, frame BLOB NOT NULL);
CREATE TABLE producers (name TEXT PRIMARY KEY, taken INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE refused (producer TEXT, sequence INTEGER, reason TEXT NOT NULL, PRIMARY KEY (producer, sequence));
CREATE TABLE ended (stream TEXT PRIMARY KEY, offset INTEGER NOT NULL) WITHOUT ROWID;
"""
TAKE = "INSERT INTO producers VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET taken = max(taken, excluded.taken)"


class SqliteLog:
    """One file; any thread may call, one at a time. A second log on the same file, in another thread, may read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            path.touch(0o600)  # SQLite gives the files beside it the same rights
            self._database = sqlite3.connect(path, WAIT, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise DsmsError(f"the log {str(path)!r} cannot be opened: {error}") from None
        try:
            with self._told("cannot be opened"):
                self._begin()
        except DsmsError:
            self._database.close()
            raise

    def append(self, entries: Sequence[Entry]) -> list[int | None]:
        """Store all of them or none, durable on return; the offset of each, None where it came before or is refused."""
        with self._lock, self._told("cannot be written"), self._transaction():
            return [self._append(entry) for entry in entries]

    def read(self, after: int, size: int) -> list[Stored]:
        """Frames after an offset, at least one if there is one, and no more once they have so many bytes."""
        found: list[Stored] = []
        with self._lock, self._told("cannot be read"):
            rows = self._database.execute(
                "SELECT offset, sum, frame FROM entries WHERE offset > ? ORDER BY 1", (after,)
            )
            rows.arraysize = PART
            for offset, total, frame in rows:
                if crc32(frame) != total:
                    raise DsmsError(f"the log {str(self.path)!r} is damaged: entry {offset} is not as it was written")
                found.append(Stored(offset, frame))
                size -= len(frame)
                if size <= 0:
                    break
            rows.close()
        return found

    def sizes(self) -> Iterable[tuple[int, int]]:
        """The offset of each frame that is here, and its bytes; the oldest first."""
        with self._lock, self._told("cannot be read"):
            return self._database.execute("SELECT offset, length(frame) FROM entries ORDER BY 1").fetchall()

    def forget(self, upto: int) -> None:
        """Nobody wants the frames up to this offset again; what is known of producers stays."""
        with self._lock, self._told("cannot be written"):
            self._database.execute("DELETE FROM entries WHERE offset <= ?", (upto,))

    def producers(self) -> dict[str, Standing]:
        """All producers there were."""
        with self._lock, self._told("cannot be read"):
            found = {name: Standing(taken) for name, taken in self._database.execute("SELECT * FROM producers")}
            for producer, sequence, reason in self._database.execute("SELECT * FROM refused ORDER BY 1, 2"):
                found[producer].refused[sequence] = reason
            return found

    def ended(self) -> Mapping[str, int]:
        """The streams that are over, and the offset at which that was said."""
        with self._lock, self._told("cannot be read"):
            return dict(self._database.execute("SELECT stream, offset FROM ended"))

    def last(self) -> int:
        """The highest offset there ever was; 0 if nothing came yet."""
        with self._lock, self._told("cannot be read"):
            found = self._database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
            return 0 if found is None else int(found[0])

    def forgotten(self) -> int:
        """The highest offset that was forgotten; 0 if nothing was."""
        with self._lock, self._told("cannot be read"):
            first = self._database.execute("SELECT min(offset) FROM entries").fetchone()[0]
        return self.last() if first is None else int(first) - 1

    def close(self) -> None:
        """Let it be."""
        with self._lock, suppress(sqlite3.Error):
            self._database.close()

    def _begin(self) -> None:
        """Set it up, or find it as it was set up."""
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        version = int(self._database.execute("PRAGMA user_version").fetchone()[0])
        if version == VERSION:
            return
        if version:
            raise DsmsError(f"the log {str(self.path)!r} has version {version}: {VERSION} is what can be read here")
        with self._transaction():
            for statement in filter(str.strip, TABLES.split(";")):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA user_version = {VERSION}")

    def _append(self, entry: Entry) -> int | None:
        producer, sequence = entry.producer, entry.sequence
        if sequence is not None and not self._is_new(producer, sequence):
            return None
        if sequence is not None:
            self._database.execute(TAKE, (producer, sequence))
        if entry.refused is not None:
            self._database.execute(
                "INSERT OR REPLACE INTO refused VALUES (?, ?, ?)", (producer, sequence, entry.refused)
            )
            return None
        insert = "INSERT INTO entries (sum, frame) VALUES (?, ?)"
        offset = self._database.execute(insert, (crc32(entry.frame), entry.frame)).lastrowid
        if entry.ends is not None:
            self._database.execute("INSERT OR IGNORE INTO ended VALUES (?, ?)", (entry.ends, offset))
        return offset

    def _is_new(self, producer: str, sequence: int) -> bool:
        """Whether this number has not come before, or was refused then."""
        found = self._database.execute("SELECT taken FROM producers WHERE name = ?", (producer,)).fetchone()
        if found is None or sequence > found[0]:
            return True
        again = "DELETE FROM refused WHERE producer = ? AND sequence = ?"
        return self._database.execute(again, (producer, sequence)).rowcount > 0

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # where SQLite has rolled back itself there is nothing left to
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Say which file it is that fails."""
        try:
            yield
        except sqlite3.Error as error:
            raise DsmsError(f"the log {str(self.path)!r} {what}: {error}") from None
