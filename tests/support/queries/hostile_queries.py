"""Valid queries that fuzzing mangles, and what the compiler answers to a mangled one."""

from __future__ import annotations

from collections.abc import Callable

from dsms.data.schema import Schema
from dsms.errors import DsmsError
from dsms.query.cql import Catalog

SCHEMA = Schema.of({"n": "int64", "x": "float64", "who": "string", "what": "string"})
CATALOG = Catalog({"s": SCHEMA, "t": SCHEMA}, {})
VALID_QUERIES = (
    "SELECT n, x * 2 AS double FROM s WHERE who LIKE 'a%' AND n BETWEEN 1 AND 10",
    "ISTREAM (SELECT who, count(*), avg(x) FROM s [RANGE 10 SECONDS SLIDE 1 SECONDS] GROUP BY who HAVING min(n) > 2)",
    "SELECT s.n, t.x FROM s [ROWS 10], t [RANGE UNBOUNDED] WHERE s.n = t.n",
    "SELECT CASE WHEN x > 1.5 THEN 'a' ELSE lower(who) END, CAST(n AS string) FROM s UNION ALL SELECT who, what FROM t",
    "DSTREAM (SELECT DISTINCT n FROM s [PARTITION BY who ROWS 5] EXCEPT SELECT n FROM t [NOW])",
    "SELECT substr(who, 2, 3) || '''' , coalesce(n, 0), n IN (1, 2, 3), x IS NOT NULL FROM s -- remark\n",
)


def refusal(make: Callable[[], object]) -> str | None:
    """Return the message of the error for users that a call raises, or None; every other error is a bug."""
    try:
        make()
    except DsmsError as error:
        return str(error)
    return None
