"""What a deployment is made of: actors and placement groups under its name, asked within time, swept away by name."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.placement_group import placement_group_table, remove_placement_group

from actors.cluster import NAMESPACE, PREFIX, actor_names
from actors.messages import send
from dsms.clock import stopwatch
from dsms.errors import DsmsError

ANSWER = 30.0  # seconds for what is done between two turns, or in one go
SWEEP = 10.0  # until all that was killed is gone
GLANCE = 0.05


@dataclass(frozen=True)
class Crew:
    """One domain's actors."""

    name: str
    scheduler: Any
    hosts: tuple[Any, ...]
    life: int = 0  # where domains are rebuilt: no two have the same


@dataclass(frozen=True)
class Parts:
    """All of a deployment's actors but the one that steers it."""

    crews: dict[str, Crew]
    gateways: tuple[Any, ...]
    outlet: Any
    exporter: Any = None  # None: nobody wants metrics


def settled(calls: Any, what: str, timeout: float = ANSWER) -> Any:
    """What a call, or each of a list of them, has come to; an actor's own error is raised here as it was there."""
    if isinstance(calls, list) and not all(isinstance(call, ray.ObjectRef) for call in calls):
        return calls
    if not isinstance(calls, ray.ObjectRef | list):
        return calls
    try:
        return ray.get(calls, timeout=timeout)
    except GetTimeoutError:
        raise DsmsError(f"{what}: no answer within {timeout:g} s") from None
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, DsmsError):
            raise cause from None
        raise DsmsError(f"{what}: {type(cause or error).__name__}: {cause or error}") from error
    except RayActorError as error:
        raise DsmsError(f"{what}: {ending(error)}") from None


def ending(error: RayActorError) -> str:
    """Why an actor is gone; of one that failed as it began, what it raised: Ray's last line, after where that was."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if error.actor_init_failed:
        return re.sub(r"^dsms\.errors\.\w+: ", "", lines[-1])
    return f"its process has ended ({lines[0]})"


def closed(parts: Sequence[Any]) -> list[Any]:
    """Close parts, which may be dead already; what they answer."""
    calls, answers = [], []
    for part in parts:
        with suppress(DsmsError):
            calls.append(send(part.close))
    for call in calls:
        with suppress(DsmsError):
            answers.append(settled(call, "closing"))
    return answers


def named(deployment: str) -> list[str]:
    """The names of all actors of a deployment that there are."""
    own = f"{PREFIX}{deployment}"
    return [name for name in actor_names() if name == own or name.startswith(f"{own}:")]


def groups(deployment: str) -> list[str]:
    """The names of its placement groups."""
    own = f"{PREFIX}{deployment}:"
    return [
        g["name"] for g in placement_group_table().values() if g["name"].startswith(own) and g["state"] != "REMOVED"
    ]


def sweep(deployment: str, spare: Sequence[str] = ()) -> list[str]:
    """Kill all actors of this name and remove its placement groups, whatever state they are in; answers which."""
    swept = [name for name in named(deployment) if name not in spare]
    for name in swept:
        with suppress(ValueError, RayError):
            ray.kill(ray.get_actor(name, namespace=NAMESPACE), no_restart=True)
    gone = groups(deployment)
    for name in gone:
        with suppress(ValueError, RayError):
            remove_placement_group(ray.util.get_placement_group(name))
    wait_for(lambda: not set(named(deployment)) - set(spare) and not groups(deployment), SWEEP)
    if left := [*(set(named(deployment)) - set(spare)), *groups(deployment)]:
        raise DsmsError(f"{sorted(left)} were told to end and are still there after {SWEEP:g} s")
    return [*swept, *gone]


def wait_for(true: Callable[[], bool], timeout: float) -> bool:
    """Wait for what nobody tells us of; whether it came true."""
    begun = stopwatch()
    while not true():
        if stopwatch() - begun > timeout:
            return False
        time.sleep(GLANCE)
    return True
