"""Random continuous queries, each with the SQL that says what its results add up to when all streams have ended.

The SQL reads tables of all rows of the streams: what is left in a window is chosen by its conditions on time, which
stops at `end`, the highest timestamp of all streams (with SLIDE at the first boundary after it). A query has windows
with RANGE or windows with SLIDE, not both: a join of the two is worked out at the boundary, where more has left the
window with RANGE. Windows of ROWS stand on streams whose rows have an order, which a join's results have not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from support.queries.formulas import Columns, Formulas
from support.queries.rows import STORED, TYPES

JOINABLE = ("k", "s", "b", "v", "u", "f", "label")


@dataclass(frozen=True)
class QueryText:
    """A CQL text, its SQL, and its columns; the SQL of a stream has columns _t and _n for its order."""

    cql: str
    sql: str
    columns: Columns


@dataclass
class QueryGenerator:
    """Draws queries over streams; later queries can read earlier ones by name."""

    draw: st.DrawFn
    streams: list[str]
    end: int
    lengths: tuple[int, ...]  # of windows, in microseconds
    sliding: bool = False
    stored: list[str] = field(default_factory=list)
    named: dict[str, QueryText] = field(default_factory=dict)  # whose results are relations
    flowing: dict[str, QueryText] = field(default_factory=dict)  # whose results are streams

    def pick(self, options: Any) -> Any:
        """Draw one of the options."""
        return self.draw(st.sampled_from(list(options)))

    # --- sources in FROM

    def stream(self, nested: bool = True) -> QueryText:
        """Draw a stream, a query whose results are a stream, or a subquery that selects from a stream."""
        name = self.pick([*self.streams, *self.flowing])
        if name in self.flowing:
            part = self.flowing[name]
            return QueryText(name, f"({part.sql})", part.columns)
        plain = QueryText(name, f"(SELECT *, ts AS _t FROM {name})", TYPES)
        return self.selected_stream(plain) if nested and self.pick(range(4)) == 0 else plain

    def selected_stream(self, plain: QueryText, brackets: str = "({})") -> QueryText:
        """Draw a selection from a stream, which is a stream too."""
        formulas = Formulas(self.draw, plain.columns)
        items = [formulas.any(1) for _ in range(self.pick([1, 2, 3]))]
        listed = ", ".join(f"{text} AS c{place}" for place, (text, _) in enumerate(items))
        where = f" WHERE {formulas.some()}" if self.pick([False, True]) else ""
        window = ""
        if brackets != "{}" and self.pick(range(3)) == 2:  # ISTREAM of a window is the stream again
            brackets, window = "ISTREAM ({})", f" [RANGE {self.pick([0, 3, 20])} MICROSECONDS]"
        cql = f"SELECT {listed} FROM {plain.cql}{window}{where}"
        sql = f"SELECT {listed}, _t, _n FROM {plain.sql} AS x{where}"
        return QueryText(brackets.format(cql), f"({sql})", {f"c{place}": kind for place, (_, kind) in enumerate(items)})

    def windowed(self, size: str = "any") -> QueryText:
        """Draw a window over a stream, or none if any size is allowed; `size` limits how many rows it holds."""
        stream = self.stream()
        endless = ["unbounded", ""] if size == "any" else []
        kind = self.pick(["time"] * 5 + ["rows"] * 3 + endless + ["now"] * (not self.sliding))
        shown = ", ".join(stream.columns)
        if kind == "rows":
            count = self.pick({"any": [5, 2, 20, 1], "some": [10, 5, 20, 2], "few": [2, 1, 3]}[size])
            last = f"ORDER BY _t DESC, _n DESC LIMIT {count}"
            return QueryText(
                f"{stream.cql} [ROWS {count}]", f"(SELECT {shown} FROM {stream.sql} {last})", stream.columns
            )
        if kind in ("unbounded", ""):
            spelt = " [UNBOUNDED]" if kind else ""
            return QueryText(f"{stream.cql}{spelt}", f"(SELECT {shown} FROM {stream.sql})", stream.columns)
        window, least, above = self.span(0 if kind == "now" else self.pick((1, 4) if size == "few" else self.lengths))
        inside = f"_t >= {least} AND _t < {above}"
        return QueryText(
            f"{stream.cql} [{window}]", f"(SELECT {shown} FROM {stream.sql} WHERE {inside})", stream.columns
        )

    def span(self, length: int) -> tuple[str, int, int]:
        """Draw a time window, its first instant and the first instant after it."""
        if self.sliding:
            slide = self.pick([length, 1, 3, 10])
            boundary = (self.end // slide + 1) * slide
            window = f"RANGE {length} MICROSECONDS SLIDE {slide} MICROSECONDS"
            return window, boundary - length, boundary
        return (f"RANGE {length} MICROSECONDS" if length else "NOW"), self.end - length, self.end + 1

    def source(self, alias: str, depth: int, size: str = "any") -> QueryText:
        """Draw a source with an alias; its columns are qualified."""
        kind = self.pick(["window"] * 4 + ["query"] * (depth > 0) + ["named"] * 2 * bool(self.named))
        if kind == "named":
            name = self.pick(self.named)
            part = QueryText(name, f"({self.named[name].sql})", self.named[name].columns)
        elif kind == "query":
            inner = self.relation(depth - 1)
            part = QueryText(f"({inner.cql})", f"({inner.sql})", inner.columns)
        else:
            part = self.windowed(size)
        return self.called(part, alias)

    def called(self, part: QueryText, alias: str) -> QueryText:
        """Give a source an alias."""
        columns = {f"{alias}.{name}": kind for name, kind in part.columns.items()}
        return QueryText(f"{part.cql} AS {alias}", f"{part.sql} AS {alias}", columns)

    # --- relations

    def relation(self, depth: int = 1) -> QueryText:
        """Draw a query of any kind."""
        kinds = [self.selection, self.selection, self.join, self.aggregate, self.union, self.difference, self.anti_join]
        return self.pick(kinds)(depth)

    def selection(self, depth: int = 1) -> QueryText:
        """Draw a SELECT from one source."""
        return self.items(self.source("x", depth), inexact=depth > 0)

    def join(self, depth: int = 1) -> QueryText:
        """Draw a SELECT from several sources, joined by equal columns and other conditions."""
        joined, where = self.joined(depth)
        return self.items(joined, where)

    def joined(self, depth: int) -> tuple[QueryText, list[str]]:
        """Draw several sources, and their conditions in WHERE."""
        count = self.pick([2, 2, 2, 3])
        stored = bool(self.stored) and self.pick([True, False])
        parts = [self.source(alias, 0 if place else depth, "some") for place, alias in enumerate("xyz"[:count])]
        if stored:
            name = self.stored[0]
            parts[-1] = self.called(
                QueryText(name, f"(SELECT {', '.join(STORED)} FROM {name})", STORED), "xyz"[count - 1]
            )
        cql, sql, columns, where = parts[0].cql, parts[0].sql, dict(parts[0].columns), list[str]()
        for part in parts[1:]:
            on = self.equalities(columns, part.columns)
            columns.update(part.columns)
            if self.pick(range(3)) == 2:
                on.append(Formulas(self.draw, columns).mild())
            if on and self.pick([True, False]):
                together = f"ON {' AND '.join(on)}"
                cql, sql = f"{cql} JOIN {part.cql} {together}", f"{sql} JOIN {part.sql} {together}"
            else:
                cql, sql, where = f"{cql}, {part.cql}", f"{sql}, {part.sql}", where + on
        return QueryText(cql, sql, columns), where

    def equalities(self, left: Columns, right: Columns, anti: bool = False) -> list[str]:
        """Draw equalities of columns of the same type; rarely none, because a cross product has many rows.

        An anti join has one at least, and several where a row would otherwise always have a partner.
        """
        pairs = [
            (one, other) for one, kind in left.items() for other, its in right.items()
            if kind == its and _bare(one) in JOINABLE and _bare(other) in JOINABLE and not (anti and kind == "bool")
        ]  # fmt: skip
        alike = [(one, other) for one, other in pairs if _bare(one) == _bare(other)]
        pairs = pairs or [(o, t) for o, kind in left.items() for t, its in right.items() if kind == its]
        count = min(len(pairs), self.pick([1, 2, 2] if anti else [1, 1, 1, 1, 1, 1, 1, 2, 0]))
        pairs = alike if alike and self.pick([True, True, True, False]) else pairs
        chosen = dict.fromkeys(self.pick(pairs) for _ in range(count))
        return [f"{one} = {other}" for one, other in chosen]

    def items(self, source: QueryText, where: list[str] | None = None, inexact: bool = False) -> QueryText:
        """Draw SELECT ... FROM a source, with all or some of its columns."""
        formulas = Formulas(self.draw, source.columns)
        conditions = list(where or [])
        if self.pick([False, True]):
            conditions.append(formulas.mild(2) if conditions else formulas.some(2))
        distinct = self.pick([False, False, False, True])
        items = [formulas.any(2, exact=distinct or not inexact) for _ in range(self.pick([1, 2, 3, 4]))]
        return self.written("SELECT DISTINCT" if distinct else "SELECT", items, source, conditions)

    def written(
        self, start: str, items: list[tuple[str, str]], source: QueryText, where: list[str], end: str = ""
    ) -> QueryText:
        """Return the text of a SELECT."""
        listed = ", ".join(f"{text} AS c{place}" for place, (text, _) in enumerate(items))
        behind = (f" WHERE {' AND '.join(where)}" if where else "") + end
        cql, sql = (f"{start} {listed} FROM {text}{behind}" for text in (source.cql, source.sql))
        return QueryText(cql, sql, {f"c{place}": kind for place, (_, kind) in enumerate(items)})

    def aggregate(self, depth: int = 1) -> QueryText:
        """Draw GROUP BY, or an aggregate without keys."""
        source, where = self.joined(0) if self.pick(range(3)) == 2 else (self.source("x", depth), [])
        formulas = Formulas(self.draw, source.columns)
        if self.pick(range(3)) == 2:
            where.append(formulas.mild())
        keys = [formulas.any(self.pick([0, 0, 1])) for _ in range(self.pick([0, 1, 1, 2]))]
        # We refuse GROUP BY of a constant; in DuckDB it is the number of a column.
        keys = [key if any(name in key[0] for name in source.columns) else formulas.column() for key in keys]
        values = [self.aggregation(formulas) for _ in range(self.pick([1, 2, 3]))]
        end = f" GROUP BY {', '.join(dict.fromkeys(text for text, _ in keys))}" if keys else ""
        if self.pick(range(4)) == 3:
            number = self.pick([text for text, kind in values if kind in ("int64", "float64")] or ["count(*)"])
            end += f" HAVING {number} {self.pick(['>', '<=', '<>'])} {self.pick([0, 1, 2, 5])}"
        return self.written("SELECT", keys + values, source, where, end)

    def aggregation(self, formulas: Formulas) -> tuple[str, str]:
        """Draw an aggregate and its type."""
        name = self.pick(["count(*)", "count", "count(DISTINCT", "sum", "avg", "min", "max"])
        if name == "count(*)":
            return name, "int64"
        if name in ("sum", "avg"):
            kind = self.pick(["int64", "float64"])
            return f"{name}({formulas.of(kind, 1)})", kind if name == "sum" else "float64"
        text, kind = formulas.any(self.pick([0, 1]))
        if name in ("min", "max"):
            return f"{name}({text})", kind
        return (f"{name}({text})" if name == "count" else f"{name} {text})"), "int64"

    # --- set operations

    def alike(self, kinds: list[str], depth: int, size: str = "any") -> QueryText:
        """Draw a selection with columns of these types and few distinct values each."""
        source = self.source("x", depth, size)
        formulas = Formulas(self.draw, source.columns)
        items = [(self.like(formulas, source.columns, kind), kind) for kind in kinds]
        wanted = formulas.condition if size == "few" else formulas.some
        where = [wanted(1)] if self.pick([False, True]) else []
        return self.written("SELECT", items, source, where)

    def like(self, formulas: Formulas, columns: Columns, kind: str) -> str:
        return formulas.column((kind,))[0] if kind in columns.values() else formulas.of(kind, 1)

    def union(self, depth: int = 1) -> QueryText:
        """Draw UNION or UNION ALL of two or three parts."""
        kinds = [self.pick(["int64", "bool", "string", "float64"]) for _ in range(self.pick([1, 1, 2]))]
        parts = [self.alike(kinds, depth if place == 0 else 0) for place in range(self.pick([2, 2, 3]))]
        return combine(self.pick(["UNION ALL", "UNION ALL", "UNION"]), parts)

    def difference(self, depth: int = 1) -> QueryText:
        """Draw EXCEPT."""
        kinds = [self.pick(["int64", "string", "float64", "bool"]) for _ in range(self.pick([1, 1, 2]))]
        return combine("EXCEPT", [self.alike(kinds, depth), self.alike(kinds, 0, "few")])

    def anti_join(self, depth: int = 1) -> QueryText:
        """Draw an anti-join of one or several sources."""
        source, where = self.joined(0) if self.pick(range(4)) == 3 else (self.source("x", depth), [])
        cql, sql = source.cql, source.sql
        for alias in self.pick(["m", "m", "mn"]):
            right = self.source(alias, 0, "few")
            on = self.equalities(source.columns, right.columns, anti=True)
            if on:
                cql = f"{cql} ANTI JOIN {right.cql} ON {' AND '.join(on)}"
                sql = f"{sql} ANTI JOIN {right.sql} ON {' AND '.join(on)}"
        return self.items(QueryText(cql, sql, source.columns), where)


def combine(word: str, parts: list[QueryText]) -> QueryText:
    """Join parts by a set operator."""
    cql, sql = (f" {word} ".join(texts) for texts in zip(*((part.cql, part.sql) for part in parts), strict=True))
    return QueryText(cql, sql, parts[0].columns)


def _bare(name: str) -> str:
    return name.rpartition(".")[2]
