"""Binds FROM, JOIN, ANTI JOIN and WHERE: the input of a SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce

from sqlglot import exp

from dsms.algebra import (
    Aggregate,
    AliasedNode,
    Difference,
    Join,
    Node,
    Select,
    StoredRelation,
    StreamScan,
    Window,
    Windowed,
    inputs_of,
)
from dsms.errors import PlanError
from dsms.expressions.tree import Call, Column, Expression, conjuncts
from dsms.query.cql.catalog import Catalog
from dsms.query.cql.errors import CqlError, refuse_unsupported_args, start_of
from dsms.query.cql.expressions import Translator
from dsms.query.cql.scope import Scope

Pairs = tuple[tuple[str, str], ...]
ISTREAM_HINT = "use ISTREAM to make a stream of it"


@dataclass
class Sources:
    """Collects the sources and conditions of a SELECT."""

    catalog: Catalog
    subquery: Callable[[exp.Subquery], Node]
    inputs: list[tuple[str, Node]] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    differences: list[tuple[str, Node, exp.Join]] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)

    def gather(self, select: exp.Select) -> tuple[Node, Scope]:
        """The rows that pass WHERE, and the columns in scope."""
        if not select.args.get("from_"):
            raise CqlError("FROM is missing: a continuous query reads at least one stream", start_of(select))
        joins: list[exp.Join] = select.args.get("joins") or []
        self._add(select.args["from_"].this)
        for join in joins:
            self._join(join)
        self._check_stored(select)
        where = select.args.get("where")
        if where is not None:
            self.conditions.append(Translator(self.scope, self.catalog.functions).condition(where.this))
        return self._input(), self.scope

    @property
    def scope(self) -> Scope:
        """The columns in scope; they are qualified if there are several inputs."""
        if len(self.inputs) == 1:
            alias, node = self.inputs[0]
            return Scope.single(alias, node.schema)
        return Scope.joined(tuple((alias, node.schema) for alias, node in self.inputs), frozenset(self.merged))

    def _input(self) -> Node:
        on, rest = extract_join_columns(self.conditions, self.scope)
        node = self.inputs[0][1]
        if len(self.inputs) > 1:
            node = Join(tuple(self.inputs), on, self.scope.schema)
        for alias, right, join in self.differences:
            node = Difference(node, right, anti_join_columns(self.scope, Scope.single(alias, right.schema), join))
        return Select(node, reduce(and_conditions, rest)) if rest else node

    def _add(self, node: exp.Expr) -> None:
        alias, source = self._source(node)
        if alias in dict(self.inputs):
            raise CqlError(f"two sources are called {alias!r}; give one another name with AS", start_of(node))
        self.inputs.append((alias, source))

    def _source(self, node: exp.Expr) -> tuple[str, Node]:
        """The alias of a source and what it reads."""
        if not isinstance(node, exp.Table | exp.Subquery) or node.args.get("db") is not None:
            raise CqlError("expected the name of a stream, stored relation or query in FROM", start_of(node))
        refuse_unsupported_args(node, {"this", "alias"})
        alias = node.args.get("alias")
        if alias is not None and (alias.args.get("columns") or not isinstance(alias.this, exp.Identifier)):
            raise CqlError("an alias is one name; columns are renamed in SELECT", start_of(alias))
        if isinstance(node, exp.Subquery):
            if not node.alias:
                raise CqlError("a sub-query in FROM needs a name: (SELECT ...) AS s", start_of(node))
            return node.alias, apply_window_clause(node, self.subquery(node))
        if not isinstance(node.this, exp.Identifier):
            raise CqlError("a function is not a source: FROM reads streams, relations and queries", start_of(node))
        try:
            source = self.catalog.source(node.name)
        except PlanError as error:
            raise CqlError(error.message, start_of(node)) from None
        return node.alias_or_name, apply_window_clause(node, source)

    def _join(self, join: exp.Join) -> None:
        kind, side = str(join.args.get("kind") or ""), str(join.args.get("side") or "")
        written = " ".join(word for word in (str(join.args.get("method") or ""), side, kind, "JOIN") if word)
        anti = kind == "ANTI" and side in ("", "LEFT")
        if join.args.get("method") or (side and not anti) or (kind and kind not in ("INNER", "CROSS", "ANTI")):
            raise CqlError(f"{written} is not part of CQL; there are JOIN, CROSS JOIN and ANTI JOIN", start_of(join))
        refuse_unsupported_args(join, {"this", "side", "kind", "on", "using"})
        if anti:
            alias, source = self._source(join.this)
            if isinstance(source, StoredRelation):
                raise CqlError(f"{alias!r} is stored; ANTI JOIN needs a stream or a query", start_of(join.this))
            self.differences.append((alias, source, join))
            return
        before = self.scope
        self._add(join.this)
        for name in join.args.get("using") or ():
            self._merge(name, before)
        if join.args.get("on") is not None:
            self.conditions.append(Translator(self.scope, self.catalog.functions).condition(join.args["on"]))

    def _merge(self, name: exp.Expr, before: Scope) -> None:
        """Merge the columns of a USING."""
        alias, source = self.inputs[-1]
        left = resolve_column(before, name)
        right = resolve_column(Scope.single(alias, source.schema), name)
        kinds = (before.schema[left], source.schema[right])
        if kinds[0] != kinds[1]:
            raise CqlError(f"USING compares {kinds[0]} with {kinds[1]}: both must have the same type", start_of(name))
        qualified = left if len(self.inputs) > 2 else f"{self.inputs[0][0]}.{left}"
        self.conditions.append(Call("=", (Column(qualified), Column(f"{alias}.{right}"))))
        self.merged.add(name.name)

    def _check_stored(self, select: exp.Select) -> None:
        if all(isinstance(node, StoredRelation) for _, node in self.inputs):
            names = [alias for alias, _ in self.inputs]
            message = f"{names} are stored: a continuous query joins them with at least one stream"
            raise CqlError(message, start_of(select.args["from_"]))


def anti_join_columns(left: Scope, right: Scope, join: exp.Join) -> Pairs:
    """The columns in which ANTI JOIN compares its left with its right."""
    pairs = [(resolve_column(left, name), resolve_column(right, name)) for name in join.args.get("using") or ()]
    if join.args.get("on") is not None:
        pairs += [read_equality(part, left, right) for part in split_conjunction(join.args["on"])]
    if not pairs:
        raise CqlError("ANTI JOIN needs ON or USING with the columns to compare", start_of(join))
    for mine, its in pairs:
        if left.schema[mine] != right.schema[its]:
            kinds = f"{left.schema[mine]} with {right.schema[its]}"
            raise CqlError(f"ANTI JOIN compares {kinds}: both must have the same type", start_of(join))
    return tuple(pairs)


def read_equality(node: exp.Expr, left: Scope, right: Scope) -> tuple[str, str]:
    """The left column and the right column in `a = b` or `b = a`."""
    sides = (node.this, node.expression) if isinstance(node, exp.EQ) else ()
    if not all(isinstance(side, exp.Column) for side in sides) or not sides:
        raise CqlError("ANTI JOIN compares a column of the left with one of the right by =", start_of(node))
    mine, its = sides
    if is_only_in(mine, right, left) or is_only_in(its, left, right):
        mine, its = its, mine
    return resolve_column(left, mine), resolve_column(right, its)


def is_only_in(column: exp.Expr, here: Scope, there: Scope) -> bool:
    """Whether a column exists in one scope and not in the other."""
    return _has_column(here, column) and not _has_column(there, column)


def _has_column(scope: Scope, column: exp.Expr) -> bool:
    return any(
        column.name in columns and column.args.get("table") in (None, exp.to_identifier(alias))
        for alias, columns in scope.sources
    )


def resolve_column(scope: Scope, node: exp.Expr) -> str:
    """Resolve a name or a qualified name to a column of the batch."""
    try:
        return scope.column(node.name, node.text("table")).name
    except PlanError as error:
        raise CqlError(error.message, start_of(node)) from None


def split_conjunction(node: exp.Expr) -> list[exp.Expr]:
    """Split a condition at its ANDs."""
    if isinstance(node, exp.Paren):
        return split_conjunction(node.this)
    return [*split_conjunction(node.this), *split_conjunction(node.expression)] if isinstance(node, exp.And) else [node]


def extract_join_columns(conditions: Iterable[Expression], scope: Scope) -> tuple[Pairs, list[Expression]]:
    """The equalities between columns of different inputs, which make the join, and the remaining conditions."""
    if len(scope.sources) == 1:
        return (), list(conditions)
    order = [alias for alias, _ in scope.sources]
    on: dict[tuple[str, str], None] = {}
    rest = []
    for part in (part for condition in conditions for part in conjuncts(condition)):
        match part:
            case Call("=", (Column(one), Column(other))) if _is_join_condition(one, other, scope):
                first, second = sorted((one, other), key=lambda column: order.index(scope.owner(column)))
                on[first, second] = None
            case _:
                rest.append(part)
    return tuple(on), rest


def _is_join_condition(one: str, other: str, scope: Scope) -> bool:
    # Hashes find equal values of one type only: 1 = 1.0 stays a condition.
    return scope.owner(one) != scope.owner(other) and scope.schema[one] == scope.schema[other]


def and_conditions(one: Expression, other: Expression) -> Expression:
    """Combine two conditions by AND."""
    return Call("and", (one, other))


def apply_window_clause(node: exp.Expr, source: Node) -> Node:
    """Apply the window that follows a source, if any."""
    window: Window | None = node.meta.get("window")
    try:
        return source if window is None else make_windowed(source, window)
    except PlanError as error:
        raise CqlError(error.message, node.meta.get("window_start")) from None


def make_windowed(source: Node, window: Window) -> Node:
    """Apply a window to a source."""
    if isinstance(source, StoredRelation):
        raise PlanError(f"a window needs a stream, and {source.name!r} is stored: it has no timestamps")
    if not source.is_append_only:
        raise PlanError(
            f"a window needs a stream, and this is a relation: {explain_retractions(source)}; {ISTREAM_HINT}"
        )
    return source if window.kind == "unbounded" else Windowed(source, window)


def explain_retractions(node: Node) -> str:
    """Why rows of a relation may be retracted."""
    match node:
        case Windowed():
            return "rows leave the window in it"
        case Aggregate():
            return "an aggregate's results change"
        case Difference():
            return "a row of a difference is retracted when the right side gets an equal one"
        case StreamScan() | StoredRelation():
            return "its rows stay"
        case AliasedNode(of=of):
            return explain_retractions(of)
        case _:
            return next(explain_retractions(part) for part in inputs_of(node) if not part.is_append_only)
