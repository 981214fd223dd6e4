"""What the queries of a chaos run must have come to, worked out by DuckDB over what was acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SPAN = 200  # microseconds that rows of the join meet within
SCHEMA = {"id": "int64", "k": "int64", "at": "int64"}
STREAM = {"schema": SCHEMA, "timestamp": "at"}
STREAMS = {"a": STREAM, "b": STREAM, "c": {"schema": {"id": "int64"}}}  # c is what Spark sends
QUERIES = {
    "met": f"SELECT ISTREAM(a.id AS a, b.id AS b) FROM a [RANGE {SPAN} MICROSECONDS], b [RANGE {SPAN} MICROSECONDS] "
    "WHERE a.k = b.k",
    "groups": "SELECT k, count(*) AS n, sum(id) AS total FROM a GROUP BY k",
    "left": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "third": "SELECT id, k FROM b WHERE id % 3 = 0",
    "sparked": "SELECT id FROM c",
}
SQL = {
    "met": f"SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k = b.k AND abs(a.at - b.at) <= {SPAN}",
    "groups": "SELECT k, count(*) AS n, sum(id)::BIGINT AS total FROM a GROUP BY k",
    "left": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "third": "SELECT id, k FROM b WHERE id % 3 = 0",
    "sparked": "SELECT id FROM c",
}
Rows = Counter[tuple[Any, ...]]
Columns = dict[str, NDArray[np.int64]]


def rows(stream: str, first: int, count: int) -> Columns:
    """The rows of a stream from one on: of b every other is missing, so that something is left of a."""
    ids = np.arange(first, first + count, dtype=np.int64)
    if stream == "c":
        return {"id": ids}
    if stream == "b":
        ids = ids[ids % 2 == 0]
    return {"id": ids, "k": ids % 7, "at": 10 * ids}


def expected(counts: Mapping[str, int]) -> dict[str, Rows]:
    """By query: how often each row is there in the end, if so many rows were taken in by each stream, once."""
    found: dict[str, Rows] = {}
    with duckdb.connect() as duck:
        for stream in STREAMS:
            duck.register("columns", pa.table(rows(stream, 0, counts[stream])))
            duck.execute(f"CREATE TABLE {stream} AS SELECT * FROM columns")
            duck.unregister("columns")
        for query, sql in SQL.items():
            found[query] = Counter(duck.execute(sql).fetchall())
    return found
