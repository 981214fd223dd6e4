"""Actors in the place of others that are gone, or must go: named alike, and nothing of the old ones left."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayError

from actors.cluster import NAMESPACE, PREFIX
from actors.launch import Wanted, check_groups, crew_of, exporter_of, gateway_of, group_of, outlet_of, there
from actors.parts import Parts, named, wait_for
from dsms.errors import DsmsError

GONE = 10.0  # seconds for killed actors to be gone


def everyone(parts: Parts) -> dict[str, Any]:
    """All actors of a deployment but the one that steers it, by the names that they have in it."""
    found = {"outlet": parts.outlet, **{f"gateway-{place}": one for place, one in enumerate(parts.gateways)}}
    if parts.exporter is not None:
        found["exporter"] = parts.exporter
    for domain in parts.crews:
        found.update(members(parts, domain))
    return found


def members(parts: Parts, domain: str) -> dict[str, Any]:
    """The actors of one domain."""
    crew = parts.crews[domain]
    hosts = {f"host-{domain}-{place}": host for place, host in enumerate(crew.hosts)}
    return {f"scheduler-{domain}": crew.scheduler, **hosts}


def kill(deployment: str, names: Collection[str]) -> None:
    """End actors for good: what is left of them must not go on beside those that take their places."""
    own = {f"{PREFIX}{deployment}:{name}" for name in names}
    for name in own:
        with suppress(ValueError, RayError):  # most often it is dead
            ray.kill(ray.get_actor(name, namespace=NAMESPACE), no_restart=True)
    if not wait_for(lambda: own.isdisjoint(named(deployment)), GONE):
        raise DsmsError(f"{sorted(own & set(named(deployment)))} were told to end and are still there")


def replaced(parts: Parts, wanted: Wanted, names: Collection[str], life: int) -> Parts:
    """These parts with new actors of these names, all of them there; domains live on with numbers after `life`."""
    wanted, fresh, exit_ = replace(wanted, resumed=True), list[Any](), parts.outlet
    if "outlet" in names:
        exit_ = outlet_of(wanted)
        fresh.append(exit_)
    crews, rebuilt = dict(parts.crews), list[str]()
    for number, domain in enumerate(crews, 1):
        if not members(parts, domain).keys().isdisjoint(names):
            crews[domain] = crew_of(wanted, int(domain), group_of(wanted, int(domain)), life + number)
            fresh += [crews[domain].scheduler, *crews[domain].hosts]
            rebuilt.append(domain)
    doors = list(parts.gateways)
    for place in range(len(doors)):
        if f"gateway-{place}" in names:
            doors[place] = gateway_of(wanted, place, exit_)
            fresh.append(doors[place])
    found = Parts(crews, tuple(doors), exit_, parts.exporter)
    if "exporter" in names:
        found = replace(found, exporter=exporter_of(wanted, found))
        fresh.append(found.exporter)
    there(fresh, lambda _: None, partial(check_groups, wanted.name, rebuilt))
    return found
