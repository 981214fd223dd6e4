"""A write-ahead log in an SQLite file: one fsynced transaction for each group of entries."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

from dsms.errors import DsmsError
from dsms.storage.log import LogEntry, LogRecord, ProducerPosition

SCHEMA_VERSION = 1
BUSY_TIMEOUT_S = 10.0  # waiting for another connection of this process
FETCH_SIZE_ENTRIES = 64  # fetched at once: with large frames these are many bytes
CREATE_TABLES_SQL = """
CREATE TABLE entries (offset INTEGER PRIMARY KEY AUTOINCREMENT, sum INTEGER NOT NULL, frame BLOB NOT NULL);
CREATE TABLE producers (name TEXT PRIMARY KEY, taken INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE refused (producer TEXT, sequence INTEGER, reason TEXT NOT NULL, PRIMARY KEY (producer, sequence));
CREATE TABLE ended (stream TEXT PRIMARY KEY, offset INTEGER NOT NULL) WITHOUT ROWID;
"""
UPSERT_PRODUCER_SQL = (
    "INSERT INTO producers VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET taken = max(taken, excluded.taken)"
)


class SqliteLog:
    """One file; calls from several threads are serialised. A second log on the same file may read in another thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            path.touch(0o600)  # SQLite creates its other files with the same permissions
            self._database = sqlite3.connect(path, BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise DsmsError(f"the log {str(path)!r} cannot be opened: {error}") from None
        try:
            with self._translate_errors("cannot be opened"):
                self._begin()
        except DsmsError:
            self._database.close()
            raise

    def append(self, entries: Sequence[LogEntry]) -> list[int | None]:
        """Store all entries durably or none; return each offset, None for a duplicate or a refusal."""
        with self._lock, self._translate_errors("cannot be written"), self._transaction():
            return [self._append(entry) for entry in entries]

    def read(self, after: int, size: int) -> list[LogRecord]:
        """Frames after an offset, at least one if any exists, up to about `size` bytes."""
        found: list[LogRecord] = []
        with self._lock, self._translate_errors("cannot be read"):
            rows = self._database.execute(
                "SELECT offset, sum, frame FROM entries WHERE offset > ? ORDER BY 1", (after,)
            )
            rows.arraysize = FETCH_SIZE_ENTRIES
            for offset, total, frame in rows:
                if crc32(frame) != total:
                    raise DsmsError(f"the log {str(self.path)!r} is damaged: the checksum of entry {offset} differs")
                found.append(LogRecord(offset, frame))
                size -= len(frame)
                if size <= 0:
                    break
            rows.close()
        return found

    def sizes(self) -> Iterable[tuple[int, int]]:
        """Offset and size in bytes of every stored frame, oldest first."""
        with self._lock, self._translate_errors("cannot be read"):
            return self._database.execute("SELECT offset, length(frame) FROM entries ORDER BY 1").fetchall()

    def truncate(self, upto: int) -> None:
        """Delete the frames up to this offset; the producers' positions stay."""
        with self._lock, self._translate_errors("cannot be written"):
            self._database.execute("DELETE FROM entries WHERE offset <= ?", (upto,))

    def producers(self) -> dict[str, ProducerPosition]:
        """The position of every producer."""
        with self._lock, self._translate_errors("cannot be read"):
            found = {name: ProducerPosition(taken) for name, taken in self._database.execute("SELECT * FROM producers")}
            for producer, sequence, reason in self._database.execute("SELECT * FROM refused ORDER BY 1, 2"):
                found[producer].refused[sequence] = reason
            return found

    def ended(self) -> Mapping[str, int]:
        """The ended streams, with the offset of each end."""
        with self._lock, self._translate_errors("cannot be read"):
            return dict(self._database.execute("SELECT stream, offset FROM ended"))

    def last(self) -> int:
        """The highest offset ever stored; 0 for an empty log."""
        with self._lock, self._translate_errors("cannot be read"):
            found = self._database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
            return 0 if found is None else int(found[0])

    def truncated_offset(self) -> int:
        """The highest deleted offset; 0 if none was deleted."""
        with self._lock, self._translate_errors("cannot be read"):
            first = self._database.execute("SELECT min(offset) FROM entries").fetchone()[0]
        return self.last() if first is None else int(first) - 1

    def close(self) -> None:
        """Close the file."""
        with self._lock, suppress(sqlite3.Error):
            self._database.close()

    def _begin(self) -> None:
        """Create the tables, or check the version of the existing ones."""
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        version = int(self._database.execute("PRAGMA user_version").fetchone()[0])
        if version == SCHEMA_VERSION:
            return
        if version:
            raise DsmsError(
                f"the log {str(self.path)!r} has version {version}, but this build reads version {SCHEMA_VERSION}"
            )
        with self._transaction():
            for statement in filter(str.strip, CREATE_TABLES_SQL.split(";")):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _append(self, entry: LogEntry) -> int | None:
        producer, sequence = entry.producer, entry.sequence
        if sequence is not None and not self._is_new(producer, sequence):
            return None
        if sequence is not None:
            self._database.execute(UPSERT_PRODUCER_SQL, (producer, sequence))
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
        """Whether this number was not stored before, or was refused."""
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
            with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _translate_errors(self, what: str) -> Iterator[None]:
        """Turn SQLite errors into DsmsError with the path of the log."""
        try:
            yield
        except sqlite3.Error as error:
            raise DsmsError(f"the log {str(self.path)!r} {what}: {error}") from None
