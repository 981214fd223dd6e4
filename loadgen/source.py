"""Generated rows for Spark: `spark.readStream.format("dsms_load")`, and `spark.read` for all of a load that ends.

Offsets are times: rows are made by windows of the load's time, and a window is there for Spark once it is due, or so
many seconds `ahead` of that, for a sink that waits until its rows are. Which rows there are depends on the plan and the
seed alone; not on partitions, windows or micro-batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from dsms.clock import epoch
from dsms.errors import DsmsError
from dsms.files.columns import arrow_of
from loadgen.load import Load, Recipe, Rows, edges, load_of
from loadgen.options import Options
from loadgen.rows import DUE, MICROS, NUMBER, STREAM, spark_type

FORMAT = "dsms_load"
OPTIONS = (
    "plan", "stream", "rate", "utilisation", "duration", "speedup", "since", "seed",
    "partitions", "window", "windows", "lane", "lanes", "ahead", "begin",
)  # fmt: skip
WINDOW = 1.0  # seconds of the load's time, if nothing is said
UTC = pa.timestamp("us", tz="UTC")


@dataclass
class Stretch(InputPartition):
    """What one task makes: rows due in [start, stop)."""

    start: float
    stop: float


def recipe_of(options: Options) -> Recipe:
    """The recipe that options describe."""
    plan = options.text("plan")
    if plan is None:
        raise DsmsError(f"{FORMAT}: no option 'plan': a plan file says what arrives when")
    return Recipe.of(
        plan,
        streams=tuple(options.names("stream")),
        rate=options.number("rate", None),
        utilisation=options.number("utilisation", None),
        duration=options.number("duration", None),
        speedup=options.number("speedup", 1.0),
        since=options.number("since", 0.0, least=-1.0),
        seed=options.whole("seed", None, least=0),
    )


def schema_of(load: Load) -> StructType:
    """Whose row it is, which and when it is due; then the columns of all streams, null where they are another's."""
    kinds: dict[str, tuple[str, str]] = {}
    for source in load.sources:
        for name, kind in source.schema.fields:
            other, known = kinds.setdefault(name, (source.name, kind))
            if known != kind:
                raise DsmsError(
                    f"column {name!r} is {known} in {other!r} and {kind} in {source.name!r}, so they do not go into one"
                    " data frame: name the streams you want by the option 'stream'"
                )
    own = [StructField(STREAM, StringType()), StructField(NUMBER, LongType()), StructField(DUE, TimestampType())]
    return StructType(own + [StructField(name, spark_type(kind)) for name, (_, kind) in kinds.items()])


def made(load: Load, stretch: Stretch, schema: StructType, origin: float) -> Iterator[pa.RecordBatch]:
    """The rows of a stretch as Arrow has them."""
    schemas = {source.name: source.schema for source in load.sources}
    for rows in load.rows(stretch.start, stretch.stop):
        if len(rows.due):
            yield _arrow(rows, schemas[rows.stream], schema, origin, load.speedup)


def _arrow(rows: Rows, mine: Any, schema: StructType, origin: float, speedup: float) -> pa.RecordBatch:
    count = len(rows.due)
    due = np.round((origin + rows.due / speedup) * MICROS).astype(np.int64)
    columns: dict[str, pa.Array] = {
        STREAM: pa.array([rows.stream] * count),
        NUMBER: pa.array(np.arange(rows.first, rows.first + count)),
        DUE: pa.array(due).cast(UTC),
    }
    for name, column in arrow_of(rows.batch, mine).items():
        columns[name] = column.cast(UTC) if mine[name] == "timestamp" else column
    types = {field.name: pa.null() for field in schema.fields}
    found = [columns.get(name, pa.nulls(count, _type(schema, name))) for name in types]
    return pa.RecordBatch.from_arrays(found, names=list(types))


def _type(schema: StructType, name: str) -> pa.DataType:
    types = {
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": UTC,
        "string": pa.string(),
    }
    return types[schema[name].dataType.simpleString()]


class LoadSource(DataSource):
    """The format `dsms_load`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return schema_of(load_of(recipe_of(self._options())))

    def reader(self, schema: StructType) -> DataSourceReader:
        return LoadReader(self._options(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LoadStreamReader(self._options(), schema)

    def _options(self) -> Options:
        return Options(FORMAT, dict(self.options.items()), OPTIONS)


class LoadReader(DataSourceReader):
    """All of a load that ends; it is due from 1970 on, or from `begin`."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._recipe, self._schema = recipe_of(options), schema
        self._partitions = options.whole("partitions", 4)
        self._origin = options.number("begin", 0.0, least=-1.0)

    def partitions(self) -> Sequence[InputPartition]:
        end = load_of(self._recipe).end
        if math.isinf(end):
            raise DsmsError(f"{FORMAT}: the load never ends: give a `duration`, or a `count` or `until` in the plan")
        return split(0.0, end, self._partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Stretch)
        return made(load_of(self._recipe), partition, self._schema, self._origin)


class LoadStreamReader(DataSourceStreamReader):
    """A load as it becomes due, by windows; of several lanes, each has every so many-th window."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._recipe, self._schema = recipe_of(options), schema
        self._partitions = options.whole("partitions", 1)
        self._window = micros(options.number("window", WINDOW))
        self._most = options.whole("windows", None)
        self._lanes = options.whole("lanes", 1)
        self._lane = options.whole("lane", 0, least=0)
        self._ahead = options.number("ahead", 0.0, least=-1.0)
        self._begin = options.number("begin", None)
        if self._lane >= self._lanes:
            raise DsmsError(
                f"{FORMAT}: option 'lane' is {self._lane}; 0 to {self._lanes - 1} are wanted with these 'lanes'"
            )

    def initialOffset(self) -> dict[str, int]:
        begin = epoch() if self._begin is None else self._begin
        return {"origin": round(begin * MICROS), "upto": 0}

    def latestOffset(self, start: dict[str, int], limit: Any = None) -> dict[str, int]:
        """The end, in microseconds of the load's time, of the last window of this lane that is due."""
        load = load_of(self._recipe)
        time = ((epoch() + self._ahead) * MICROS - start["origin"]) * load.speedup
        if self._most is not None and not start["upto"]:
            # By windows, the first is there at once: else Spark would begin with a micro-batch of none.
            time = max(time, (self._lane + 1) * self._window)
        due = int(max(0.0, min(time, windows_of(load, self._window) * self._window)))
        mine = list(islice(self._windows(start["upto"], due), self._most))
        return {**start, "upto": (mine[-1] + 1) * self._window} if mine else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [
            TimedStretch(part.start, part.stop, start["origin"] / MICROS)
            for each in self._windows(start["upto"], end["upto"])
            for part in split(each * self._window / MICROS, (each + 1) * self._window / MICROS, self._partitions)
        ]

    def _windows(self, start: int, stop: int) -> Iterator[int]:
        """The windows of this lane that lie between two times; the last may go on after the load has ended."""
        if start % self._window:
            raise DsmsError(
                f"{FORMAT}: the checkpoint ends at {start / MICROS:g} s, where no window of {self._window / MICROS:g} s"
                " ends: it was written with another 'window'"
            )
        first = start // self._window
        return iter(range(first + (self._lane - first) % self._lanes, stop // self._window, self._lanes))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TimedStretch)
        return made(load_of(self._recipe), partition, self._schema, partition.origin)


@dataclass
class TimedStretch(Stretch):
    """With when, by the calendar, the load began."""

    origin: float


def split(start: float, stop: float, parts: int) -> list[Stretch]:
    """A stretch of time in equal parts."""
    return [Stretch(*ends) for ends in pairwise(edges(start, stop, parts))]


def micros(window: float) -> int:
    """A window's length in whole microseconds: what offsets are made of."""
    return max(1, round(window * MICROS))


def windows_of(load: Load, window: int) -> float:
    """How many windows of so many microseconds a load has; the last may go on after it has ended."""
    return math.inf if math.isinf(load.end) else math.ceil(load.end * MICROS / window)
