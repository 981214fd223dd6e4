"""Replaces dead actors of a deployment by new ones of the same names."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial

import ray
from ray.exceptions import RayError

from actors.cluster.cluster import NAMESPACE, PREFIX
from actors.deployment.actor_handles import DeploymentActors, list_actor_names, wait_until
from actors.deployment.launch import (
    RECOVERY_STALL_LIMIT_S,
    DeploymentSpec,
    check_placement_groups,
    claim_placement_group,
    start_domain,
    start_exporter,
    start_gateway,
    start_result_hub,
    wait_until_ready,
)
from actors.rpc.messages import kill
from dsms.errors import DsmsError

KILL_TIMEOUT_S = 10.0  # for killed actors to end


def list_actors(parts: DeploymentActors) -> dict[str, object]:
    """All actors of a deployment but its control actor, by their names in it."""
    actors: dict[str, object] = {"outlet": parts.result_hub}
    actors.update((f"gateway-{place}", gateway) for place, gateway in enumerate(parts.gateways))
    if parts.exporter is not None:
        actors["exporter"] = parts.exporter
    for domain in parts.actors_by_domain:
        actors.update(list_domain_actors(parts, domain))
    return actors


def list_domain_actors(parts: DeploymentActors, domain: str) -> dict[str, object]:
    """The actors of one domain, by their names in the deployment."""
    domain_actors = parts.actors_by_domain[domain]
    hosts = {f"host-{domain}-{place}": host for place, host in enumerate(domain_actors.hosts)}
    return {f"scheduler-{domain}": domain_actors.scheduler, **hosts}


def kill_actors(deployment: str, names: Collection[str]) -> None:
    """Kill actors, so that none of them runs beside its replacement."""
    own = {f"{PREFIX}{deployment}:{name}" for name in names}
    for name in own:
        with suppress(ValueError, RayError):  # most often it has ended
            kill(ray.get_actor(name, namespace=NAMESPACE))
    if not wait_until(lambda: own.isdisjoint(list_actor_names(deployment)), KILL_TIMEOUT_S):
        raise DsmsError(f"{sorted(own & set(list_actor_names(deployment)))} were killed and have not ended")


def replace_actors(
    parts: DeploymentActors, spec: DeploymentSpec, names: Collection[str], incarnation: int
) -> DeploymentActors:
    """Start new actors of these names and wait for them; domains get incarnations above `incarnation`."""
    spec, fresh, result_hub = replace(spec, resumed=True), list[object](), parts.result_hub
    if "outlet" in names:
        result_hub = start_result_hub(spec)
        fresh.append(result_hub)
    actors_by_domain, rebuilt = dict(parts.actors_by_domain), list[str]()
    for number, domain in enumerate(actors_by_domain, 1):
        if not list_domain_actors(parts, domain).keys().isdisjoint(names):
            actors_by_domain[domain] = start_domain(
                spec, int(domain), claim_placement_group(spec, int(domain)), incarnation + number
            )
            fresh += [actors_by_domain[domain].scheduler, *actors_by_domain[domain].hosts]
            rebuilt.append(domain)
    gateways = list(parts.gateways)
    for place in range(len(gateways)):
        if f"gateway-{place}" in names:
            gateways[place] = start_gateway(spec, place, result_hub)
            fresh.append(gateways[place])
    replaced = DeploymentActors(actors_by_domain, tuple(gateways), result_hub, parts.exporter)
    if "exporter" in names:
        replaced = replace(replaced, exporter=start_exporter(spec, replaced))
        fresh.append(replaced.exporter)
    check = partial(check_placement_groups, spec.name, rebuilt)
    wait_until_ready(fresh, check=check, limit_s=RECOVERY_STALL_LIMIT_S)
    return replaced
