"""Binds a parsed query: resolves its names and makes a tree of the algebra."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dsms.algebra import Difference, Distinct, Node, Select, ToStream, Union
from dsms.errors import PlanError
from dsms.expressions.tree import Column, Expression
from dsms.query.cql.catalog import Catalog
from dsms.query.cql.dialect import StreamClause
from dsms.query.cql.errors import CqlError, refuse_unsupported_args, start_of
from dsms.query.cql.expressions import Translator, aggregates_in, is_aggregate, unsupported_error
from dsms.query.cql.from_clause import Sources
from dsms.query.cql.grouping import Grouping, next_expression_name
from dsms.query.cql.scope import Scope
from dsms.query.cql.select_items import name_items, project_items

Items = list[tuple[str, exp.Expr]]


@dataclass(frozen=True)
class Binder:
    """Makes trees of the algebra from sqlglot's syntax trees."""

    catalog: Catalog

    def query(self, node: exp.Expr) -> Node:
        """Bind a query of any kind."""
        match node:
            case exp.Select():
                return self.select(node)
            case exp.Union() | exp.Except():
                return self.combined(node)
            case exp.Subquery():
                refuse_unsupported_args(node, {"this"})
                if node.meta.get("window") is not None:
                    raise CqlError("a window belongs in FROM, after a stream", node.meta.get("window_start"))
                return self.subquery(node)
        if isinstance(node, exp.SetOperation):
            message = f"{node.key.upper()} is not part of CQL; there are UNION, UNION ALL and EXCEPT"
            raise CqlError(message, node.meta["operator"])
        raise unsupported_error(node)

    def subquery(self, node: exp.Subquery) -> Node:
        """Bind a query in parentheses, and the ISTREAM, DSTREAM or RSTREAM before it."""
        if not isinstance(node.this, exp.Query) or isinstance(node.this, exp.Table):
            raise CqlError("expected a query in the parentheses", start_of(node))
        inner = self.query(node.this)
        return ToStream(inner, node.meta["changes"]) if "changes" in node.meta else inner

    def combined(self, node: exp.Union | exp.Except) -> Node:
        """Bind UNION, UNION ALL or EXCEPT."""
        refuse_unsupported_args(node, {"this", "expression", "distinct"})
        left, right = self.query(node.this), self.query(node.expression)
        distinct = bool(node.args.get("distinct"))
        try:
            check_same_types(left, right)
        except PlanError as error:
            raise CqlError(error.message, node.meta["operator"]) from None
        if isinstance(node, exp.Except):
            if not distinct:
                raise CqlError("EXCEPT ALL is not part of CQL; there are EXCEPT and ANTI JOIN", node.meta["operator"])
            return make_except(left, right)
        # A UNION ALL B UNION ALL C is one union of three, unless A UNION ALL B is in parentheses.
        if isinstance(left, Union) and isinstance(node.this, exp.Union):
            both = Union((*left.inputs, right))
        else:
            both = Union((left, right))
        return Distinct(both) if distinct else both

    def select(self, node: exp.Select) -> Node:
        """Bind SELECT ... FROM ... WHERE ... GROUP BY ... HAVING."""
        refuse_unsupported_args(node, {"expressions", "from_", "joins", "where", "group", "having", "distinct"})
        input_, scope = Sources(self.catalog, self.subquery).gather(node)
        changes = node.expressions[0] if node.expressions and isinstance(node.expressions[0], StreamClause) else None
        items = name_items((changes or node).expressions, scope)
        if not items:
            raise CqlError("expected columns after SELECT", start_of(node))
        group, having = node.args.get("group"), node.args.get("having")
        keys = None
        if group is not None:
            refuse_unsupported_args(group, {"expressions"})
            keys = group.expressions
        result = self.items(input_, scope, items, keys, having.this if having is not None else None)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise CqlError("DISTINCT ON is not part of CQL", start_of(distinct))
        if distinct is not None or (changes is not None and changes.args.get("distinct")):
            result = Distinct(result)
        return ToStream(result, changes.this) if changes is not None else result

    def items(
        self, of: Node, scope: Scope, items: Items, keys: list[exp.Expr] | None = None, having: exp.Expr | None = None
    ) -> Node:
        """Apply SELECT, GROUP BY and HAVING to an input; without aggregates, this is a projection."""
        if keys is None and having is None and not any(aggregates_in(item) for _, item in items):
            return project_items(of, items, Translator(scope, self.catalog.functions))
        grouping = Grouping(scope, self.catalog.functions, self._keys(keys or [], scope, items))
        for name, item in items:
            if is_aggregate(item):
                grouping.aggregate(item, name)
        made = {name: grouping.expression(item) for name, item in items}
        condition = None
        if having is not None:
            # A column has precedence over an item of the same name, as in WHERE.
            grouping.aliases = {name: item for name, item in made.items() if not has_column(scope, name)}
            condition = grouping.condition(having)
            grouping.aliases = {}
        result = grouping.over(of)
        return project_items(result if condition is None else Select(result, condition), items, grouping)

    def _keys(self, group: list[exp.Expr], scope: Scope, items: Items) -> dict[str, Expression]:
        """The columns and expressions of GROUP BY by name; an expression has the name of the item that shows it."""
        below = Translator(scope, self.catalog.functions)
        plain = {name: item for name, item in items if not aggregates_in(item)}
        keys: dict[str, Expression] = {}
        for node in group:
            by_alias = isinstance(node, exp.Column) and not node.table and not has_column(scope, node.name)
            key = below.expression(plain.get(node.name, node) if by_alias else node)
            kind = below.type_of(key, node)
            if kind == "null" or isinstance(node, exp.Literal):
                raise CqlError("GROUP BY needs columns or expressions over them", start_of(node))
            taken = {*keys, *scope.schema}
            shown = [name for name, item in plain.items() if name not in taken and below.expression(item) == key]
            if key not in keys.values():
                keys[key.name if isinstance(key, Column) else (shown or [next_expression_name(taken)])[0]] = key
        return keys


def has_column(scope: Scope, name: str) -> bool:
    """Whether a source in scope has a column of that name."""
    return any(name in columns for _, columns in scope.sources)


def make_except(left: Node, right: Node) -> Node:
    """EXCEPT: each row of the left that is not in the right, once."""
    return Difference(Distinct(left), right, tuple(zip(left.schema, right.schema, strict=True)), nulls_equal=True)


def check_same_types(left: Node, right: Node) -> None:
    """Refuse a union or difference of columns of different types."""
    kinds = [[kind for _, kind in side.schema.fields] for side in (left, right)]
    if kinds[0] != kinds[1]:
        raise PlanError(f"both sides need columns of the same types, not {kinds[0]} and {kinds[1]}")
