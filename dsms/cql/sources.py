"""FROM, JOIN and ANTI JOIN, with the WHERE that joins them: the input of a SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce

from sqlglot import exp

from dsms.algebra import Aggregate, Difference, Join, Named, Node, Select, Stored, Stream, Window, Windowed, inputs_of
from dsms.cql.catalog import Catalog
from dsms.cql.errors import CqlError, refuse_others, start_of
from dsms.cql.scope import Scope
from dsms.cql.translate import Translator
from dsms.errors import PlanError
from dsms.expressions.tree import Call, Column, Expression, conjuncts

Pairs = tuple[tuple[str, str], ...]
MEND = "ISTREAM makes a stream of it"


@dataclass
class Sources:
    """What a SELECT reads, gathered source by source."""

    catalog: Catalog
    subquery: Callable[[exp.Subquery], Node]
    inputs: list[tuple[str, Node]] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    differences: list[tuple[str, Node, exp.Join]] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)

    def gather(self, select: exp.Select) -> tuple[Node, Scope]:
        """The rows that WHERE lets pass and the columns in sight."""
        if not select.args.get("from_"):
            raise CqlError("FROM is wanted: a continuous query reads at least one stream", start_of(select))
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
        """The columns in sight: qualified where there are several inputs."""
        if len(self.inputs) == 1:
            alias, node = self.inputs[0]
            return Scope.single(alias, node.schema)
        return Scope.joined(tuple((alias, node.schema) for alias, node in self.inputs), frozenset(self.merged))

    def _input(self) -> Node:
        on, rest = joining(self.conditions, self.scope)
        node = self.inputs[0][1]
        if len(self.inputs) > 1:
            node = Join(tuple(self.inputs), on, self.scope.schema)
        for alias, right, join in self.differences:
            node = Difference(node, right, compared(self.scope, Scope.single(alias, right.schema), join))
        return Select(node, reduce(both, rest)) if rest else node

    def _add(self, node: exp.Expr) -> None:
        alias, source = self._source(node)
        if alias in dict(self.inputs):
            raise CqlError(f"two sources are called {alias!r}; give one another name with AS", start_of(node))
        self.inputs.append((alias, source))

    def _source(self, node: exp.Expr) -> tuple[str, Node]:
        """The alias of a source and what it reads."""
        if not isinstance(node, exp.Table | exp.Subquery) or node.args.get("db") is not None:
            raise CqlError("the name of a stream, stored relation or query is wanted in FROM", start_of(node))
        refuse_others(node, {"this", "alias"})
        alias = node.args.get("alias")
        if alias is not None and (alias.args.get("columns") or not isinstance(alias.this, exp.Identifier)):
            raise CqlError("an alias is one name; columns are renamed in SELECT", start_of(alias))
        if isinstance(node, exp.Subquery):
            if not node.alias:
                raise CqlError("a sub-query in FROM wants a name: (SELECT ...) AS s", start_of(node))
            return node.alias, behind(node, self.subquery(node))
        if not isinstance(node.this, exp.Identifier):
            raise CqlError("a function is no source; FROM reads streams, relations and queries", start_of(node))
        try:
            source = self.catalog.source(node.name)
        except PlanError as error:
            raise CqlError(error.message, start_of(node)) from None
        return node.alias_or_name, behind(node, source)

    def _join(self, join: exp.Join) -> None:
        kind, side = str(join.args.get("kind") or ""), str(join.args.get("side") or "")
        written = " ".join(word for word in (str(join.args.get("method") or ""), side, kind, "JOIN") if word)
        anti = kind == "ANTI" and side in ("", "LEFT")
        if join.args.get("method") or (side and not anti) or (kind and kind not in ("INNER", "CROSS", "ANTI")):
            raise CqlError(f"{written} is not part of CQL; there are JOIN, CROSS JOIN and ANTI JOIN", start_of(join))
        refuse_others(join, {"this", "side", "kind", "on", "using"})
        if anti:
            alias, source = self._source(join.this)
            if isinstance(source, Stored):
                raise CqlError(f"{alias!r} is stored; ANTI JOIN wants a stream or a query", start_of(join.this))
            self.differences.append((alias, source, join))
            return
        before = self.scope
        self._add(join.this)
        for name in join.args.get("using") or ():
            self._merge(name, before)
        if join.args.get("on") is not None:
            self.conditions.append(Translator(self.scope, self.catalog.functions).condition(join.args["on"]))

    def _merge(self, name: exp.Expr, before: Scope) -> None:
        """USING: one column of those that the sources have."""
        alias, source = self.inputs[-1]
        left = lookup(before, name)
        right = lookup(Scope.single(alias, source.schema), name)
        kinds = (before.schema[left], source.schema[right])
        if kinds[0] != kinds[1]:
            raise CqlError(f"USING compares {kinds[0]} with {kinds[1]}: the same type is wanted", start_of(name))
        qualified = left if len(self.inputs) > 2 else f"{self.inputs[0][0]}.{left}"
        self.conditions.append(Call("=", (Column(qualified), Column(f"{alias}.{right}"))))
        self.merged.add(name.name)

    def _check_stored(self, select: exp.Select) -> None:
        if all(isinstance(node, Stored) for _, node in self.inputs):
            names = [alias for alias, _ in self.inputs]
            message = f"{names} are stored: a continuous query joins them with at least one stream"
            raise CqlError(message, start_of(select.args["from_"]))


def compared(left: Scope, right: Scope, join: exp.Join) -> Pairs:
    """The columns in which ANTI JOIN compares its left with its right."""
    pairs = [(lookup(left, name), lookup(right, name)) for name in join.args.get("using") or ()]
    if join.args.get("on") is not None:
        pairs += [equality(part, left, right) for part in parts_of(join.args["on"])]
    if not pairs:
        raise CqlError("ANTI JOIN wants ON or USING with the columns to compare", start_of(join))
    for mine, its in pairs:
        if left.schema[mine] != right.schema[its]:
            kinds = f"{left.schema[mine]} with {right.schema[its]}"
            raise CqlError(f"ANTI JOIN compares {kinds}: the same type is wanted", start_of(join))
    return tuple(pairs)


def equality(node: exp.Expr, left: Scope, right: Scope) -> tuple[str, str]:
    """The column of the left and that of the right in `a = b`, whichever way round it is written."""
    sides = (node.this, node.expression) if isinstance(node, exp.EQ) else ()
    if not all(isinstance(side, exp.Column) for side in sides) or not sides:
        raise CqlError("ANTI JOIN compares a column of the left with one of the right by =", start_of(node))
    mine, its = sides
    if belongs(mine, right, left) or belongs(its, left, right):
        mine, its = its, mine
    return lookup(left, mine), lookup(right, its)


def belongs(column: exp.Expr, here: Scope, there: Scope) -> bool:
    """Whether a column can only be of one scope and not of another."""
    return _holds(here, column) and not _holds(there, column)


def _holds(scope: Scope, column: exp.Expr) -> bool:
    return any(
        column.name in columns and column.args.get("table") in (None, exp.to_identifier(alias))
        for alias, columns in scope.sources
    )


def lookup(scope: Scope, node: exp.Expr) -> str:
    """The column of the batch that a name or a qualified name means."""
    try:
        return scope.column(node.name, node.text("table")).name
    except PlanError as error:
        raise CqlError(error.message, start_of(node)) from None


def parts_of(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that all have to hold."""
    if isinstance(node, exp.Paren):
        return parts_of(node.this)
    return [*parts_of(node.this), *parts_of(node.expression)] if isinstance(node, exp.And) else [node]


def joining(conditions: Iterable[Expression], scope: Scope) -> tuple[Pairs, list[Expression]]:
    """Equal columns of different inputs, which a join is made by, and the conditions left over."""
    if len(scope.sources) == 1:
        return (), list(conditions)
    order = [alias for alias, _ in scope.sources]
    on: dict[tuple[str, str], None] = {}
    rest = []
    for part in (part for condition in conditions for part in conjuncts(condition)):
        match part:
            case Call("=", (Column(one), Column(other))) if _joins(one, other, scope):
                first, second = sorted((one, other), key=lambda column: order.index(scope.owner(column)))
                on[first, second] = None
            case _:
                rest.append(part)
    return tuple(on), rest


def _joins(one: str, other: str, scope: Scope) -> bool:
    # Hashes find equal values of one type only: 1 = 1.0 stays a condition.
    return scope.owner(one) != scope.owner(other) and scope.schema[one] == scope.schema[other]


def both(one: Expression, other: Expression) -> Expression:
    """Two conditions as one."""
    return Call("and", (one, other))


def behind(node: exp.Expr, source: Node) -> Node:
    """A source with the window that the query has behind it, if any."""
    window: Window | None = node.meta.get("window")
    try:
        return source if window is None else windowed(source, window)
    except PlanError as error:
        raise CqlError(error.message, node.meta.get("window_start")) from None


def windowed(source: Node, window: Window) -> Node:
    """A window on a source."""
    if isinstance(source, Stored):
        raise PlanError(f"a window wants a stream, and {source.name!r} is stored: it has no time")
    if not source.appends:
        raise PlanError(f"a window wants a stream, and this is a relation: {taken_back(source)}; {MEND}")
    return source if window.kind == "unbounded" else Windowed(source, window)


def taken_back(node: Node) -> str:
    """Why rows of a relation do not stay."""
    match node:
        case Windowed():
            return "rows leave the window in it"
        case Aggregate():
            return "an aggregate's results change"
        case Difference():
            return "rows of a difference go when the right side gets their like"
        case Stream() | Stored():
            return "its rows stay"
        case Named(of=of):
            return taken_back(of)
        case _:
            return next(taken_back(part) for part in inputs_of(node) if not part.appends)
