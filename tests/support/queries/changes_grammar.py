"""Random queries whose results are streams (ISTREAM, DSTREAM, RSTREAM), with the SQL for their whole output."""

from __future__ import annotations

from dataclasses import dataclass

from support.queries.formulas import Formulas
from support.queries.grammar import QueryGenerator, QueryText


@dataclass(frozen=True)
class WindowSpec:
    """A window: the rows that ever enter it, its final rows, and its contents at every change."""

    cql: str
    births: str
    left: str
    contents: str  # of {0}, a table


def window(queries: QueryGenerator) -> WindowSpec:
    """Draw a window with its meaning: conditions and a query on the columns _t and _n of a stream."""
    end, length = queries.end, queries.pick([*queries.lengths, 0])
    kind = queries.pick(["rows", "slide" if queries.sliding else "range", "unbounded"])
    if kind == "rows":
        count = queries.pick([1, 2, 5, 20])
        # A row that others of its own instant evict is never visible.
        births = f"row_number() OVER (PARTITION BY _t ORDER BY _n DESC) <= {count}"
        left = f"row_number() OVER (ORDER BY _t DESC, _n DESC) <= {count}"
        last = f"row_number() OVER (PARTITION BY _at ORDER BY _t DESC, _n DESC) <= {count}"
        contents = f"SELECT * FROM (SELECT DISTINCT _t AS _at FROM {{0}}) JOIN {{0}} ON _t <= _at QUALIFY {last}"
        return WindowSpec(f"[ROWS {count}]", births, left, contents)
    if kind == "unbounded":
        contents = "SELECT * FROM (SELECT DISTINCT _t AS _at FROM {0}) JOIN {0} ON _t <= _at"
        return WindowSpec(queries.pick(["", "[UNBOUNDED]"]), "true", "true", contents)
    if kind == "slide":
        length = max(length, 1)
        slide = queries.pick([1, 3, 10, length])
        entering = f"(_t - (_t % {slide} + {slide}) % {slide} + {slide})"
        boundary = (end // slide + 1) * slide
        births = f"_t >= {entering} - {length}"
        later = f"(_t + {length})"
        leaving = f"({later} - ({later} % {slide} + {slide}) % {slide} + {slide})"
        instants = f"SELECT DISTINCT unnest([{entering}, {leaving}]) AS _at FROM {{0}} WHERE {births}"
        inside = f"_t < _at AND _t >= _at - {length}"
        contents = f"SELECT * FROM ({instants}) JOIN {{0}} ON {inside} WHERE _at <= {boundary}"
        text = f"[RANGE {length} MICROSECONDS SLIDE {slide} MICROSECONDS]"
        return WindowSpec(text, births, f"_t >= {boundary - length}", contents)
    instants = f"SELECT _t AS _at FROM {{0}} UNION SELECT _t + {length + 1} FROM {{0}}"
    contents = f"SELECT * FROM ({instants}) JOIN {{0}} ON _t <= _at AND _t >= _at - {length} WHERE _at <= {end}"
    return WindowSpec(
        f"[RANGE {length} MICROSECONDS]" if length else "[NOW]", "true", f"_t >= {end - length}", contents
    )


def changes(queries: QueryGenerator, kind: str | None = None) -> QueryText:
    """Draw ISTREAM, DSTREAM or RSTREAM of a window over a stream."""
    kind = kind or queries.pick(["ISTREAM", "ISTREAM", "DSTREAM", "RSTREAM"])
    stream, wanted = queries.stream(), window(queries)
    formulas = Formulas(queries.draw, stream.columns)
    items = [formulas.any(1) for _ in range(queries.pick([1, 2, 3]))]
    listed = ", ".join(f"{text} AS c{place}" for place, (text, _) in enumerate(items))
    # RSTREAM emits at every change of its input: a condition would hide some changes of the window.
    where = f" WHERE {formulas.some()}" if kind != "RSTREAM" and queries.pick([True, False]) else ""
    rows = f"(SELECT *, {wanted.births} AS _born, {wanted.left} AS _left FROM {stream.sql})"
    shown = {
        "ISTREAM": f"(SELECT * FROM {rows} WHERE _born)",
        "DSTREAM": f"(SELECT * FROM {rows} WHERE _born AND NOT _left)",
        "RSTREAM": f"(WITH w AS {stream.sql} {wanted.contents.format('w')})",
    }[kind]
    columns = {f"c{place}": its for place, (_, its) in enumerate(items)}
    cql = f"SELECT {{}} FROM {stream.cql} {wanted.cql}{' AS x' if '(' in stream.cql else ''}{where}"
    cql = queries.pick(
        [f"{kind} ({cql.format(listed)})", cql.format(f"{kind}({listed})"), cql.format(f"{kind} {listed}")]
    )
    return QueryText(cql, f"SELECT {listed}, _t, _n FROM {shown} AS x{where}", columns)


def pairs(queries: QueryGenerator) -> QueryText:
    """Draw ISTREAM or DSTREAM of a join of time windows: all pairs that ever existed, or that were deleted."""
    aliases = "xyz"[: queries.pick([2, 2, 3])]
    cql, sql, columns, lengths = list[str](), list[str](), dict[str, str](), dict[str, int | None]()
    on: list[str] = []
    for alias in aliases:
        stream = queries.stream()
        lengths[alias] = length = queries.pick([*queries.lengths, *queries.lengths, 0, None])
        text = "" if length is None else f" [RANGE {length} MICROSECONDS]"
        cql.append(f"{stream.cql}{text} AS {alias}")
        sql.append(f"{stream.sql} AS {alias}")
        its = {f"{alias}.{name}": kind for name, kind in stream.columns.items()}
        on += queries.equalities(columns, its) if columns else []
        columns.update(its)
    formulas = Formulas(queries.draw, columns)
    if queries.pick([False, True]):
        on.append(formulas.mild())
    met = [
        f"{one}._t + {lengths[one]} >= {other}._t"  # three time spans that overlap pairwise have a common instant
        for one in aliases for other in aliases if one != other and lengths[one] is not None
    ]  # fmt: skip
    kind = queries.pick(["ISTREAM", "ISTREAM", "DSTREAM"])
    if kind == "DSTREAM":
        stay = [f"{a}._t + {length} >= {queries.end}" for a, length in lengths.items() if length is not None]
        met.append(f"NOT ({' AND '.join(stay)})" if stay else "false")
    items = [formulas.any(1) for _ in range(queries.pick([1, 2, 3]))]
    listed = ", ".join(f"{text} AS c{place}" for place, (text, _) in enumerate(items))
    cql_where, sql_where = (f" WHERE {' AND '.join(all_)}" if all_ else "" for all_ in (on, on + met))
    shown = {f"c{place}": its for place, (_, its) in enumerate(items)}
    text = f"SELECT {kind} {listed} FROM {', '.join(cql)}{cql_where}"
    return QueryText(text, f"SELECT {listed} FROM {', '.join(sql)}{sql_where}", shown)
