"""Resolves the columns that an expression may name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dsms.data.schema import Schema
from dsms.errors import PlanError, existing
from dsms.expressions.tree import Column


@dataclass(frozen=True)
class Scope:
    """The sources of a SELECT: their aliases, and their columns by the names in the query and in the batch."""

    schema: Schema
    sources: tuple[tuple[str, Mapping[str, str]], ...]
    merged: frozenset[str] = frozenset()  # columns that USING merged

    @classmethod
    def single(cls, alias: str, schema: Schema) -> Scope:
        """One source, whose columns keep their names."""
        return cls(schema, ((alias, {name: name for name in schema}),))

    @classmethod
    def joined(cls, inputs: tuple[tuple[str, Schema], ...], merged: frozenset[str] = frozenset()) -> Scope:
        """Several sources, whose columns are qualified."""
        sources = tuple((alias, {name: f"{alias}.{name}" for name in schema}) for alias, schema in inputs)
        fields = tuple((f"{alias}.{name}", kind) for alias, schema in inputs for name, kind in schema.fields)
        return cls(Schema(fields), sources, merged)

    @classmethod
    def within(cls, schema: Schema) -> Scope:
        """The scope of a schema alone; the part before a dot in its columns is an alias."""
        sources: dict[str, dict[str, str]] = {}
        for full in schema:
            alias, _, name = full.rpartition(".")
            sources.setdefault(alias, {})[name] = full
        return cls(schema, tuple(sources.items()))

    def column(self, name: str, alias: str = "") -> Column:
        """The column of that name."""
        if alias:
            return Column(self._of_source(name, alias))
        holders = [(source, columns[name]) for source, columns in self.sources if name in columns]
        if len(holders) > 1 and name not in self.merged:
            candidates = [f"{source}.{name}" if source else name for source, _ in holders]
            raise PlanError(f"column {name!r} is ambiguous; there are {candidates}")
        if not holders:
            raise PlanError(self._missing(name))
        return Column(holders[0][1])

    def owner(self, full: str) -> str:
        """The alias of the source that has a column of the batch."""
        return next(alias for alias, columns in self.sources if full in columns.values())

    def starred(self, only: str = "") -> list[tuple[str, str, str]]:
        """Expand *: output name, alias, column; a column that several sources have keeps its qualified name."""
        if only:
            return [(name, only, name) for name in self.source(only)]
        holders = Counter(name for _, columns in self.sources for name in columns)
        found: dict[str, tuple[str, str, str]] = {}
        for alias, columns in self.sources:
            for name, full in columns.items():
                shared = holders[name] > 1 and name not in self.merged
                output = full if shared else name
                found.setdefault(output, (output, alias, name))
        return list(found.values())

    def source(self, alias: str) -> Mapping[str, str]:
        """The columns of a source."""
        columns = dict(self.sources).get(alias)
        if columns is None:
            raise PlanError(f"no source {alias!r} in FROM{existing(alias, [name for name, _ in self.sources if name])}")
        return columns

    def _of_source(self, name: str, alias: str) -> str:
        columns = self.source(alias)
        if name not in columns:
            raise PlanError(f"no column {name!r} in {alias!r}{existing(name, columns)}")
        return columns[name]

    def _missing(self, name: str) -> str:
        aliases = [alias for alias, _ in self.sources if alias]
        where = f" in {aliases[0]!r}" if len(aliases) == 1 else f" in any of {aliases}" if aliases else ""
        return f"no column {name!r}{where}{existing(name, {known for _, columns in self.sources for known in columns})}"
