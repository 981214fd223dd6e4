"""Where rows come from and go to on disk: CSV, JSON lines and Parquet; the one place that knows pyarrow."""

from dsms.files.dead_letters import DeadLetters
from dsms.files.sink import Sink, SinkClosedError, sink_from
from dsms.files.source import Source, source_from, stored

__all__ = ["DeadLetters", "Sink", "SinkClosedError", "Source", "sink_from", "source_from", "stored"]
