"""What Spark writes, pushed into a live system: `df.writeStream.format("dsms")`, `df.write.format("dsms")`.

A task ends when all its frames are acknowledged, and only then does Spark take the micro-batch for done. One that is
done again, because it failed or Spark was started anew from its checkpoint, sends the same frames under the same
producer and numbers, and the gateway takes each of them once.
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

from dsms.client import Client, connect
from dsms.clock import epoch, stopwatch
from dsms.errors import DsmsError, UnreachableError, existing
from dsms.tokens import token_in
from dsms.wire.pieces import pieces
from loadgen.options import Options
from loadgen.pace import GRAIN, Delivery, Frame, frames, paced
from loadgen.rows import DUE, STREAM, batches, check
from loadgen.turns import Turns

FORMAT = "dsms"
OPTIONS = (
    "address", "stream", "due", "pace", "grain", "rows", "producer", "tokenfile", "ca", "journal", "end", "timeout",
    "patience", "turns", "lane", "lanes", "partitions",
)  # fmt: skip
ROWS = 50_000  # of a frame, where rows are not paced
TIMEOUT = 60.0  # seconds for the last frames to be acknowledged
AGAIN = 0.5  # seconds between two attempts to connect
FRAMES = 32  # bits of a frame's number inside its micro-batch
QUERY, MICRO_BATCH = "sql.streaming.queryId", "streaming.sql.batchId"  # what Spark tells every task


@dataclass(frozen=True)
class Target:
    """Where rows go and how: all that a task has to know."""

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
    turns: Turns | None = None  # whose they are to go after

    def client(self, place: int = 0, producer: str | None = None) -> Client:
        """A connection; a task always goes to the same gateway, which knows what it has sent before."""
        token = None if self.token_file is None else token_in(Path(self.token_file), "tokenfile")
        address = self.addresses[place % len(self.addresses)] or None
        name = producer or ".".join(filter(None, (self.producer, uuid.uuid4().hex)))  # a token may want it to begin so
        begun = stopwatch()
        while True:
            try:
                return connect(address, token=token, producer=name, ca=self.ca, patience=self.timeout)
            except UnreachableError:  # a gateway that has died is started again; Spark would only try four times
                if stopwatch() - begun >= self.patience:
                    raise
                threading.Event().wait(AGAIN)


@dataclass
class Done(WriterCommitMessage):
    """What a task has delivered."""

    partition: int
    delivery: Delivery
    streams: set[str]


def target_of(options: Options, schema: StructType, producer: str) -> Target:
    """The target that options describe, checked against what the system takes; asked where Spark is driven from."""
    columns = {field.name: field.dataType.simpleString() for field in schema.fields}
    stream, due = options.text("stream"), options.text("due", DUE if DUE in columns else None)
    if stream is None and STREAM not in columns:
        raise DsmsError(f"{FORMAT}: neither an option 'stream' nor a column {STREAM!r} says whose rows they are")
    if due is not None and due not in columns:
        raise DsmsError(f"{FORMAT}: option 'due' is {due!r}: no such column{existing(due, columns)}")
    if (pace := options.truth("pace")) and due is None:
        raise DsmsError(f"{FORMAT}: rows can be paced only where a column says when they are due: option 'due'")
    target = Target(
        tuple(options.names("address")) or ("",),
        stream,
        due,
        pace,
        options.number("grain", GRAIN),
        options.whole("rows", ROWS),
        ".".join(filter(None, (options.text("producer"), producer))),
        options.text("tokenfile"),
        options.text("ca"),
        options.number("timeout", TIMEOUT),
        options.number("patience", 0.0),
        _turns(options),
    )
    with target.client() as client:
        if stream is not None and stream not in client.streams:
            raise DsmsError(f"{FORMAT}: no stream {stream!r}{existing(stream, client.streams)}")
        if stream is not None:
            own = () if due is None or due in client.streams[stream] else (due,)
            check(columns, client.streams[stream], stream, own)
    return target


def written(target: Target, rows: Iterator[pa.RecordBatch], producer: str, micro_batch: int) -> Done:
    """One task's part: everything sent and acknowledged."""
    partition, nap, turns = _task().partitionId(), threading.Event().wait, target.turns
    place = 0 if turns is None else turns.place(micro_batch, partition)
    numbers = iter(range((micro_batch + 1 << FRAMES) + 1, micro_batch + 2 << FRAMES))
    with target.client(partition, f"{producer}.{partition}") as client:
        schemas, streams = client.streams, set[str]()

        def send(frame: Frame) -> None:
            streams.add(frame.stream)
            for piece in pieces(frame.rows, schemas[frame.stream]):
                client.push(frame.stream, piece, number=next(numbers))

        def parts(whole: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, Any]]:
            return (part for each in whole for part in batches(each, schemas, target.stream, target.due))

        if target.pace:  # all of it is made before any of it is due: a burst must not wait for Spark
            schedule = iter(frames(parts(_joined(rows)), target.grain))
        else:
            schedule = (Frame(epoch(), *part) for part in parts(recut(rows, target.rows)))
        if turns is not None:
            turns.wait(place, nap)
        delivery = paced(schedule, send, epoch, nap)
        client.flush(target.timeout)
        if turns is not None:
            turns.done(place)
    return Done(partition, delivery, streams)


def recut(parts: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows, so many at a time: frames must not depend on how Spark happens to cut them."""
    held: list[pa.RecordBatch] = []
    count = 0
    for part in parts:
        held.append(part)
        count += part.num_rows
        while count >= rows:
            whole = _whole(held)
            yield whole.slice(0, rows)
            count -= rows
            held = [whole.slice(rows)] if count else []
    if count:
        yield _whole(held)


def _joined(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held = [part for part in parts if part.num_rows]
    if held:
        yield _whole(held)


def _whole(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def _turns(options: Options) -> Turns | None:
    folder, numbers = options.text("turns"), (("lane", 0), ("lanes", 1), ("partitions", 1))
    return None if folder is None else Turns(folder, *(options.whole(name, least, least) for name, least in numbers))


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "rows are written by Spark's tasks"
    return task


class Sink(DataSource):
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
    """All rows of a data frame, once each, however often a task is tried."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._target = target_of(options, schema, uuid.uuid4().hex)
        self._end, self._journal = options.truth("end"), options.text("journal")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return written(self._target, iterator, self._target.producer, 0)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        journal(self._journal, 0, messages)
        if self._end:
            with self._target.client() as client:
                sent = {stream for message in messages if isinstance(message, Done) for stream in message.streams}
                for stream in sorted(sent if self._target.stream is None else {self._target.stream}):
                    client.end(stream)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What was sent is in: another attempt under the same producer would go on from there."""


class StreamWriter(DataSourceStreamArrowWriter):
    """The rows of every micro-batch, once each, also over restarts from a checkpoint."""

    def __init__(self, options: Options, schema: StructType) -> None:
        if options.truth("end"):
            raise DsmsError(f"{FORMAT}: a stream's end is not Spark's to say: 'end' is for `df.write`")
        self._target, self._journal = target_of(options, schema, ""), options.text("journal")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = _task()
        query, micro_batch = task.getLocalProperty(QUERY), task.getLocalProperty(MICRO_BATCH)
        if query is None or micro_batch is None:
            raise DsmsError(f"{FORMAT}: Spark does not say which query and micro-batch this is; PySpark 4 is wanted")
        producer = ".".join(filter(None, (self._target.producer, query)))
        return written(self._target, iterator, producer, int(micro_batch))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        journal(self._journal, batchId, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What was sent is in, and will not be taken again when the micro-batch is tried again."""


def journal(path: str | None, micro_batch: int, messages: list[WriterCommitMessage | None]) -> None:
    """A line for a micro-batch that is done: for whoever drives the load, in another process than this."""
    if path is None:
        return
    whole = Delivery()
    for message in messages:
        if isinstance(message, Done):
            whole.add(message.delivery)
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"batch": micro_batch, **whole.to_json()}) + "\n")
