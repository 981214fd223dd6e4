"""Computes the expected results of a chaos run with DuckDB, over all acknowledged rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

WINDOW_US = 200  # of the join
SCHEMA = {"id": "int64", "k": "int64", "at": "int64"}
STREAM = {"schema": SCHEMA, "timestamp": "at"}
STREAMS = {"a": STREAM, "b": STREAM, "c": {"schema": {"id": "int64"}}}  # c is what Spark sends
QUERIES = {
    "met": f"SELECT ISTREAM(a.id AS a, b.id AS b) FROM a [RANGE {WINDOW_US} MICROSECONDS], "
    f"b [RANGE {WINDOW_US} MICROSECONDS] WHERE a.k = b.k",
    "groups": "SELECT k, count(*) AS n, sum(id) AS total FROM a GROUP BY k",
    "left": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "third": "SELECT id, k FROM b WHERE id % 3 = 0",
    "sparked": "SELECT id FROM c",
}
SQL = {
    "met": f"SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k = b.k AND abs(a.at - b.at) <= {WINDOW_US}",
    "groups": "SELECT k, count(*) AS n, sum(id)::BIGINT AS total FROM a GROUP BY k",
    "left": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "third": "SELECT id, k FROM b WHERE id % 3 = 0",
    "sparked": "SELECT id FROM c",
}
Rows = Counter[tuple[Any, ...]]
Columns = dict[str, NDArray[np.int64]]


def make_rows(stream: str, first: int, count: int) -> Columns:
    """Return rows of a stream from `first` on; b has every other id, so that `left` has results."""
    ids = np.arange(first, first + count, dtype=np.int64)
    if stream == "c":
        return {"id": ids}
    if stream == "b":
        ids = ids[ids % 2 == 0]
    return {"id": ids, "k": ids % 7, "at": 10 * ids}


def expect_results(counts: Mapping[str, int]) -> dict[str, Rows]:
    """Count each result row by query, for this many rows admitted once by each stream."""
    expected: dict[str, Rows] = {}
    with duckdb.connect() as duck:
        for stream in STREAMS:
            duck.register("columns", pa.table(make_rows(stream, 0, counts[stream])))
            duck.execute(f"CREATE TABLE {stream} AS SELECT * FROM columns")
            duck.unregister("columns")
        for query, sql in SQL.items():
            expected[query] = Counter(duck.execute(sql).fetchall())
    return expected
