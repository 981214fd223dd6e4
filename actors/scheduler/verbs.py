"""The control verbs: every question and change that a running deployment accepts, each declared once.

Deployment methods, CLI arguments, console permissions and call timeouts all come from this table. A verb is carried out
by the method of the same name: of `Domain` for the scopes of a domain, of `Deployment` for VerbScope.DEPLOYMENT.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from inspect import Parameter, Signature
from typing import Any

from dsms.config.qos import STATISTIC_ALIASES, TEMPLATES, Qos
from dsms.errors import DsmsError, existing
from dsms.net.tokens import CONTROL, READ
from dsms.policies.registry import policy_named, policy_names

CALL_TIMEOUT_S = 40.0  # longer than a deployment waits for one of its parts before it reports that
CHANGE_TIMEOUT_S = 120.0  # of verbs that start or move actors


class VerbScope(Enum):
    """Which part of a deployment carries a verb out."""

    EACH_DOMAIN = "each domain"  # the domain named by the argument `domain`, or all
    QUERY_DOMAIN = "the domain of a query"  # which the first argument names
    DEPLOYMENT = "the deployment"


@dataclass(frozen=True)
class Argument:
    """An argument of a verb: how the command line shows and parses it."""

    name: str
    metavar: str
    help: str
    parse: Callable[[str], Any] = str
    default: Any = Parameter.empty


@dataclass(frozen=True)
class Verb:
    """A question or change: its name, arguments, scope, the token role it needs and how long to wait for it."""

    name: str
    help: str
    scope: VerbScope
    arguments: tuple[Argument, ...] = ()
    role: str = CONTROL
    timeout_s: float = CALL_TIMEOUT_S
    collect: Callable[[list[Any]], Any] = lambda answers: None  # from the answers of each domain to one answer
    is_tolerant: bool = False  # some domains may refuse, unless all do

    @property
    def signature(self) -> Signature:
        """The arguments of the deployment's method; verbs for each domain also take `domain`."""
        names = {argument.name: argument.default for argument in self.arguments}
        if self.scope is VerbScope.EACH_DOMAIN:
            names["domain"] = None
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter(name, kind, default=default) for name, default in names.items()])

    def bind(self, *arguments: object, **named: object) -> dict[str, object]:
        """Arguments by name, with defaults; an error if one is missing or unknown."""
        try:
            bound = self.signature.bind(*arguments, **named)
        except TypeError as error:
            raise DsmsError(f"control verb {self.name!r} takes {self.signature}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def argument(self, name: str) -> Argument:
        """The argument of this name."""
        return next(argument for argument in self.arguments if argument.name == name)


def _parse_policy(text: str) -> str:
    policy_named(text)
    return text


def _parse_qos(text: str) -> str:
    return str(Qos.parse(text))


def _flatten(answers: list[list[object]]) -> list[object]:
    return [each for answer in answers for each in answer]


QUERY = Argument("query", "QUERY", "name of the query")
POLICY = Argument(
    "policy",
    "NAME[:key=value,…]",
    f"the policy to put in charge. There are: {', '.join(policy_names())}",
    _parse_policy,
)
REASON = Argument("reason", "TEXT", "reason to record (default: 'asked for')", default="asked for")
GOAL = Argument(
    "qos",
    "NAME=WEIGHT,…",
    f"weights that add up to 1, as in memory=0.7,delay=0.3 (there are {', '.join(STATISTIC_ALIASES)}); or one of "
    f"{', '.join(TEMPLATES)}",
    _parse_qos,
)
ALL_VERBS = (
    Verb("status", "Show the status of all parts.", VerbScope.DEPLOYMENT, role=READ),
    Verb(
        "why",
        "Show the last decisions.",
        VerbScope.EACH_DOMAIN,
        (Argument("count", "N", "decisions of each domain (default: 1)", int, 1),),
        role=READ,
        collect=_flatten,
    ),
    Verb("swap", "Put another policy in charge.", VerbScope.EACH_DOMAIN, (POLICY, REASON), collect=list),
    Verb("require", "Set the quality-of-service goal.", VerbScope.EACH_DOMAIN, (GOAL,)),
    Verb(
        "weigh",
        "Set the weight of a query.",
        VerbScope.QUERY_DOMAIN,
        (QUERY, Argument("weight", "WEIGHT", "a positive number", float)),
    ),
    Verb("pause", "Stop giving turns; rows are still admitted.", VerbScope.EACH_DOMAIN, is_tolerant=True),
    Verb("resume", "Continue giving turns.", VerbScope.EACH_DOMAIN, is_tolerant=True),
    Verb("lift", "Lift a query's quarantine.", VerbScope.QUERY_DOMAIN, (QUERY,), timeout_s=CHANGE_TIMEOUT_S),
    Verb(
        "add",
        "Add queries.",
        VerbScope.DEPLOYMENT,
        tuple(Argument(name, name.upper(), "of the plan file") for name in ("table", "folder", "file")),
        timeout_s=CHANGE_TIMEOUT_S,
    ),
    Verb("remove", "Remove a query.", VerbScope.DEPLOYMENT, (QUERY,), timeout_s=CHANGE_TIMEOUT_S),
    Verb(
        "move",
        "Move a query to another domain.",
        VerbScope.DEPLOYMENT,
        (QUERY, Argument("domain", "DOMAIN", "the domain to run it in")),
        timeout_s=CHANGE_TIMEOUT_S,
    ),
    Verb("checkpoint", "Save a durable deployment now.", VerbScope.DEPLOYMENT, timeout_s=CHANGE_TIMEOUT_S),
    Verb("down", "End all parts.", VerbScope.DEPLOYMENT, timeout_s=CHANGE_TIMEOUT_S),
)
VERBS = {verb.name: verb for verb in ALL_VERBS}


def find_verb(name: str) -> Verb:
    """The verb of this name."""
    if name not in VERBS:
        raise DsmsError(f"no control verb {name!r}{existing(name, VERBS)}")
    return VERBS[name]
