"""What survives a process on disk: the write-ahead log of incoming frames, and checkpoints."""

from dsms.storage.checkpoints import Checkpoint, CheckpointFolder
from dsms.storage.file_lock import FileLock
from dsms.storage.group_commit import CommitResult, GroupCommit
from dsms.storage.log import Log, LogEntry, LogRecord, ProducerPosition
from dsms.storage.sqlite_log import SqliteLog

__all__ = [
    "Checkpoint",
    "CheckpointFolder",
    "CommitResult",
    "FileLock",
    "GroupCommit",
    "Log",
    "LogEntry",
    "LogRecord",
    "ProducerPosition",
    "SqliteLog",
]
