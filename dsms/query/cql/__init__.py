"""Compiles CQL, the language of continuous queries, to trees of the algebra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from sqlglot import exp

from dsms.algebra import Node
from dsms.data.schema import Schema
from dsms.expressions.scalar_functions import UserFunction
from dsms.expressions.tree import Expression
from dsms.query.cql.binder import Binder
from dsms.query.cql.catalog import Catalog
from dsms.query.cql.dialect import parse_text
from dsms.query.cql.errors import CqlError
from dsms.query.cql.expressions import Translator
from dsms.query.cql.scope import Scope
from dsms.query.cql.select_items import name_items

__all__ = [
    "Catalog",
    "CqlError",
    "compile_condition",
    "compile_expression",
    "compile_query",
    "compile_select",
    "referenced_names",
]
NO_FUNCTIONS: Mapping[str, UserFunction] = MappingProxyType({})


def compile_query(text: str, catalog: Catalog) -> Node:
    """Compile a CQL query."""
    with locate_errors(text):
        return Binder(catalog).query(parse_text(text))


def referenced_names(text: str) -> set[str]:
    """The names of the streams, relations and queries that a query reads."""
    with locate_errors(text):
        return {table.name for table in parse_text(text).find_all(exp.Table)}


def compile_expression(text: str, schema: Schema, functions: Mapping[str, UserFunction] = NO_FUNCTIONS) -> Expression:
    """Compile an expression over the columns of a schema."""
    with locate_errors(text):
        return Translator(Scope.within(schema), functions).expression(parse_text(text, exp.Condition))


def compile_condition(text: str, schema: Schema, functions: Mapping[str, UserFunction] = NO_FUNCTIONS) -> Expression:
    """Compile a condition: an expression that is true, false or unknown."""
    with locate_errors(text):
        return Translator(Scope.within(schema), functions).condition(parse_text(text, exp.Condition))


def compile_select(
    of: Node, catalog: Catalog, texts: Sequence[str], aliased: Mapping[str, str], keys: Sequence[str] | None = None
) -> Node:
    """Compile the items of a SELECT over an input; with keys, over its groups."""
    scope = Scope.within(of.schema)
    nodes = [parse_text(text, exp.Condition) for text in texts]
    nodes += [
        exp.Alias(this=parse_text(text, exp.Condition), alias=exp.to_identifier(name)) for name, text in aliased.items()
    ]
    grouped = None if keys is None else [parse_text(key, exp.Condition) for key in keys]
    return Binder(catalog).items(of, scope, name_items(nodes, scope), grouped)


@contextmanager
def locate_errors(text: str) -> Iterator[None]:
    """Add line and column of the text to errors."""
    try:
        yield
    except CqlError as error:
        raise error.placed(text) from None
    except RecursionError:
        raise CqlError("the query is nested too deeply") from None
