"""Finds policies by name and makes them from texts like `rr:tuples=30`: `NAME[:key=value[,key=value…]]`."""

from __future__ import annotations

import dataclasses
import logging
import typing
from importlib.metadata import EntryPoint, entry_points

from dsms.errors import PolicyError, existing
from dsms.policies import BUILT_IN_POLICIES

if typing.TYPE_CHECKING:
    from dsms.engine.policy import Policy

ENTRY_POINT_GROUP = "dsms.policies"
log = logging.getLogger("dsms")


def policies() -> dict[str, type[Policy]]:
    """Return all policy classes by name: the built-in ones and those of installed packages."""
    classes = {}
    for name in policy_names():
        try:
            classes[name] = _load_class(name)
        except PolicyError as error:  # a package that fails to load must not hide the others
            log.warning("%s", error)
    return classes


def policy_names() -> list[str]:
    """Return all policy names, without importing any policy."""
    return list(_entry_points())


def policy_named(text: str) -> Policy:
    """Return the policy that a text like `rr:tuples=30` names."""
    name, colon, rest = text.partition(":")
    policy = _load_class(name)
    if colon and not rest.strip(","):
        raise PolicyError(f"policy {text!r}: expected parameters after the colon, as in 'rr:tuples=30'")
    try:
        return policy(**_parse_parameters(policy, name, rest))
    except TypeError as error:
        raise PolicyError(f"policy {name!r} cannot be made from {rest!r}: {error}") from None


def _entry_points() -> dict[str, EntryPoint]:
    """Return an entry point for each policy; the search for other packages' ones takes milliseconds."""
    built_in = {name: EntryPoint(name, place, ENTRY_POINT_GROUP) for name, place in BUILT_IN_POLICIES.items()}
    installed = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    return built_in | {name: point for name, point in installed.items() if name not in built_in}


def _load_class(name: str) -> type[Policy]:
    point = _entry_points().get(name)
    if point is None:
        raise PolicyError(f"no policy {name!r}{existing(name, policy_names())}")
    try:
        loaded: type[Policy] = point.load()
    except Exception as error:
        raise PolicyError(f"policy {name!r} comes from {point.value!r}, which cannot be loaded: {error}") from None
    return loaded


def parameters(policy: type[Policy]) -> dict[str, typing.Any]:
    """Return a policy's parameters and their types."""
    if not dataclasses.is_dataclass(policy):
        return {}
    types = typing.get_type_hints(policy)
    return {field.name: types[field.name] for field in dataclasses.fields(policy) if field.init}


def _parse_parameters(policy: type[Policy], name: str, text: str) -> dict[str, object]:
    types = parameters(policy)
    values: dict[str, object] = {}
    for pair in filter(None, text.split(",")):
        key, equals, value = pair.partition("=")
        if key not in types:
            raise PolicyError(f"policy {name!r} has no parameter {key!r}{existing(key, types)}")
        if not equals or key in values:
            raise PolicyError(f"policy {name!r}: {pair!r}: give each parameter once, as {key}=VALUE")
        values[key] = _parse_value(f"policy {name!r}: {key}", value, types[key])
    return values


def _parse_value(what: str, text: str, annotation: object) -> object:
    kinds = [kind for kind in typing.get_args(annotation) or (annotation,) if kind is not type(None)]
    for kind in kinds:
        try:
            if kind is bool:
                return {"true": True, "false": False}[text.lower()]
            if kind in (int, float, str):
                return kind(text)
        except (ValueError, KeyError):
            continue
    names = {int: "a whole number", float: "a number", bool: "true or false"}
    raise PolicyError(f"{what} is {text!r}: expected {' or '.join(names.get(k, str(k)) for k in kinds)}")
