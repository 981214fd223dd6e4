"""Spark's rows become batches of streams: types, nulls, and the stream of each row."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from dsms import DsmsError
from dsms.data.schema import Schema
from loadgen.spark.rows import check_columns, split_batches
from loadgen.spark.sink import rebatch

BIDS = Schema.of({"n": "int64", "price": "float64", "at": "timestamp", "who": "string", "good": "bool"})
SPARK_TYPES = {"n": "int", "price": "float", "at": "timestamp_ntz", "who": "string", "good": "boolean"}


def test_columns_that_fit_are_accepted_and_those_of_the_load_itself_are_ignored() -> None:
    check_columns(SPARK_TYPES | {"_number": "bigint", "when": "timestamp"}, BIDS, "bids", own=("when",))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": "double"}, "column 'n' is double; expected tinyint or smallint or int or bigint for int64"),
        ({"n": None}, "no column 'n'"),
        ({"more": "int"}, "column 'more' is not declared"),
        ({"at": "date"}, "column 'at' is date; expected timestamp or timestamp_ntz or bigint for timestamp"),
    ],
)
def test_columns_that_do_not_fit_are_refused(changed: dict[str, str | None], message: str) -> None:
    types = {name: kind for name, kind in (SPARK_TYPES | changed).items() if kind is not None}
    with pytest.raises(DsmsError, match=message):
        check_columns(types, BIDS, "bids")


def test_every_type_and_its_nulls_are_converted() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = pa.RecordBatch.from_pydict(
        {
            "n": pa.array([1, None], pa.int32()),
            "price": pa.array([1.5, None], pa.float32()),
            "at": pa.array([at, None], pa.timestamp("us", "UTC")),
            "who": ["a", None],
            "good": [True, None],
            "when": pa.array([at, at], pa.timestamp("us", "UTC")),
        }
    )
    ((stream, batch),) = split_batches(rows, {"bids": BIDS}, "bids", "when")
    micros = int(at.timestamp() * 1e6)
    assert stream == "bids"
    assert batch.records() == [
        {"n": 1, "price": 1.5, "at": micros, "who": "a", "good": True},
        dict.fromkeys(("n", "price", "at", "who", "good")),
    ]
    assert batch.each("arrived").tolist() == [at.timestamp()] * 2


def test_rows_of_several_streams_are_split_by_a_column_and_keep_their_order() -> None:
    rows = pa.RecordBatch.from_pydict({"_stream": ["s", "t", "s"], "n": [1, 2, 3], "m": [None, 5, None]})
    schemas = {"s": Schema.of({"n": "int64"}), "t": Schema.of({"m": "int64"})}
    found = [(name, batch.records()) for name, batch in split_batches(rows, schemas, None, None)]
    assert found == [("s", [{"n": 1}, {"n": 3}]), ("t", [{"m": 5}])]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"_stream": ["u"]}, "rows for 'u': no such stream"),
        ({"_stream": pa.array([None], pa.string())}, "'_stream' is null in 1 of 1 rows"),
    ],
)
def test_rows_of_no_stream_are_refused(column: dict[str, object], message: str) -> None:
    rows = pa.RecordBatch.from_pydict({**column, "n": [1]})
    with pytest.raises(DsmsError, match=message):
        list(split_batches(rows, {"s": Schema.of({"n": "int64"})}, None, None))


def test_rows_without_a_due_time_are_refused_where_one_is_needed() -> None:
    rows = pa.RecordBatch.from_pydict({"n": [1, 2], "when": pa.array([1.0, None])})
    with pytest.raises(DsmsError, match="column 'when' is null in 1 of 2 rows"):
        list(split_batches(rows, {"s": Schema.of({"n": "int64"})}, "s", "when"))


@pytest.mark.parametrize("cut", [[7], [1, 6], [3, 0, 3, 1], [2, 2, 3]])
def test_frames_do_not_depend_on_how_spark_cuts_rows(cut: list[int]) -> None:
    ends = itertools.accumulate(cut, initial=0)
    parts = (pa.RecordBatch.from_pydict({"n": np.arange(a, b)}) for a, b in itertools.pairwise(ends))
    assert [part.column("n").to_pylist() for part in rebatch(parts, 3)] == [[0, 1, 2], [3, 4, 5], [6]]
