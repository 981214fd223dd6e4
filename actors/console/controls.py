"""What a viewer of the console may see and change: control verbs, allowed by the role of the viewer's token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from actors.console.guard import Guard
from actors.scheduler.verbs import VERBS
from dsms.config.qos import STATISTIC_ALIASES, Qos
from dsms.errors import DsmsError
from dsms.net.tokens import CONTROL, READ
from dsms.policies.registry import parameters, policies, policy_named

REASON = "asked for in the console"
WEIGHTED_METRICS = tuple(STATISTIC_ALIASES)
Ask = Callable[..., Any]


class Controls:
    """The controls of one page, locked until its viewer enters a token for control."""

    def __init__(self, ask: Ask, guard: Guard) -> None:
        self._ask, self._guard = ask, guard
        self.open = False
        self.visible = not guard.is_login_required

    @property
    def is_read_only(self) -> bool:
        """Whether no token unlocks the controls."""
        return self._guard.is_read_only

    async def unlock(self, token: str) -> bool:
        """Check a token; answers whether it allows more than before."""
        before, permission = self.visible, await self._guard.authenticate(token)
        self.open = permission is not None and permission.has_role(CONTROL)
        self.visible = not self._guard.is_login_required or (permission is not None and permission.has_role(READ))
        return self.open or (self.visible and not before)

    def swap(self, name: str, given: str, reason: str, domain: str | None) -> str:
        """Put a policy in charge; answers the outcome."""
        swaps = self._do("swap", lambda: (policy_text(name, given), reason.strip() or REASON, domain))
        return "; ".join(f"{one['before']} → {one['after']} in {one['seconds'] * 1000:.3g} ms" for one in swaps)

    def require(self, weights: Mapping[str, float | None], domain: str | None) -> str:
        """Set the quality-of-service goal."""
        self._do("require", lambda: (qos_text(weights), domain))
        return f"QoS: {Qos.parse(qos_text(weights))}"

    def weigh(self, query: str | None, weight: float | None) -> str:
        """Set a query's weight."""
        self._do("weigh", lambda: check_weight(query, weight))
        return f"weight of {query}: {weight:g}"

    def pause(self, domain: str | None) -> str:
        """Stop giving turns; rows are still admitted."""
        self._do("pause", lambda: (domain,))
        return "paused: rows are admitted and wait"

    def resume(self, domain: str | None) -> str:
        """Continue giving turns."""
        self._do("resume", lambda: (domain,))
        return "running again"

    def _do(self, verb: str, arguments: Callable[[], tuple[Any, ...]]) -> Any:
        """Call a verb if the viewer has its role; the arguments are checked after that."""
        if VERBS[verb].role == CONTROL and not self.open:
            raise DsmsError("read-only: enter a token for control first")
        return self._ask(verb, **VERBS[verb].bind(*arguments()))


def check_weight(query: str | None, weight: float | None) -> tuple[str, float]:
    """A query and its new weight, or an error."""
    if query is None or weight is None or not weight > 0:
        raise DsmsError(f"query {query!r}, weight {weight!r}: expected a query and a positive number")
    return query, float(weight)


def policy_text(name: str, given: str) -> str:
    """A policy with its parameters as typed in a command; an error if there is none such."""
    given = given.strip().removeprefix(":")
    text = f"{name}:{given}" if given else name
    policy_named(text)
    return text


def parameter_names(name: str) -> list[str]:
    """The parameters of a policy."""
    return list(parameters(policies()[name]))


def list_policies() -> list[str]:
    """The policies that a deployment can run: all but the clairvoyant ones."""
    return [name for name, policy in policies().items() if not policy.traits.clairvoyant]


def qos_text(weights: Mapping[str, float | None]) -> str:
    """Weights scaled to add up to 1, as text."""
    given = {name: float(weight) for name, weight in weights.items() if weight}
    if any(weight < 0 for weight in given.values()) or not given:
        raise DsmsError(f"weights are {given}: expected numbers from 0, at least one above 0")
    total = sum(given.values())
    text = ",".join(
        f"{name}={weight / total!r}" for name, weight in given.items()
    )  # with all digits, so that they add up to 1
    Qos.parse(text)
    return text


def qos_weights(text: str | None) -> dict[str, float]:
    """The weights of a status by their short names."""
    goal = Qos.parse(text) if text else None
    return {name: 0.0 if goal is None else goal.weight_of(name) for name in WEIGHTED_METRICS}
