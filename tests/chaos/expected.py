"""What the queries of a chaos run must have come to, worked out by DuckDB over what was acknowledged."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SPAN = 200  # microseconds that rows of the join meet within
SCHEMA = {"id": "int64", "k": "int64", "at": "int64"}
STREAM = {"schema": SCHEMA, "timestamp": "at"}
QUERIES = {
    "met": f"SELECT ISTREAM(a.id AS a, b.id AS b) FROM a [RANGE {SPAN} MICROSECONDS], b [RANGE {SPAN} MICROSECONDS] "
    "WHERE a.k = b.k",
    "groups": "SELECT k, count(*) AS n, sum(id) AS total FROM a GROUP BY k",
    "left": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "third": "SELECT id, k FROM b WHERE id % 3 = 0",
}
SQL = {
    "met": f"SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k = b.k AND abs(a.at - b.at) <= {SPAN}",
    "groups": "SELECT k, count(*) AS n, sum(id)::BIGINT AS total FROM a GROUP BY k",
    "left": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "third": "SELECT id, k FROM b WHERE id % 3 = 0",
}
Rows = Counter[tuple[Any, ...]]
Columns = dict[str, NDArray[np.int64]]


def rows(stream: str, first: int, count: int) -> Columns:
    """The rows of a stream from one on: of b every other is missing, so that something is left of a."""
    ids = np.arange(first, first + count, dtype=np.int64)
    if stream == "b":
        ids = ids[ids % 2 == 0]
    return {"id": ids, "k": ids % 7, "at": 10 * ids}


def expected(count: int) -> dict[str, Rows]:
    """By query: how often each row is there in the end, if so many rows of each stream were taken in, once."""
    found: dict[str, Rows] = {}
    with duckdb.connect() as duck:
        for stream in "ab":
            duck.register("columns", pa.table(rows(stream, 0, count)))
            duck.execute(f"CREATE TABLE {stream} AS SELECT * FROM columns")
            duck.unregister("columns")
        for query, sql in SQL.items():
            found[query] = Counter(duck.execute(sql).fetchall())
    return found
