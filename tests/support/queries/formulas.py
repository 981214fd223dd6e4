"""Random expressions that mean the same here and in DuckDB.

Left out because the two differ, and may: division by zero (an error here, null there), NaN (equal to itself there),
texts of floats and letters whose capitals are several letters. Sums of float64 are compared to nine digits only, so
conditions and keys are made of `exact` expressions, whose floats are few quarters and do not depend on an order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

Columns = Mapping[str, str]  # type by (qualified) name
LITERALS = {
    "int64": ("0", "1", "2", "5", "(-3)", "15"),
    "float64": ("0e0", "0.5e0", "(-1.25e0)", "2.75e0"),  # with e, as 0.5 is a decimal number in DuckDB
    "bool": ("true", "false"),
    "timestamp": (),
    "string": ("''", "'a'", "'ab'", "'é'", "'zz'"),
}
PATTERNS = ("'%'", "'a%'", "'%b'", "'_'", "'%a%'", "'50_'")  # not '': DuckDB 2.0.0 breaks off at case … end like ''
KINDS = ("int64", "float64", "bool", "string")


class Formulas:
    """Draws expressions over some columns."""

    def __init__(self, draw: st.DrawFn, columns: Columns) -> None:
        self._draw = draw
        self._columns = columns
        self._timed = "timestamp" in columns.values()  # there are no literals of that type

    def pick(self, options: Any) -> Any:
        """Draw one of the options."""
        return self._draw(st.sampled_from(list(options)))

    def any(self, depth: int = 2, exact: bool = True) -> tuple[str, str]:
        """Draw an expression of any type and its type; never a bare literal, which tests little."""
        kind = self.pick([*KINDS, *self._columns.values()])
        if depth == 0 or kind == "timestamp" or self.pick([True, False]):
            return self.column()
        text = self.of(kind, depth, exact)
        return (text, kind) if text not in LITERALS[kind] else self.column()

    def column(self, kinds: tuple[str, ...] | None = None) -> tuple[str, str]:
        """Draw a column and its type."""
        name = self.pick(name for name, kind in self._columns.items() if kinds is None or kind in kinds)
        return name, self._columns[name]

    def of(self, kind: str, depth: int = 2, exact: bool = True) -> str:
        """Draw an expression of a type."""
        if depth <= 0 or self.pick([True, False, False]):
            return self._leaf(kind)
        if self.pick(range(5)) == 4:
            return self._choice(kind, depth - 1, exact)
        compound: Callable[[int, bool], str] = {
            "int64": self._integer, "float64": self._float, "bool": self.condition, "string": self._string,
            "timestamp": self._instant,
        }[kind]  # fmt: skip
        return compound(depth - 1, exact)

    def condition(self, depth: int = 2, exact: bool = True) -> str:
        """Draw a condition."""
        form = self.pick(["compare", "compare", "compare", "and", "or", "not", "null", "in", "between", "like", "bool"])
        if form in ("and", "or"):
            return (
                f"({self.condition(depth - 1)} {form} {self.condition(depth - 1)})" if depth > 0 else self._compare(0)
            )
        if form == "not":
            return f"(not {self.condition(depth - 1)})" if depth > 0 else f"(not {self._leaf('bool')})"
        if form == "null":
            return f"({self.any(depth)[0]} is {self.pick(['null', 'not null'])})"
        if form == "in":
            kind = self.pick(["int64", "float64", "string"])
            values = [self.pick([*LITERALS[kind], "null"]) for _ in range(self.pick([1, 2, 3]))]
            return f"({self.of(kind, depth)} {self.pick(['in', 'not in'])} ({', '.join(values)}))"
        if form == "between":
            kind = self.pick(["int64", "float64", "string", *self._instants()])
            low, high = self.of(kind, depth - 1), self.of(kind, depth - 1)
            return f"({self.of(kind, depth)} {self.pick(['between', 'not between'])} {low} and {high})"
        if form == "like":
            return f"({self.of('string', depth)} {self.pick(['like', 'not like'])} {self.pick(PATTERNS)})"
        return self._leaf("bool") if form == "bool" else self._compare(depth)

    def some(self, depth: int = 1) -> str:
        """Draw a condition that most rows satisfy, or any condition."""
        return self.mild(depth) if self.pick([True, False]) else self.condition(depth)

    def mild(self, depth: int = 1) -> str:
        """Draw a condition that most rows satisfy."""
        return f"({self.condition(depth)} or {self.column()[0]} is not null)"

    def _compare(self, depth: int) -> str:
        kind = self.pick(["int64", "int64", "float64", "bool", "string", *self._instants()])
        other = self.pick(["int64", "float64"]) if kind in ("int64", "float64") else kind
        sign = self.pick(["=", "<>", "<", "<=", ">", ">="])
        return f"({self.of(kind, depth)} {sign} {self.of(other, depth)})"

    def _instants(self) -> list[str]:
        return ["timestamp"] if self._timed else []

    def _leaf(self, kind: str) -> str:
        columns = [name for name, own in self._columns.items() if own == kind]
        return str(self.pick([*columns, *columns, *LITERALS[kind]]))

    def _choice(self, kind: str, depth: int, exact: bool) -> str:
        """Draw an expression form that exists for all types."""
        form = self.pick(["coalesce", "nullif", "case", "case of", "least", "greatest"])
        one, other = self.of(kind, depth, exact), self.of(kind, depth, exact)
        if form in ("case", "case of"):
            when = self.condition(depth)
            start = f"case when {when} then {one}"
            if form == "case of":
                start = f"case {self.of('int64', 0)} when {self.of('int64', 0)} then {one} when 1 then {other}"
            return f"({start} {self.pick(['', f'else {other} '])}end)"
        if kind == "bool" and form in ("least", "greatest"):
            form = "coalesce"
        return f"{form}({one}, {other})"

    def _integer(self, depth: int, exact: bool) -> str:
        form = self.pick(
            ["+", "-", "*", "//", "%", "neg", "abs", "length", "cast", *(["apart"] if self._timed else [])]
        )
        one = self.of("int64", depth)
        if form in ("+", "-", "*"):
            return f"({one} {form} {self.of('int64', depth)})"
        if form in ("//", "%"):
            divisor = f"nullif({self._leaf('int64')}, 0)"
            return f"({one} {form} {self.pick(['2', '3', '(-4)', divisor])})"
        if form == "apart":
            return f"({self._leaf('timestamp')} - {self._leaf('timestamp')})"
        if form == "cast":
            return f"cast({self.of(self.pick(['bool', 'float64']), depth)} as BIGINT)"
        return {"neg": f"(-{one})", "abs": f"abs({one})", "length": f"length({self.of('string', depth)})"}[form]

    def _float(self, depth: int, exact: bool) -> str:
        form = self.pick(["+", "-", "*", "neg", "abs", "floor", "ceil", "round", "cast", "/", "sqrt", "ln", "power"])
        one = self.of("float64", depth, exact)
        if form in ("+", "-", "*"):
            return f"({one} {form} {self.of(self.pick(['int64', 'float64']), depth, exact)})"
        if form == "cast":
            return f"cast({self.of('int64', depth)} as DOUBLE)"
        if form == "/":
            whole = self.of("int64", depth)
            return f"({whole} / 4)" if exact else f"({one} / nullif({whole}, 0))"
        if not exact and form in ("sqrt", "ln"):
            return f"{form}(abs({one}) + 1)"
        if not exact and form == "power":
            return f"power({one}, 2)"
        return f"(-{one})" if form == "neg" else f"{form if form in ('floor', 'ceil', 'round') else 'abs'}({one})"

    def _string(self, depth: int, exact: bool) -> str:
        form = self.pick(["||", "concat", "lower", "upper", "trim", "substr", "rest", "cast"])
        one = self.of("string", depth)
        if form == "||":
            return f"({one} || {self.of('string', depth)})"
        if form == "concat":
            return f"concat({one}, {self.of('string', depth)})"
        if form == "substr":
            return f"substr({one}, {self.pick(['1', '2', '(-1)', '0'])}, {self.pick(['1', '2'])})"
        if form == "rest":
            return f"substr({one}, {self.pick(['1', '2', '(-2)'])})"
        if form == "cast":
            return f"cast({self.of(self.pick(['bool', 'int64']), depth)} as VARCHAR)"
        return f"{form}({one})"

    def _instant(self, depth: int, exact: bool) -> str:
        return f"({self._leaf('timestamp')} {self.pick('+-')} {self.of('int64', 0)})"
