"""Connects this process to the Ray cluster that deployments run on, or starts a small one, and lists deployments."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import ray

from actors.cluster.malloc_trim import MALLOC_ARENAS
from actors.cluster.placement import CPU_BUDGET_RESOURCE
from actors.rpc.messages import JsonObject
from actors.rpc.ray_workarounds import TOKEN_REFUSED, capture_stderr, set_auth_token, silence_ray, start_ray
from dsms.clock import monotonic_s
from dsms.errors import DsmsError, existing

NAMESPACE = "dsms"
PREFIX = "dsms:"  # of the names of all our actors
LOCAL_RAY_OPTIONS: dict[str, Any] = {  # of a Ray of our own: small, silent, and gone with this process
    "address": "local",
    "include_dashboard": False,
    "log_to_driver": False,
    "logging_level": "error",
    "object_store_memory": 256 * 1024**2,
    # Bytes up to which rows travel inside a call: the way through the object store takes a millisecond more.
    "_system_config": {"max_direct_call_object_size": 1024**2},
}
RAY_CLIENT_OPTIONS: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "namespace": NAMESPACE}
START_HINT = "deploy/head starts a cluster on this machine, `--address local` a small one inside the command"
RAY_ADDRESS_FILE = Path("/tmp/ray/ray_current_cluster")  # where `ray start` writes its address
CONNECT_POLL_S = 0.1
CONNECT_TIMEOUT_S = 120.0  # for the head of a busy machine; where nothing listens, an error comes at once


class DeploymentHandle(Protocol):
    """The control actor of a deployment, as other processes see it."""

    def identity(self) -> JsonObject:
        """Its name, start, version and gateways."""

    def down(self) -> str | None:
        """End the deployment; returns what was not saved, and why."""


def connect(address: str | None, timeout: float = CONNECT_TIMEOUT_S) -> None:
    """Join the cluster at `host:port`, or this machine's with "auto" or None; an error says why not."""
    if ray.is_initialized():
        return
    silence_ray(MALLOC_ARENAS)
    if token := os.environ.get("DSMS_RAY_TOKEN"):
        set_auth_token(token)
    place = find_address() if address in (None, "auto") else str(address)
    _check_listening(place, timeout)
    failure: list[BaseException] = []
    with capture_stderr() as read_stderr:
        attempt = threading.Thread(target=_try_connect, args=(place, failure), daemon=True)
        attempt.start()
        started = monotonic_s()
        while attempt.is_alive() and monotonic_s() - started < timeout and TOKEN_REFUSED not in read_stderr():
            attempt.join(CONNECT_POLL_S)
        is_refused = TOKEN_REFUSED in read_stderr()
    if is_refused or any(isinstance(error, ray.exceptions.AuthenticationError) for error in failure):
        raise DsmsError(
            f"the Ray cluster at {place} does not accept {_describe_token()}: use the token file of its head"
        )
    if failure:
        raise DsmsError(f"cannot join the Ray cluster at {place}: {_first_line(failure[0])}")
    if attempt.is_alive():
        raise DsmsError(f"{place} listens but does not answer as the head of a Ray cluster within {timeout:g} s")


def start_local_ray(budgets: int = 1, **options: object) -> None:
    """Start a small Ray with this number of CPU budgets; it ends with this process."""
    if ray.is_initialized():
        return
    silence_ray(MALLOC_ARENAS)
    start_ray({**LOCAL_RAY_OPTIONS, **options, "namespace": NAMESPACE, "resources": {CPU_BUDGET_RESOURCE: budgets}})


def disconnect() -> None:
    """Leave the cluster; one started by `start_local_ray` ends."""
    ray.shutdown()


def check_reachable(timeout: float = 2.0) -> None:
    """Raise an error if the cluster's head is gone: Ray 2.60 itself waits a minute and then ends this process."""
    _check_listening(ray.get_runtime_context().gcs_address, timeout)


def list_deployments() -> list[str]:
    """The names of all deployments that have actors, answering or not."""
    return sorted({name.removeprefix(PREFIX).split(":")[0] for name in actor_names()})


def actor_names() -> list[str]:
    """The names of all our actors in the cluster."""
    names = [each["name"] for each in ray.util.list_named_actors(all_namespaces=True) if each["namespace"] == NAMESPACE]
    return sorted(name for name in names if name.startswith(PREFIX))


def get_deployment(name: str) -> DeploymentHandle:
    """The handle of a deployment's control actor."""
    try:
        handle: DeploymentHandle = ray.get_actor(f"{PREFIX}{name}", namespace=NAMESPACE)
        return handle
    except ValueError:
        if name in (names := list_deployments()):
            raise DsmsError(
                f"deployment {name!r} has actors but no control actor: it is being started, or was left over"
            ) from None
        raise DsmsError(f"no deployment {name!r}{existing(name, names)}") from None


def find_address() -> str:
    """The address of this machine's cluster: from the environment, from deploy/head, or from `ray start`."""
    if address := os.environ.get("RAY_ADDRESS"):
        return address
    run = run_folder() / "head"
    with suppress(OSError):
        address = (run / "address").read_text(encoding="utf-8").strip()
        set_auth_token((run / "token").read_text(encoding="utf-8").strip())
        return address
    with suppress(OSError):
        return RAY_ADDRESS_FILE.read_text(encoding="utf-8").strip()
    raise DsmsError(f"no Ray cluster: RAY_ADDRESS is not set, and none is recorded in {run}; {START_HINT}")


def run_folder() -> Path:
    """The folder in which the scripts of deploy/ record what they have started."""
    return Path(os.environ.get("DSMS_RUN") or Path.home() / ".dsms" / "run")


def _check_listening(place: str, timeout: float) -> None:
    """Raise an error if nothing listens at an address: Ray 2.60 itself tries for minutes."""
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdigit():
        raise DsmsError(f"{place!r} is not the address of a Ray cluster: expected host:port, `auto` or `local`")
    try:
        socket.create_connection((host, int(port)), timeout=min(timeout, 5.0)).close()
    except (OSError, OverflowError) as error:
        raise DsmsError(f"no Ray cluster at {place}: {error}; {START_HINT}") from None


def _try_connect(place: str, failure: list[BaseException]) -> None:
    try:
        ray.init(address=place, **RAY_CLIENT_OPTIONS)
    except BaseException as error:  # Ray 2.60 raises SystemExit too; `connect` reports it
        failure.append(error)


def _describe_token() -> str:
    """Where our auth token comes from, for a message."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        return "calls without a token (RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH=FILE set one)"
    if "RAY_AUTH_TOKEN" in os.environ:
        return "the token in RAY_AUTH_TOKEN"
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    return f"the token in {path}" if path.exists() else f"this process: there is no token file {path}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
