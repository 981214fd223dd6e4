"""What a query can read and call: streams, stored relations, other queries, functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsms.algebra import Named, Node, Stored, Stream
from dsms.errors import PlanError, existing
from dsms.expressions.user import UserFunction
from dsms.schema import Schema


@dataclass(frozen=True)
class Catalog:
    """The names a query may use, with the columns behind them."""

    streams: Mapping[str, Schema]
    stored: Mapping[str, Schema] = field(default_factory=dict)
    queries: Mapping[str, Node] = field(default_factory=dict)
    functions: Mapping[str, UserFunction] = field(default_factory=dict)

    def source(self, name: str) -> Node:
        """What stands behind a name in FROM."""
        if name in self.streams:
            return Stream(name, self.streams[name])
        if name in self.stored:
            return Stored(name, self.stored[name])
        if name in self.queries:
            return Named(name, self.queries[name])
        known = {*self.streams, *self.stored, *self.queries}
        raise PlanError(f"no stream, stored relation or query {name!r}{existing(name, known)}")
