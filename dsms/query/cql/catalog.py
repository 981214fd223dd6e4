"""The streams, stored relations, queries and functions that a query may refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsms.algebra import AliasedNode, Node, StoredRelation, StreamScan
from dsms.data.schema import Schema
from dsms.errors import PlanError, existing
from dsms.expressions.scalar_functions import UserFunction


@dataclass(frozen=True)
class Catalog:
    """Maps names to schemas, queries and functions."""

    streams: Mapping[str, Schema]
    stored: Mapping[str, Schema] = field(default_factory=dict)
    queries: Mapping[str, Node] = field(default_factory=dict)
    functions: Mapping[str, UserFunction] = field(default_factory=dict)

    def source(self, name: str) -> Node:
        """The stream, relation or query that a name in FROM refers to."""
        if name in self.streams:
            return StreamScan(name, self.streams[name])
        if name in self.stored:
            return StoredRelation(name, self.stored[name])
        if name in self.queries:
            return AliasedNode(name, self.queries[name])
        known = {*self.streams, *self.stored, *self.queries}
        raise PlanError(f"no stream, stored relation or query {name!r}{existing(name, known)}")
