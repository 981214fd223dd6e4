"""Compiles queries, given as CQL text or built in Python, into stations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dsms.algebra import Node
from dsms.config.fields import AnyField, ChoiceField, Field, read_at, read_fields
from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.data.schema import DTYPES, Schema
from dsms.errors import PlanError
from dsms.expressions.scalar_functions import UserFunction
from dsms.operators.batch_function import load_function
from dsms.plan.graph import Query, Stream
from dsms.query.cql import Catalog, compile_query, referenced_names
from dsms.query.fluent import QueryBuilder
from dsms.query.planner import ExistingQueries, PlanBuilder

FUNCTION_FIELDS: dict[str, Field[Any]] = {
    "function": AnyField(),  # "module:name", or the function itself
    "returns": ChoiceField(tuple(DTYPES)),
    "per_row": AnyField(),
}


@dataclass(frozen=True)
class CompileContext:
    """The streams, relations, functions and existing queries that a query may refer to."""

    streams: Mapping[str, Stream]
    relations: Mapping[str, tuple[Schema, Batch]]
    functions: Mapping[str, UserFunction]
    folder: Path
    existing_queries: ExistingQueries = field(default_factory=ExistingQueries)


def compile_queries(
    queries: Mapping[str, tuple[Query, str | QueryBuilder]], context: CompileContext, settings: Settings
) -> PlanBuilder:
    """Compile queries in the order of their dependencies; the builder returned has their stations."""
    _check_names({**context.existing_queries.nodes, **queries}, context)
    nodes: dict[str, Node] = dict(context.existing_queries.nodes)
    for name in _sort_by_dependency({name: text for name, (_, text) in queries.items()}):
        queries[name][0].node = nodes[name] = _compile_query(queries[name][1], name, context, nodes)
    builder = PlanBuilder(
        context.streams,
        {name: rows for name, (_, rows) in context.relations.items()},
        context.functions,
        partial(load_function, folder=context.folder),
        settings.on_error,
        settings.eager_rows,
        settings.mode,
        context.existing_queries,
    )
    builder.build({name: (queries[name][0], node) for name, node in nodes.items() if name in queries})
    return builder


def _check_names(queries: Mapping[str, object], context: CompileContext) -> None:
    """Refuse a name that FROM could read in two ways."""
    for kind, names in (("relations", context.relations), ("queries", queries)):
        for name in names:
            others = {"stream": context.streams, "relation": context.relations if kind == "queries" else {}}
            for other in (what for what, known in others.items() if name in known):
                raise PlanError(f"{name!r} is also the name of a {other}: FROM could mean either", f"{kind}.{name}")


def _compile_query(text: str | QueryBuilder, name: str, context: CompileContext, nodes: Mapping[str, Node]) -> Node:
    schemas = {s.name: s.schema for s in context.streams.values() if s.schema is not None}
    if not isinstance(text, str | QueryBuilder):
        raise PlanError(f"{text!r} is neither CQL text nor a query built with dsms.stream(…)", f"queries.{name}.cql")
    catalog = Catalog(schemas, {n: schema for n, (schema, _) in context.relations.items()}, nodes, context.functions)
    try:
        return compile_query(text, catalog) if isinstance(text, str) else text.node(catalog)
    except PlanError as error:
        raise error.within(f"queries.{name}.cql") from None


def _sort_by_dependency(texts: Mapping[str, str | QueryBuilder]) -> list[str]:
    """Sort queries so that each follows the queries it reads; refuse a cycle."""
    done: list[str] = []
    under_way: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        if name in under_way:
            cycle = [*under_way[under_way.index(name) :], name]
            raise PlanError(f"queries read from each other in a cycle: {' <- '.join(cycle)}", f"queries.{name}.cql")
        under_way.append(name)
        text = texts[name]
        try:
            read = (
                referenced_names(text) if isinstance(text, str) else set()
            )  # queries built in Python are in their order already
        except PlanError as error:
            raise error.within(f"queries.{name}.cql") from None
        for other in sorted(read & texts.keys()):
            visit(other)
        under_way.pop()
        done.append(name)

    for name in texts:
        visit(name)
    return done


def load_functions(table: Mapping[str, Any], folder: Path) -> dict[str, UserFunction]:
    """Load the functions of a `[functions]` table: `name = { function = "module:name", returns = "int64" }`."""
    return {name: read_at(name, partial(_load_function, folder=folder), given) for name, given in table.items()}


def _load_function(table: Any, folder: Path) -> UserFunction:
    given = read_fields(table, FUNCTION_FIELDS)
    for key in ("function", "returns"):
        if key not in given:
            raise PlanError('missing; expected { function = "module:name", returns = "int64" }', key)
    function = given["function"]
    loaded = function if callable(function) else load_function(str(function), folder)
    return UserFunction(loaded, given["returns"], bool(given.get("per_row", False)))
