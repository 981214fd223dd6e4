"""Where rows go that come by the wire: the streams there are, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsms.schema import Schema


@dataclass(frozen=True)
class Target:
    """A domain that reads a stream: its scheduler is told of rows, which are put into these hosts before."""

    scheduler: Any
    hosts: tuple[Any, ...]


@dataclass(frozen=True)
class Way:
    """A stream: its columns, the one that holds its timestamps if they are not those of arrival, and its readers."""

    schema: Schema
    timestamp: str | None = None
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True)
class Routes:
    """All streams, and the columns of those queries whose columns are known."""

    streams: Mapping[str, Way] = field(default_factory=dict)
    queries: Mapping[str, Schema] = field(default_factory=dict)
    epoch: float = 0.0  # what instants in this deployment are counted from
    schedulers: tuple[Any, ...] = ()  # of all domains, also of those that read nothing

    def read_by(self, scheduler: Any) -> frozenset[str]:
        """The streams that a domain reads."""
        return frozenset(
            name for name, way in self.streams.items() if any(target.scheduler == scheduler for target in way.targets)
        )
