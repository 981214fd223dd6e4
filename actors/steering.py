"""What is set while a plan is at work: who decides, what is wanted, what counts, who rests; and how parts are asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from actors.messages import CONTROL, send
from actors.parts import Crew, Parts, settled
from dsms.errors import DsmsError, PlanError, existing

OPENING = 120.0  # seconds for stations to be brought to their hosts, or from some to others


class Steering:
    """Knows the parts of a deployment, and which query is in which domain."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._where: dict[str, str] = {}  # by query: its domain

    def swap(self, policy: str, reason: str = "asked for", domain: str | None = None) -> list[dict[str, Any]]:
        """Let another policy decide, in one domain or in all."""
        with self._steering():
            return [self._control(crew.scheduler.swap, policy, reason) for crew in self._chosen(domain)]

    def require(self, qos: str, domain: str | None = None) -> None:
        """Let this be what is wanted."""
        with self._steering():
            for crew in self._chosen(domain):
                self._control(crew.scheduler.require, qos)

    def weigh(self, query: str, weight: float) -> None:
        """Let a query count so much."""
        with self._steering():
            self._control(self._home(query).scheduler.weigh, query, weight)

    def why(self, count: int = 1, domain: str | None = None) -> list[dict[str, Any]]:
        """The last decisions of each domain."""
        return [
            {"domain": crew.name, **decision}
            for crew in self._chosen(domain)
            for decision in self._control(crew.scheduler.why, count)
        ]

    def pause(self, domain: str | None = None) -> None:
        """Give no turns; rows still come in."""
        with self._steering():
            self._each(domain, "pause")

    def resume(self, domain: str | None = None) -> None:
        """Give turns again."""
        with self._steering():
            self._each(domain, "resume")

    def readmit(self, query: str) -> list[str]:
        """Let a query out of quarantine, and all that rest for the same reason; answers which."""
        with self._steering():
            names: list[str] = self._control(self._home(query).scheduler.readmit, query)
            return names

    @contextmanager
    def _steering(self) -> Iterator[None]:
        """Somebody sets something otherwise: once this is left, it is so for good."""
        yield

    def _each(self, domain: str | None, method: str) -> None:
        """Have all domains meant do this, though some may refuse; if all do, that is an error."""
        crews, refused = self._chosen(domain), list[DsmsError]()
        for crew in crews:
            try:
                self._control(getattr(crew.scheduler, method))
            except DsmsError as error:
                refused.append(error)
        if len(refused) == len(crews):
            raise refused[0]

    def _home(self, query: str) -> Crew:
        if query not in self._where:
            raise PlanError(f"no query {query!r}{existing(query, self._where)}")
        return self._parts.crews[self._where[query]]

    def _chosen(self, domain: str | None) -> list[Crew]:
        crews = self._parts.crews
        if domain is not None and domain not in crews:
            raise DsmsError(f"no domain {domain!r}{existing(domain, crews)}")
        return list(crews.values()) if domain is None else [crews[domain]]

    def _control(self, method: Any, *arguments: Any) -> Any:
        return settled(send(method, *arguments, group=CONTROL), _called(method), OPENING)

    def _settled(self, method: Any, *arguments: Any) -> Any:
        return settled(send(method, *arguments), _called(method))

    def _or_error(self, method: Any, otherwise: dict[str, Any], group: str | None = None) -> dict[str, Any]:
        try:
            told: dict[str, Any] = settled(send(method, group=group), _called(method))
        except DsmsError as error:
            return {**otherwise, "state": "failed", "error": str(error)}
        return told


def _called(method: Any) -> str:
    """What a call is named in a message."""
    return str(getattr(method, "_method_name", getattr(method, "__name__", method)))
