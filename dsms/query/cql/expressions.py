"""Translates sqlglot's expressions to ours: resolves columns and checks types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dsms.errors import PlanError
from dsms.expressions.scalar_functions import UserFunction
from dsms.expressions.tree import Call, Case, Cast, Column, Expression, Literal
from dsms.expressions.types import ExpressionError, type_of
from dsms.query.cql.errors import CqlError, refuse_unsupported_args, start_of
from dsms.query.cql.scope import Scope

OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "and", exp.Or: "or", exp.Like: "like", exp.DPipe: "||",
}  # fmt: skip
SYNONYMS = {"substring": "substr", "pow": "power", "ceiling": "ceil", "len": "length"}
AGGREGATES = ("count", "sum", "avg", "min", "max")
TYPES = {
    **dict.fromkeys(("BIGINT", "INT", "SMALLINT", "TINYINT"), "int64"),
    **dict.fromkeys(("DOUBLE", "FLOAT"), "float64"),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), "string"),
    **dict.fromkeys(("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ"), "timestamp"),
    "BOOLEAN": "bool",
}
# The supported parts of expressions; `typed` and `safe` describe the dialect's division.
SUPPORTED_EXPRESSIONS = frozenset(
    {"this", "expression", "expressions", "table", "low", "high", "ifs", "true", "default", "to", "_type"}
    | {"is_string", "negate", "typed", "safe"}
)
UNSUPPORTED_HINTS: dict[type[exp.Expr], str] = {
    exp.Window: "a window function (OVER) is not part of CQL; a window belongs in brackets after a stream in FROM",
    exp.Filter: "FILTER is not part of CQL; a CASE inside the aggregate does the same",
    exp.Star: "* is allowed alone in SELECT or in count(*)",
    exp.Distinct: "DISTINCT belongs after SELECT or inside count( )",
    exp.Alias: "AS belongs at the end of an item of SELECT",
    **dict.fromkeys(
        (exp.Subquery, exp.Select, exp.Exists, exp.Union, exp.Except),
        "a sub-query is allowed in FROM only; write a JOIN or an ANTI JOIN",
    ),
}


def is_aggregate(node: exp.Expr) -> bool:
    """Whether this part itself is an aggregate."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES


def aggregates_in(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates in an expression, outermost first."""
    return [part for part in node.walk() if is_aggregate(part)]


@dataclass
class Translator:
    """Translates expressions over the columns in scope."""

    scope: Scope
    functions: Mapping[str, UserFunction]

    def expression(self, node: exp.Expr) -> Expression:
        """Translate an expression and check its types."""
        made = self._made(node)
        if not isinstance(made, Column | Literal):
            self.type_of(made, node)
        return made

    def type_of(self, made: Expression, node: exp.Expr) -> str:
        """The type of a translated expression."""
        try:
            return type_of(made, self.scope.schema, self.functions)
        except ExpressionError as error:
            raise CqlError(str(error), start_of(node)) from None

    def condition(self, node: exp.Expr) -> Expression:
        """Translate an expression that is true, false or unknown."""
        made = self.expression(node)
        kind = self.type_of(made, node)
        if kind not in ("bool", "null"):
            raise CqlError(f"expected a condition, not a value of type {kind}", start_of(node))
        return made

    def _made(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Column):
            return self.column(node)
        if isinstance(node, exp.In) and node.args.get("query"):
            raise unsupported_error(node.args["query"])
        if isinstance(node, exp.Paren):
            return self.expression(node.this)
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null):
            return translate_literal(node)
        if type(node) in UNSUPPORTED_HINTS:
            raise unsupported_error(node)
        refuse_unsupported_args(node, SUPPORTED_EXPRESSIONS)
        if name := OPERATORS.get(type(node)):
            made = Call(name, (self.expression(node.this), self.expression(node.expression)))
            return Call("not", (made,)) if node.args.get("negate") else made
        match node:
            case exp.Neg():
                return self._negative(node)
            case exp.Not():
                return Call("not", (self.expression(node.this),))
            case exp.Is():
                return self._is_null(node)
            case exp.In():
                return self._member(node)
            case exp.Between():
                return self._between(node)
            case exp.Case():
                return self._case(node)
            case exp.Cast():
                return Cast(self.expression(node.this), read_cast_type(node))
            case exp.Anonymous():
                return self.call(node)
        raise unsupported_error(node)

    def column(self, node: exp.Column) -> Expression:
        """Resolve a column in scope."""
        if isinstance(node.this, exp.Star):
            raise unsupported_error(node.this)
        if node.args.get("db") is not None:
            raise CqlError("a column is called name or alias.name, without a further dot", start_of(node))
        try:
            return self.scope.column(node.name, node.table)
        except PlanError as error:
            raise CqlError(error.message, start_of(node)) from None

    def call(self, node: exp.Anonymous) -> Expression:
        """Translate a call of a built-in or a user's function."""
        if is_aggregate(node):
            raise CqlError(f"the aggregate {node.name.lower()} is not allowed here", start_of(node))
        lower = node.name.lower()
        name = node.name if node.name in self.functions else SYNONYMS.get(lower, lower)
        return Call(name, tuple(self.expression(argument) for argument in node.expressions))

    def _negative(self, node: exp.Neg) -> Expression:
        made = self.expression(node.this)
        if isinstance(made, Literal) and isinstance(made.value, int | float) and not isinstance(made.value, bool):
            return Literal(-made.value)
        return Call("neg", (made,))

    def _is_null(self, node: exp.Is) -> Expression:
        if not isinstance(node.expression, exp.Null):
            raise CqlError("only NULL or NOT NULL may follow IS", start_of(node.expression) or start_of(node))
        return Call("is null", (self.expression(node.this),))

    def _member(self, node: exp.In) -> Expression:
        if not node.expressions:
            raise CqlError("IN needs values in parentheses, as in x IN (1, 2)", start_of(node))
        return Call("in", tuple(self.expression(part) for part in (node.this, *node.expressions)))

    def _between(self, node: exp.Between) -> Expression:
        value, low, high = (self.expression(node.args[part]) for part in ("this", "low", "high"))
        return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))

    def _case(self, node: exp.Case) -> Expression:
        subject = self.expression(node.this) if node.this is not None else None
        branches = []
        for branch in node.args["ifs"]:
            when = self.expression(branch.this)
            chosen = when if subject is None else Call("=", (subject, when))
            branches.append((chosen, self.expression(branch.args["true"])))
        default = node.args.get("default")
        return Case(tuple(branches), self.expression(default) if default is not None else Literal(None))


def translate_literal(node: exp.Expr) -> Literal:
    """Translate a constant."""
    if isinstance(node, exp.Null):
        return Literal(None)
    if isinstance(node, exp.Boolean):
        return Literal(bool(node.this))
    if node.is_string:
        return Literal(str(node.this))
    try:
        value = int(node.this) if str(node.this).isdecimal() else float(node.this)
    except ValueError:
        raise CqlError(f"{node.this!r} is not a number", start_of(node)) from None
    if value >= 2**63 if isinstance(value, int) else math.isinf(value):
        kind = "int64" if isinstance(value, int) else "float64"
        raise CqlError(f"{node.this} is more than {kind} can hold", start_of(node))
    return Literal(value)


def read_cast_type(node: exp.Cast) -> str:
    """The type after CAST(... AS."""
    to = node.args["to"]
    name = getattr(to.this, "value", str(to.this)).upper()
    if name not in TYPES or to.expressions:
        known = ["int64", "float64", "bool", "timestamp", "string"]
        raise CqlError(f"no type {name.lower()!r} to CAST to; there are {known}", start_of(node))
    return TYPES[name]


def unsupported_error(node: exp.Expr) -> CqlError:
    """The error for syntax that sqlglot can parse and CQL does not have."""
    message = UNSUPPORTED_HINTS.get(type(node)) or f"{type(node).__name__.lower()} is not part of CQL"
    return CqlError(message, start_of(node))
