"""Policies by name: `NAME[:key=value[,key=value…]]` as people type it."""

from __future__ import annotations

import dataclasses
import typing
from importlib.metadata import entry_points

from dsms.errors import PolicyError, existing
from dsms.policies import POLICIES
from dsms.policies.base import Policy

GROUP = "dsms.policies"


def policies() -> dict[str, type[Policy]]:
    """All that can be named, ours and those that other packages bring by entry point."""
    found = {policy.name: policy for policy in POLICIES}
    for point in entry_points(group=GROUP):
        if point.name not in found:
            found[point.name] = point.load()
    return found


def policy_named(text: str) -> Policy:
    """The policy that such a text stands for."""
    name, colon, rest = text.partition(":")
    known = policies()
    if name not in known:
        raise PolicyError(f"no policy {name!r}{existing(name, known)}")
    if colon and not rest:
        raise PolicyError(f"policy {text!r}: parameters are wanted after the colon, as in 'rr:tuples=30'")
    return known[name](**_parameters(known[name], name, rest))


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
