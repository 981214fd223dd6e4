"""Policies by name: `NAME[:key=value[,key=value…]]` as people type it."""

from __future__ import annotations

import dataclasses
import logging
import typing
from importlib.metadata import EntryPoint, entry_points

from dsms.errors import PolicyError, existing
from dsms.policies import POLICIES
from dsms.policies.base import Policy

GROUP = "dsms.policies"
log = logging.getLogger("dsms")


def policies() -> dict[str, type[Policy]]:
    """All that can be used, ours and those that other packages bring by entry point."""
    found = {}
    for name in policy_names():
        try:
            found[name] = _class(name)
        except PolicyError as error:  # one broken package must not hide the others
            log.warning("%s", error)
    return found


def policy_names() -> list[str]:
    """All that can be named; other packages' code is not run to find out."""
    return list(dict.fromkeys([*(policy.name for policy in POLICIES), *_others()]))


def policy_named(text: str) -> Policy:
    """The policy that such a text stands for."""
    name, colon, rest = text.partition(":")
    policy = _class(name)
    if colon and not rest.strip(","):
        raise PolicyError(f"policy {text!r}: parameters are wanted after the colon, as in 'rr:tuples=30'")
    try:
        return policy(**_parameters(policy, name, rest))
    except TypeError as error:
        raise PolicyError(f"policy {name!r} cannot be made from {rest!r}: {error}") from None


def _others() -> dict[str, EntryPoint]:
    """Looks through all that is installed, which takes milliseconds: only when the name is none of ours."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _class(name: str) -> type[Policy]:
    ours = {policy.name: policy for policy in POLICIES}
    if name in ours:
        return ours[name]
    point = _others().get(name)
    if point is None:
        raise PolicyError(f"no policy {name!r}{existing(name, policy_names())}")
    try:
        loaded: type[Policy] = point.load()
    except Exception as error:
        raise PolicyError(f"policy {name!r} comes from {point.value!r}, which cannot be loaded: {error}") from None
    return loaded


def parameters(policy: type[Policy]) -> dict[str, typing.Any]:
    """The names of a policy's parameters and their types."""
    if not dataclasses.is_dataclass(policy):
        return {}
    types = typing.get_type_hints(policy)
    return {field.name: types[field.name] for field in dataclasses.fields(policy) if field.init}


def _parameters(policy: type[Policy], name: str, text: str) -> dict[str, object]:
    wanted = parameters(policy)
    given: dict[str, object] = {}
    for pair in filter(None, text.split(",")):
        key, equals, value = pair.partition("=")
        if key not in wanted:
            raise PolicyError(f"policy {name!r} has no parameter {key!r}{existing(key, wanted)}")
        if not equals or key in given:
            raise PolicyError(f"policy {name!r}: {pair!r}: each parameter is given once, as {key}=VALUE")
        given[key] = _value(f"policy {name!r}: {key}", value, wanted[key])
    return given


def _value(what: str, text: str, wanted: object) -> object:
    kinds = [kind for kind in typing.get_args(wanted) or (wanted,) if kind is not type(None)]
    for kind in kinds:
        try:
            if kind is bool:
                return {"true": True, "false": False}[text.lower()]
            if kind in (int, float, str):
                return kind(text)
        except (ValueError, KeyError):
            continue
    names = {int: "a whole number", float: "a number", bool: "true or false"}
    raise PolicyError(f"{what} is {text!r}: {' or '.join(names.get(k, str(k)) for k in kinds)} is wanted")
