"""CQL: continuous queries as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from sqlglot import exp

from dsms.algebra import Node
from dsms.cql.binder import Binder
from dsms.cql.catalog import Catalog
from dsms.cql.dialect import parsed
from dsms.cql.errors import CqlError
from dsms.cql.items import named
from dsms.cql.scope import Scope
from dsms.cql.translate import Translator
from dsms.expressions.tree import Expression
from dsms.expressions.user import UserFunction
from dsms.schema import Schema

__all__ = ["Catalog", "CqlError", "condition", "expression", "mentioned", "query", "selected"]
NONE: Mapping[str, UserFunction] = MappingProxyType({})


def query(text: str, catalog: Catalog) -> Node:
    """What a CQL query means."""
    with placing(text):
        return Binder(catalog).query(parsed(text))


def mentioned(text: str) -> set[str]:
    """The names a query reads from, whatever they stand for."""
    with placing(text):
        return {table.name for table in parsed(text).find_all(exp.Table)}


def expression(text: str, schema: Schema, functions: Mapping[str, UserFunction] = NONE) -> Expression:
    """What an expression over the columns of a schema means."""
    with placing(text):
        return Translator(Scope.within(schema), functions).expression(parsed(text, exp.Condition))


def condition(text: str, schema: Schema, functions: Mapping[str, UserFunction] = NONE) -> Expression:
    """What an expression means that is true, false or unknown."""
    with placing(text):
        return Translator(Scope.within(schema), functions).condition(parsed(text, exp.Condition))


def selected(
    of: Node, catalog: Catalog, texts: Sequence[str], aliased: Mapping[str, str], keys: Sequence[str] | None = None
) -> Node:
    """What SELECT with these items makes of an input; with keys, of its groups."""
    scope = Scope.within(of.schema)
    nodes = [parsed(text, exp.Condition) for text in texts]
    nodes += [
        exp.Alias(this=parsed(text, exp.Condition), alias=exp.to_identifier(name)) for name, text in aliased.items()
    ]
    grouped = None if keys is None else [parsed(key, exp.Condition) for key in keys]
    return Binder(catalog).items(of, scope, named(nodes, scope), grouped)


@contextmanager
def placing(text: str) -> Iterator[None]:
    """Errors leave with line and column in the text."""
    try:
        yield
    except CqlError as error:
        raise error.placed(text) from None
    except RecursionError:
        raise CqlError("is nested too deeply") from None
