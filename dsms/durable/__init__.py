"""What outlives a process: the log of what has come in, and checkpoints of what was made of it."""

from dsms.durable.checkpoints import Checkpoint, Checkpoints
from dsms.durable.committer import Committed, Committer
from dsms.durable.log import Entry, Log, Standing, Stored
from dsms.durable.sole import Sole
from dsms.durable.sqlite_log import SqliteLog

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Committed",
    "Committer",
    "Entry",
    "Log",
    "Sole",
    "SqliteLog",
    "Standing",
    "Stored",
]
