"""What a page may show and change of a running system: nothing is changed until its viewer has shown a token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from actors.console.guard import Guard
from dsms.errors import DsmsError
from dsms.policies.registry import parameters, policies, policy_named
from dsms.qos import SHORT, Qos
from dsms.tokens import CONTROL, READ

REASON = "asked for in the console"
WANTED = tuple(SHORT)  # what weights can be given to
Ask = Callable[..., Any]


class Controls:
    """One page's: it is opened by a token for control, and closed again with the page."""

    def __init__(self, ask: Ask, guard: Guard) -> None:
        self._ask, self._guard = ask, guard
        self.open = False
        self.visible = not guard.veiled

    @property
    def strict(self) -> bool:
        """Whether no token opens it."""
        return self._guard.strict

    async def unlock(self, token: str) -> bool:
        """Whether the token lets one do more: look, or also have changes carried out."""
        before, granted = self.visible, await self._guard.admits(token)
        self.open = granted is not None and granted.may(CONTROL)
        self.visible = not self._guard.veiled or (granted is not None and granted.may(READ))
        return self.open or (self.visible and not before)

    def swap(self, name: str, given: str, reason: str, domain: str | None) -> str:
        """Put a policy in charge; answers what has come of it."""
        self._permitted()
        done = self._ask("swap", policy_text(name, given), reason=reason.strip() or REASON, domain=domain)
        return "; ".join(f"{one['before']} → {one['after']} in {one['seconds'] * 1000:.3g} ms" for one in done)

    def require(self, weights: Mapping[str, float | None], domain: str | None) -> str:
        """Set what is wanted of the results."""
        self._permitted()
        wanted = qos_text(weights)
        self._ask("require", wanted, domain=domain)
        return f"wanted: {Qos.parse(wanted)}"

    def weigh(self, query: str | None, weight: float | None) -> str:
        """Let a query count so much."""
        self._permitted()
        if query is None or weight is None or not weight > 0:
            raise DsmsError(f"query {query!r} is to weigh {weight!r}: a query and a positive number are wanted")
        self._ask("weigh", query, float(weight))
        return f"{query} weighs {weight:g}"

    def pause(self, domain: str | None) -> str:
        """Give no turns; rows still come in."""
        self._permitted()
        self._ask("pause", domain=domain)
        return "paused: rows are taken in, and wait"

    def resume(self, domain: str | None) -> str:
        """Give turns again."""
        self._permitted()
        self._ask("resume", domain=domain)
        return "running again"

    def _permitted(self) -> None:
        if not self.open:
            raise DsmsError("read-only: show the token first")


def policy_text(name: str, given: str) -> str:
    """A policy as people type it, found to be one."""
    given = given.strip().removeprefix(":")
    text = f"{name}:{given}" if given else name
    policy_named(text)
    return text


def parameter_names(name: str) -> list[str]:
    """What can be given to a policy."""
    return list(parameters(policies()[name]))


def usable() -> list[str]:
    """The policies that a running system can be given: those that know the future it cannot."""
    return [name for name, policy in policies().items() if not policy.clairvoyant]


def qos_text(weights: Mapping[str, float | None]) -> str:
    """Weights in proportion to these, adding up to 1."""
    given = {name: float(weight) for name, weight in weights.items() if weight}
    if any(weight < 0 for weight in given.values()) or not given:
        raise DsmsError(f"weights are {given}: numbers from 0 are wanted, and at least one above")
    total = sum(given.values())
    text = ",".join(f"{name}={weight / total!r}" for name, weight in given.items())  # all digits: they add up to 1
    Qos.parse(text)
    return text


def qos_weights(text: str | None) -> dict[str, float]:
    """The weights by their short names, as a status says them."""
    wanted = Qos.parse(text) if text else None
    return {name: 0.0 if wanted is None else wanted.weight_of(name) for name in WANTED}
