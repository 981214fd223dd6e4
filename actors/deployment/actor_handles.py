"""The actors and placement groups of a deployment: typed handles; listing, closing and killing them by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group_table, remove_placement_group

from actors.cluster.cluster import NAMESPACE, PREFIX, actor_names
from actors.hosts.host import Host
from actors.ingest.gateway import Gateway
from actors.metrics.exporter import Exporter
from actors.results.result_hub import ResultHub
from actors.rpc.answers import await_answer
from actors.rpc.messages import kill, send
from actors.scheduler.scheduler import Scheduler
from dsms.clock import monotonic_s
from dsms.errors import DsmsError

KILL_TIMEOUT_S = 60.0  # for killed actors to end, on a busy machine
POLL_INTERVAL_S = 0.05
Answer = TypeVar("Answer", covariant=True)


class Closable(Protocol[Answer]):
    """An actor that ends its work before it is killed."""

    def close(self) -> Answer:
        """End its work."""


@dataclass(frozen=True)
class DomainActors:
    """One domain's actors."""

    name: str
    scheduler: Scheduler
    hosts: tuple[Host, ...]
    incarnation: int = 0  # of a durable domain: unique


@dataclass(frozen=True)
class DeploymentActors:
    """All actors of a deployment but its control actor."""

    actors_by_domain: dict[str, DomainActors]
    gateways: tuple[Gateway, ...]
    result_hub: ResultHub
    exporter: Exporter | None = None  # None: metrics are off

    def all_actors(self) -> list[object]:
        """The handles of all."""
        exporters = [] if self.exporter is None else [self.exporter]
        domains = [(domain.scheduler, *domain.hosts) for domain in self.actors_by_domain.values()]
        return [*exporters, self.result_hub, *self.gateways, *(actor for actors in domains for actor in actors)]


def close_all(actors: Sequence[Closable[Answer]]) -> list[Answer]:
    """Close actors, some of which may have ended; returns the answers."""
    calls, answers = [], []
    for actor in actors:
        with suppress(DsmsError):
            calls.append(send(actor.close))
    for call in calls:
        with suppress(DsmsError):
            answers.append(await_answer(call, "closing"))
    return answers


def list_actor_names(deployment: str) -> list[str]:
    """The names of a deployment's actors."""
    own = f"{PREFIX}{deployment}"
    return [name for name in actor_names() if name == own or name.startswith(f"{own}:")]


def list_placement_groups(deployment: str) -> list[str]:
    """The names of a deployment's placement groups."""
    own = f"{PREFIX}{deployment}:"
    return [
        g["name"] for g in placement_group_table().values() if g["name"].startswith(own) and g["state"] != "REMOVED"
    ]


def tear_down(deployment: str, spare: Sequence[str] = ()) -> list[str]:
    """Kill all actors of a deployment and remove its placement groups; returns their names."""
    killed = [name for name in list_actor_names(deployment) if name not in spare]
    for name in killed:
        with suppress(ValueError, RayError):
            kill(ray.get_actor(name, namespace=NAMESPACE))
    groups = list_placement_groups(deployment)
    for name in groups:
        with suppress(ValueError, RayError):
            remove_placement_group(ray.util.get_placement_group(name))
    wait_until(
        lambda: not set(list_actor_names(deployment)) - set(spare) and not list_placement_groups(deployment),
        KILL_TIMEOUT_S,
    )
    if left := [*(set(list_actor_names(deployment)) - set(spare)), *list_placement_groups(deployment)]:
        raise DsmsError(f"{sorted(left)} were killed and have not ended after {KILL_TIMEOUT_S:g} s")
    return [*killed, *groups]


def wait_until(condition: Callable[[], bool], timeout: float) -> bool:
    """Poll a condition; returns whether it became true in time."""
    started = monotonic_s()
    while not condition():
        if monotonic_s() - started > timeout:
            return False
        time.sleep(POLL_INTERVAL_S)
    return True
