"""Queries written as text (CQL) or in Python, and the stored relations and functions that they refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dsms.algebra import Node
from dsms.batch import Batch
from dsms.cql import Catalog, mentioned, query
from dsms.errors import PlanError, existing
from dsms.expressions.user import UserFunction
from dsms.fluent import Query as Fluent
from dsms.operators.function import function_named
from dsms.plan import Query, Stream
from dsms.planner import Builder, Standing
from dsms.reading import placed
from dsms.schema import DTYPES, Schema
from dsms.settings import Settings


@dataclass(frozen=True)
class Surroundings:
    """What queries may refer to."""

    streams: Mapping[str, Stream]
    relations: Mapping[str, tuple[Schema, Batch]]
    functions: Mapping[str, UserFunction]
    folder: Path
    standing: Standing = field(default_factory=Standing)  # the queries that are there already


def built(queries: Mapping[str, tuple[Query, str | Fluent]], around: Surroundings, settings: Settings) -> Builder:
    """The stations of all queries, with whoever built them."""
    _check_names({**around.standing.nodes, **queries}, around)
    nodes: dict[str, Node] = dict(around.standing.nodes)
    for name in _in_order({name: text for name, (_, text) in queries.items()}):
        queries[name][0].node = nodes[name] = _node(queries[name][1], name, around, nodes)
    builder = Builder(
        around.streams,
        {name: rows for name, (_, rows) in around.relations.items()},
        around.functions,
        partial(function_named, folder=around.folder),
        settings.on_error,
        settings.ahead,
        settings.mode,
        around.standing,
    )
    builder.build({name: (queries[name][0], node) for name, node in nodes.items() if name in queries})
    return builder


def _check_names(queries: Mapping[str, object], around: Surroundings) -> None:
    """In FROM a name stands for one thing."""
    for kind, names in (("relations", around.relations), ("queries", queries)):
        for name in names:
            others = {"stream": around.streams, "relation": around.relations if kind == "queries" else {}}
            for other in (what for what, known in others.items() if name in known):
                raise PlanError(f"there is a {other} {name!r} too: FROM could mean either", f"{kind}.{name}")


def _node(text: str | Fluent, name: str, around: Surroundings, nodes: Mapping[str, Node]) -> Node:
    schemas = {s.name: s.schema for s in around.streams.values() if s.schema is not None}
    if not isinstance(text, str | Fluent):
        raise PlanError(
            f"{text!r} given; a query as text, or made with dsms.stream(…), is wanted", f"queries.{name}.cql"
        )
    catalog = Catalog(schemas, {n: schema for n, (schema, _) in around.relations.items()}, nodes, around.functions)
    try:
        return query(text, catalog) if isinstance(text, str) else text.node(catalog)
    except PlanError as error:
        raise error.within(f"queries.{name}.cql") from None


def _in_order(texts: Mapping[str, str | Fluent]) -> list[str]:
    """The queries so that each comes after those it reads; a circle is refused."""
    done: list[str] = []
    under_way: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        if name in under_way:
            circle = [*under_way[under_way.index(name) :], name]
            raise PlanError(f"queries read each other in a circle: {' <- '.join(circle)}", f"queries.{name}.cql")
        under_way.append(name)
        text = texts[name]
        try:
            read = mentioned(text) if isinstance(text, str) else set()  # in Python, they come in their order
        except PlanError as error:
            raise error.within(f"queries.{name}.cql") from None
        for other in sorted(read & texts.keys()):
            visit(other)
        under_way.pop()
        done.append(name)

    for name in texts:
        visit(name)
    return done


def functions_from(table: Mapping[str, Any], folder: Path) -> dict[str, UserFunction]:
    """The functions of a plan file: `[functions]` has `name = { function = "module:name", returns = "int64" }`."""
    return {name: placed(name, partial(_function, folder=folder), given) for name, given in table.items()}


def _function(given: Any, folder: Path) -> UserFunction:
    known = ("function", "returns", "per_row")
    if not isinstance(given, Mapping) or "function" not in given or "returns" not in given:
        raise PlanError(f'{given!r} given; {{ function = "module:name", returns = "int64" }} is wanted')
    for key in given:
        if key not in known:
            raise PlanError(f"no key {key!r} here{existing(key, known)}")
    if given["returns"] not in DTYPES:
        raise PlanError(f"{given['returns']!r} is no type{existing(str(given['returns']), DTYPES)}", "returns")
    function = given["function"]
    loaded = function if callable(function) else function_named(str(function), folder)
    return UserFunction(loaded, given["returns"], bool(given.get("per_row", False)))
