"""Carries out control verbs on the domains of a deployment, and collects the status of its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from actors.deployment.actor_handles import DeploymentActors, DomainActors
from actors.rpc.answers import ANSWER_TIMEOUT_S, await_answer
from actors.rpc.messages import CONTROL, Arguments, JsonObject, R, send
from actors.scheduler.verbs import VERBS, Verb, VerbScope
from dsms.errors import DsmsError, PlanError, existing
from dsms.live.monitor.status import DomainStatus, GatewayStatus, ResultHubStatus
from dsms.net.tokens import READ

MIGRATION_TIMEOUT_S = 120.0  # for moving stations to their hosts


def _make_method(name: str) -> Callable[..., Any]:
    """The method that carries out this verb; its arguments are the verb's."""
    verb = VERBS[name]

    def carry_out(self: DeploymentControl, *arguments: object, **named: object) -> object:
        return self._carry_out(verb, *arguments, **named)

    carry_out.__name__, carry_out.__doc__ = verb.name, verb.help
    return carry_out


class DeploymentControl:
    """Knows the parts of a deployment, and which domain runs which query.

    It has one method for each verb with a domain scope: `swap(policy, reason, domain)`, `pause(domain)` …; subclasses
    have one for each verb of the deployment.
    """

    why = _make_method("why")
    swap = _make_method("swap")
    require = _make_method("require")
    weigh = _make_method("weigh")
    pause = _make_method("pause")
    resume = _make_method("resume")
    lift = _make_method("lift")

    def __init__(self, parts: DeploymentActors) -> None:
        self._parts = parts
        self._answer_timeout_s = ANSWER_TIMEOUT_S
        self._domain_by_query: dict[str, str] = {}

    def _carry_out(self, verb: Verb, *arguments: object, **named: object) -> object:
        """Have the domains in a verb's scope carry it out; answers what they answer."""
        bound = verb.bind(*arguments, **named)
        if verb.role == READ:
            return self._ask_domains(verb, bound)
        with self._control_change():
            return self._ask_domains(verb, bound)

    def _ask_domains(self, verb: Verb, bound: dict[str, object]) -> object:
        values = [bound[argument.name] for argument in verb.arguments]
        if verb.scope is VerbScope.QUERY_DOMAIN:
            return self._call_control(self._find_domain(str(values[0])).scheduler.control, verb.name, *values)
        selected, answers, refusals = (
            self._select_domains(None if bound["domain"] is None else str(bound["domain"])),
            list[object](),
            list[DsmsError](),
        )
        for domain_actors in selected:
            try:
                answers.append(self._call_control(domain_actors.scheduler.control, verb.name, *values))
            except DsmsError as error:
                refusals.append(error)
                if not verb.is_tolerant:
                    raise
        if len(refusals) == len(selected):
            raise refusals[0]
        return verb.collect(answers)

    @contextmanager
    def _control_change(self) -> Iterator[None]:
        """Surround a change; a durable deployment makes it permanent before it answers."""
        yield

    def _find_domain(self, query: str) -> DomainActors:
        if query not in self._domain_by_query:
            raise PlanError(f"no query {query!r}{existing(query, self._domain_by_query)}")
        return self._parts.actors_by_domain[self._domain_by_query[query]]

    def _select_domains(self, domain: str | None) -> list[DomainActors]:
        actors_by_domain = self._parts.actors_by_domain
        if domain is not None and domain not in actors_by_domain:
            raise DsmsError(f"no domain {domain!r}{existing(domain, actors_by_domain)}")
        return list(actors_by_domain.values()) if domain is None else [actors_by_domain[domain]]

    def _gateway_status(self, status: Callable[[], JsonObject]) -> GatewayStatus:
        try:
            return GatewayStatus.of(self._call(status))
        except DsmsError as error:
            return GatewayStatus(None, error=str(error))

    def _result_hub_status(self, status: Callable[[], JsonObject]) -> ResultHubStatus:
        try:
            return ResultHubStatus.of(self._call(status))
        except DsmsError as error:
            return ResultHubStatus(error=str(error))

    def _domain_status(self, domain_actors: DomainActors) -> DomainStatus:
        method = domain_actors.scheduler.status
        try:
            return await_answer(send(method, group=CONTROL), _describe_method(method))
        except DsmsError as error:
            return DomainStatus.silent(domain_actors.name, str(error))

    def _call_control(self, method: Callable[[*Arguments], R], *arguments: *Arguments) -> R:
        timeout = max(MIGRATION_TIMEOUT_S, self._answer_timeout_s)
        return await_answer(send(method, *arguments, group=CONTROL), _describe_method(method), timeout)

    def _call(self, method: Callable[[*Arguments], R], *arguments: *Arguments) -> R:
        return await_answer(send(method, *arguments), _describe_method(method), self._answer_timeout_s)


def _describe_method(method: object) -> str:
    """What a call is named in a message."""
    return str(getattr(method, "_method_name", getattr(method, "__name__", method)))
