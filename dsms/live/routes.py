"""Which domains read which stream: the table by which gateways route rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsms.data.schema import Schema


@dataclass(frozen=True)
class DomainRoute:
    """A domain that reads a stream: rows go to these hosts first, then its scheduler is notified."""

    scheduler: Any
    hosts: tuple[Any, ...]


@dataclass(frozen=True)
class StreamRoute:
    """A stream's schema, its timestamp column (None: time of arrival) and the domains that read it."""

    schema: Schema
    timestamp: str | None = None
    targets: tuple[DomainRoute, ...] = ()


@dataclass(frozen=True)
class Routes:
    """All streams, and the schemas of the queries whose schema is known."""

    streams: Mapping[str, StreamRoute] = field(default_factory=dict)
    queries: Mapping[str, Schema] = field(default_factory=dict)
    epoch: float = 0.0  # the wall-clock time at which the deployment's clock was 0
    schedulers: tuple[Any, ...] = ()  # of all domains, also of domains without streams

    def streams_read_by(self, scheduler: Any) -> frozenset[str]:
        """The streams that a domain reads."""
        return frozenset(
            name
            for name, route in self.streams.items()
            if any(target.scheduler == scheduler for target in route.targets)
        )
