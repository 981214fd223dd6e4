"""Translates GROUP BY, aggregates, and expressions over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf

from sqlglot import exp

from dsms.algebra import Aggregate, Aggregation, Node, Project
from dsms.data.schema import Schema
from dsms.expressions.tree import Column, Expression
from dsms.expressions.types import type_of
from dsms.query.cql.errors import CqlError, start_of
from dsms.query.cql.expressions import Translator, aggregates_in, is_aggregate
from dsms.query.cql.scope import Scope
from dsms.query.cql.select_items import aggregate_name, make_unique_name

Function = OneOf["count", "sum", "avg", "min", "max", "count distinct"]
FUNCTIONS: dict[str, Function] = {"count": "count", "sum": "sum", "avg": "avg", "min": "min", "max": "max"}
NUMBER_TYPES = ("int64", "float64")


@dataclass
class Grouping(Translator):
    """Translates expressions over the keys and aggregates of a grouping; expressions add the aggregates they use."""

    keys: Mapping[str, Expression] = field(default_factory=dict)  # by name
    aliases: Mapping[str, Expression] = field(default_factory=dict)  # of finished items, for HAVING
    arguments: dict[Expression, str] = field(default_factory=dict)
    aggregations: list[Aggregation] = field(default_factory=list)

    @property
    def below(self) -> Translator:
        """Translates expressions over the grouping's input."""
        return Translator(self.scope, self.functions)

    @property
    def schema(self) -> Schema:
        """The output columns so far: the keys, then the aggregations."""
        keys = [(name, self._kind(made)) for name, made in self.keys.items()]
        made = {name: argument for argument, name in self.arguments.items()}
        aggregations = [
            (part.name, aggregate_type(part.function, self._kind(made[part.column]) if part.column else "int64"))
            for part in self.aggregations
        ]
        return Schema((*keys, *aggregations))

    def expression(self, node: exp.Expr) -> Expression:
        """Translate an expression over the output columns of the grouping."""
        if is_aggregate(node):
            return self.aggregate(node)
        if self._is_alias(node):
            return self.aliases[node.name]
        if not aggregates_in(node) and not any(map(self._is_alias, node.walk())):
            made = self.below.expression(node)
            for name, key in self.keys.items():
                if made == key:
                    return Column(name)
        return super().expression(node)

    def column(self, node: exp.Column) -> Expression:
        """Resolve a column that is a key; any other column has many values in a group and is an error."""
        found = self.below.column(node)
        for name, key in self.keys.items():
            if found == key:
                return Column(name)
        message = f"column {node.name!r} is neither in GROUP BY nor inside an aggregate; keys are {list(self.keys)}"
        raise CqlError(message, start_of(node))

    def type_of(self, made: Expression, node: exp.Expr) -> str:
        """The type of an expression over the grouping's output."""
        return Translator(Scope.within(self.schema), self.functions).type_of(made, node)

    def aggregate(self, node: exp.Expr, name: str = "") -> Column:
        """The output column of an aggregate; a new one is called `name` if that is given."""
        function, argument = self._parts(node)
        column = None if argument is None else self._argument(argument)
        for known in self.aggregations:
            if (known.function, known.column) == (function, column):
                return Column(known.name)
        name = make_unique_name(name or aggregate_name(node), self.schema)
        self.aggregations.append(Aggregation(name, function, column))
        return Column(name)

    def over(self, of: Node) -> Node:
        """Group an input; a projection below computes the expressions among keys and arguments."""
        columns = {**self.keys, **{name: made for made, name in self.arguments.items()}}
        if any(made != Column(name) for name, made in columns.items()):
            schema = Schema(tuple((name, self._kind(made)) for name, made in columns.items()))
            of = Project(of, tuple(columns.items()), schema)
        return Aggregate(of, tuple(self.keys), tuple(self.aggregations), self.schema)

    def _is_alias(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and not node.table and node.name in self.aliases

    def _kind(self, made: Expression) -> str:
        return type_of(made, self.scope.schema, self.functions)

    def _parts(self, node: exp.Expr) -> tuple[Function, Expression | None]:
        """The aggregate function and the expression that is its argument."""
        function: Function = FUNCTIONS[node.name.lower()]
        if len(node.expressions) != 1:
            raise CqlError(f"{function} takes one argument, not {len(node.expressions)}", start_of(node))
        argument = node.expressions[0]
        if isinstance(argument, exp.Star) and function == "count":
            return function, None
        if isinstance(argument, exp.Distinct):
            if function != "count" or len(argument.expressions) != 1:
                raise CqlError("DISTINCT belongs after SELECT or before the one argument of count", start_of(node))
            function, argument = "count distinct", argument.expressions[0]
        made = self.below.expression(argument)
        kind = self.below.type_of(made, argument)
        if kind == "null" or (function in ("sum", "avg") and kind not in NUMBER_TYPES):
            expected = " or ".join(NUMBER_TYPES) if function in ("sum", "avg") else "a value with a type"
            raise CqlError(f"{function} of {kind}: expected {expected}", start_of(argument))
        return function, made

    def _argument(self, made: Expression) -> str:
        """The input column of the grouping that holds an argument."""
        for name, key in self.keys.items():
            if made == key:
                self.arguments.setdefault(made, name)
        if made not in self.arguments:
            taken = {*self.keys, *self.arguments.values(), *self.scope.schema}
            self.arguments[made] = made.name if isinstance(made, Column) else next_expression_name(taken)
        return self.arguments[made]


def next_expression_name(taken: set[str]) -> str:
    """The first of expr1, expr2, ... that is free."""
    number = 1
    while f"expr{number}" in taken:
        number += 1
    return f"expr{number}"


def aggregate_type(function: Function, argument: str) -> str:
    """The type of an aggregate of a column."""
    if function in ("count", "count distinct"):
        return "int64"
    return "float64" if function == "avg" else argument
