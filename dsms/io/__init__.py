"""Reads and writes rows as CSV, JSON lines and Parquet files; only this package imports pyarrow, when it is used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsms.io.dead_letters import DeadLetterFile
    from dsms.io.sinks import FileSink, SinkClosedError, open_sink, sink_schema
    from dsms.io.sources import FileSource, open_source, read_relation_rows

__all__ = [
    "STDOUT",
    "DeadLetterFile",
    "FileSink",
    "FileSource",
    "SinkClosedError",
    "open_sink",
    "open_source",
    "read_relation_rows",
    "sink_schema",
]

STDOUT = "stdout"  # a sink that writes JSON lines to standard output
MODULES = {
    "DeadLetterFile": "dsms.io.dead_letters",
    "FileSink": "dsms.io.sinks",
    "FileSource": "dsms.io.sources",
    "SinkClosedError": "dsms.io.sinks",
    "open_sink": "dsms.io.sinks",
    "open_source": "dsms.io.sources",
    "read_relation_rows": "dsms.io.sources",
    "sink_schema": "dsms.io.sinks",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in MODULES:
            raise AttributeError(f"module 'dsms.io' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(MODULES[name]), name)
        return value
