"""Reads and writes rows as CSV, JSON lines and Parquet files; the only package that imports pyarrow."""

from dsms.io.dead_letters import DeadLetterFile
from dsms.io.sinks import FileSink, SinkClosedError, open_sink
from dsms.io.sources import FileSource, open_source, read_relation_rows

__all__ = [
    "DeadLetterFile",
    "FileSink",
    "FileSource",
    "SinkClosedError",
    "open_sink",
    "open_source",
    "read_relation_rows",
]
