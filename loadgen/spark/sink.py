"""The Spark sink `dsms`: `df.writeStream.format("dsms")` and `df.write.format("dsms")` push rows into a live system.

A task ends when all its frames are acknowledged; only then does Spark commit the micro-batch. A task that is repeated,
after a failure or a restart from the checkpoint, sends the same frames under the same producer and numbers. The
gateway accepts each frame once.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from dsms.clock import monotonic_s, wall_time_s
from dsms.errors import DsmsError, UnreachableError, existing
from dsms.net.client import Client, connect
from dsms.net.tokens import read_token
from dsms.net.wire.frame_split import split_batch
from loadgen.push.pacing import GRAIN_S, Frame, SendStats, make_frames, send_paced
from loadgen.push.window_order import WindowOrder
from loadgen.spark.options import Options
from loadgen.spark.rows import DUE, STREAM, check_columns, split_batches

FORMAT = "dsms"
OPTIONS = (
    "address", "stream", "due", "pace", "grain", "rows", "producer", "tokenfile", "ca", "journal", "end", "timeout",
    "patience", "turns", "lane", "lanes", "partitions",
)  # fmt: skip
ROWS_PER_FRAME = 50_000  # where rows are not paced
ACK_TIMEOUT_S = 60.0  # for the last frames to be acknowledged
CONNECT_RETRY_S = 0.5
FRAME_NUMBER_BITS = 32  # of a frame's number inside its micro-batch
QUERY_ID_PROPERTY, BATCH_ID_PROPERTY = "sql.streaming.queryId", "streaming.sql.batchId"  # Spark sets them in every task


@dataclass(frozen=True)
class SinkConfig:
    """The settings that every task of the sink gets."""

    addresses: tuple[str, ...]
    stream: str | None
    due: str | None
    pace: bool
    grain: float
    rows: int
    producer: str
    token_file: str | None
    ca: str | None
    timeout: float
    patience: float
    window_order: WindowOrder | None = None  # None: windows may overtake each other

    def client(self, place: int = 0, producer: str | None = None) -> Client:
        """Connect; a task always uses the same gateway, which knows the frames it has sent before."""
        token = None if self.token_file is None else read_token(Path(self.token_file), "tokenfile")
        address = self.addresses[place % len(self.addresses)] or None
        # A token may require that the producer's name begins with the configured one.
        name = producer or ".".join(filter(None, (self.producer, uuid.uuid4().hex)))
        start = monotonic_s()
        while True:
            try:
                return connect(address, token=token, producer=name, ca=self.ca, patience=self.timeout)
            except UnreachableError:  # a dead gateway is restarted; Spark would give up after four attempts
                if monotonic_s() - start >= self.patience:
                    raise
                threading.Event().wait(CONNECT_RETRY_S)


@dataclass
class TaskResult(WriterCommitMessage):
    """The rows that a task has delivered."""

    partition: int
    stats: SendStats
    streams: set[str]


def make_sink_config(options: Options, schema: StructType, producer: str) -> SinkConfig:
    """Read the sink's options, and check the columns against the live system's streams; runs on Spark's driver."""
    columns = {field.name: field.dataType.simpleString() for field in schema.fields}
    stream, due = options.text("stream"), options.text("due", DUE if DUE in columns else None)
    if stream is None and STREAM not in columns:
        raise DsmsError(f"{FORMAT}: neither an option 'stream' nor a column {STREAM!r} names the stream of the rows")
    if due is not None and due not in columns:
        raise DsmsError(f"{FORMAT}: option 'due' is {due!r}: no such column{existing(due, columns)}")
    if (pace := options.truth("pace")) and due is None:
        raise DsmsError(f"{FORMAT}: rows can be paced only if a column has their due times: name it in option 'due'")
    config = SinkConfig(
        tuple(options.names("address")) or ("",),
        stream,
        due,
        pace,
        options.number("grain", GRAIN_S),
        options.whole("rows", ROWS_PER_FRAME),
        ".".join(filter(None, (options.text("producer"), producer))),
        options.text("tokenfile"),
        options.text("ca"),
        options.number("timeout", ACK_TIMEOUT_S),
        options.number("patience", 0.0),
        _make_window_order(options),
    )
    with config.client() as client:
        if stream is not None and stream not in client.streams:
            raise DsmsError(f"{FORMAT}: no stream {stream!r}{existing(stream, client.streams)}")
        if stream is not None:
            own = () if due is None or due in client.streams[stream] else (due,)
            check_columns(columns, client.streams[stream], stream, own)
    return config


def write_partition(config: SinkConfig, rows: Iterator[pa.RecordBatch], producer: str, micro_batch: int) -> TaskResult:
    """Send one task's rows, and wait until all are acknowledged."""
    partition, sleep, order = _task_context().partitionId(), threading.Event().wait, config.window_order
    place = 0 if order is None else order.place(micro_batch, partition)
    numbers = iter(range((micro_batch + 1 << FRAME_NUMBER_BITS) + 1, micro_batch + 2 << FRAME_NUMBER_BITS))
    with config.client(partition, f"{producer}.{partition}") as client:
        schemas, streams = client.streams, set[str]()

        def send(frame: Frame) -> None:
            streams.add(frame.stream)
            for piece in split_batch(frame.rows, schemas[frame.stream]):
                client.push(frame.stream, piece, number=next(numbers))

        def parts(whole: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, Any]]:
            return (part for each in whole for part in split_batches(each, schemas, config.stream, config.due))

        if config.pace:  # make all frames before the first is due: a burst must not wait for Spark
            schedule = iter(make_frames(parts(_coalesce(rows)), config.grain))
        else:
            schedule = (Frame(wall_time_s(), *part) for part in parts(rebatch(rows, config.rows)))
        if order is not None:
            order.wait(place, sleep)
        stats = send_paced(schedule, send, wall_time_s, sleep)
        client.flush(config.timeout)
        if order is not None:
            order.mark_sent(place)
    return TaskResult(partition, stats, streams)


def rebatch(parts: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Regroup rows into batches of this many: frames must not depend on how Spark cuts its batches."""
    held: list[pa.RecordBatch] = []
    count = 0
    for part in parts:
        held.append(part)
        count += part.num_rows
        while count >= rows:
            whole = _concatenate(held)
            yield whole.slice(0, rows)
            count -= rows
            held = [whole.slice(rows)] if count else []
    if count:
        yield _concatenate(held)


def _coalesce(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held = [part for part in parts if part.num_rows]
    if held:
        yield _concatenate(held)


def _concatenate(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def _make_window_order(options: Options) -> WindowOrder | None:
    folder, numbers = options.text("turns"), (("lane", 0), ("lanes", 1), ("partitions", 1))
    return (
        None if folder is None else WindowOrder(folder, *(options.whole(name, least, least) for name, least in numbers))
    )


def _task_context() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "rows are written by Spark's tasks"
    return task


class SparkSink(DataSource):
    """The format `dsms`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return BatchWriter(self._options(), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        return StreamWriter(self._options(), schema)

    def _options(self) -> Options:
        return Options(FORMAT, dict(self.options.items()), OPTIONS)


class BatchWriter(DataSourceArrowWriter):
    """Pushes all rows of a data frame, once each, however often a task is repeated."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._config = make_sink_config(options, schema, uuid.uuid4().hex)
        self._end, self._journal = options.truth("end"), options.text("journal")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_partition(self._config, iterator, self._config.producer, 0)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        append_journal(self._journal, 0, messages)
        if self._end:
            with self._config.client() as client:
                sent = {stream for message in messages if isinstance(message, TaskResult) for stream in message.streams}
                for stream in sorted(sent if self._config.stream is None else {self._config.stream}):
                    client.end(stream)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to undo: another attempt under the same producer continues after the accepted frames."""


class StreamWriter(DataSourceStreamArrowWriter):
    """Pushes the rows of every micro-batch, once each, also after restarts from a checkpoint."""

    def __init__(self, options: Options, schema: StructType) -> None:
        if options.truth("end"):
            raise DsmsError(f"{FORMAT}: option 'end' is for `df.write` only: a streaming query has no end")
        self._config, self._journal = make_sink_config(options, schema, ""), options.text("journal")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = _task_context()
        query, micro_batch = task.getLocalProperty(QUERY_ID_PROPERTY), task.getLocalProperty(BATCH_ID_PROPERTY)
        if query is None or micro_batch is None:
            raise DsmsError(f"{FORMAT}: Spark does not name the query and micro-batch of a task; use PySpark 4")
        producer = ".".join(filter(None, (self._config.producer, query)))
        return write_partition(self._config, iterator, producer, int(micro_batch))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        append_journal(self._journal, batchId, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to undo: the gateway ignores accepted frames when the micro-batch is repeated."""


def append_journal(path: str | None, micro_batch: int, messages: list[WriterCommitMessage | None]) -> None:
    """Append a line for a finished micro-batch, which the driver of the load reads in another process."""
    if path is None:
        return
    total = SendStats()
    for message in messages:
        if isinstance(message, TaskResult):
            total.add(message.stats)
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"batch": micro_batch, **total.to_json()}) + "\n")
