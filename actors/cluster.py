"""The Ray cluster that deployments run on: found, connected to within seconds or refused with a reason, left again."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ray
import ray._private.worker
import ray._raylet

from actors.heap import ARENAS
from actors.placement import BUDGET
from actors.runner import LOCAL
from dsms.clock import stopwatch
from dsms.errors import DsmsError, existing

NAMESPACE = "dsms"
PREFIX = "dsms:"  # of the names of all our actors
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "namespace": NAMESPACE}
START = "deploy/head starts a cluster on this machine, `--address local` a small one inside the command"
REFUSED = "InvalidAuthToken"  # what Ray writes to standard error, and nowhere else, while it tries again and again
RECORD = Path("/tmp/ray/ray_current_cluster")  # where `ray start` writes its address down
GLANCE = 0.1  # seconds between two looks at what connecting has come to


def connect(address: str | None, timeout: float = 10.0) -> None:
    """Join the cluster at `host:port`, or this machine's with "auto" or None; an error says within seconds why not."""
    if ray.is_initialized():
        return
    _hush()
    if token := os.environ.get("DSMS_RAY_TOKEN"):
        _show(token)
    place = recorded() if address in (None, "auto") else str(address)
    _listens(place, timeout)
    failure: list[BaseException] = []
    with _captured() as said:
        attempt = threading.Thread(target=_attempt, args=(place, failure), daemon=True)
        attempt.start()
        begun = stopwatch()
        while attempt.is_alive() and stopwatch() - begun < timeout and REFUSED not in said():
            attempt.join(GLANCE)
        words = said()
    if REFUSED in words or any(isinstance(error, ray.exceptions.AuthenticationError) for error in failure):
        raise DsmsError(f"the Ray cluster at {place} does not accept {_token()}: take the file that its head was given")
    if failure:
        raise DsmsError(f"cannot join the Ray cluster at {place}: {_first_line(failure[0])}")
    if attempt.is_alive():
        raise DsmsError(f"{place} listens but does not answer as the head of a Ray cluster within {timeout:g} s")


def local(budgets: int = 1, **settings: Any) -> None:
    """Start a small Ray of our own with so many CPU budgets; it ends with this process."""
    if ray.is_initialized():
        return
    _hush()
    wanted = {**LOCAL, **settings, "namespace": NAMESPACE, "resources": {BUDGET: budgets}}
    try:
        ray.init(**wanted)
    except Exception:  # on a machine that is busy Ray gives itself up after half a minute; what it has read is warm now
        ray.shutdown()
        ray.init(**wanted)


def disconnect() -> None:
    """Leave the cluster; one that was started by `local` ends."""
    ray.shutdown()


def reachable(timeout: float = 2.0) -> None:
    """Refuse to go on with a cluster whose head has gone: Ray itself would wait a minute, and then end this process."""
    _listens(ray.get_runtime_context().gcs_address, timeout)


def deployments() -> list[str]:
    """The names of all deployments of which anything is there, answering or not."""
    return sorted({name.removeprefix(PREFIX).split(":")[0] for name in actor_names()})


def actor_names() -> list[str]:
    """The names of all our actors in the cluster."""
    found = [each["name"] for each in ray.util.list_named_actors(all_namespaces=True) if each["namespace"] == NAMESPACE]
    return sorted(name for name in found if name.startswith(PREFIX))


def deployment(name: str) -> Any:
    """The handle of a deployment's control actor."""
    try:
        return ray.get_actor(f"{PREFIX}{name}", namespace=NAMESPACE)
    except ValueError:
        if name in (found := deployments()):
            raise DsmsError(f"deployment {name!r} is being started, or left over: nobody answers for it") from None
        raise DsmsError(f"no deployment {name!r}{existing(name, found)}") from None


def recorded() -> str:
    """The address of this machine's cluster: as the environment says, as deploy/head left it, or as Ray did."""
    if address := os.environ.get("RAY_ADDRESS"):
        return address
    run = run_folder() / "head"
    with suppress(OSError):
        address = (run / "address").read_text(encoding="utf-8").strip()
        _show((run / "token").read_text(encoding="utf-8").strip())
        return address
    with suppress(OSError):
        return RECORD.read_text(encoding="utf-8").strip()
    raise DsmsError(f"no Ray cluster: RAY_ADDRESS is not set, and none is recorded in {run}; {START}")


def _show(token: str) -> None:
    """Identify ourselves by the token in this file, unless Ray is told otherwise."""
    os.environ.setdefault("RAY_AUTH_TOKEN_PATH", token)
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    core: Any = ray._raylet
    core.Config.initialize("")  # Ray has read the environment when it was imported


def run_folder() -> Path:
    """Where the scripts of deploy/ write down what they have started."""
    return Path(os.environ.get("DSMS_RUN") or Path.home() / ".dsms" / "run")


def _listens(place: str, timeout: float) -> None:
    """Refuse an address at which nobody listens: Ray itself would try for minutes."""
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdigit():
        raise DsmsError(f"{place!r} is not the address of a Ray cluster: host:port, `auto` or `local` is wanted")
    try:
        socket.create_connection((host, int(port)), timeout=min(timeout, 5.0)).close()
    except (OSError, OverflowError) as error:
        raise DsmsError(f"no Ray cluster at {place}: {error}; {START}") from None


def _hush() -> None:
    """Let Ray keep to itself how it is used, and on standard output that it finds our actors many."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("MALLOC_ARENA_MAX", str(ARENAS))  # of workers, from their first thread on
    worker: Any = ray._private.worker
    worker._worker_logs_enabled = False


def _attempt(place: str, failure: list[BaseException]) -> None:
    try:
        ray.init(address=place, **QUIET)
    except BaseException as error:  # Ray leaves by SystemExit too; whoever waits says what it means
        failure.append(error)


def _token() -> str:
    """What we identify ourselves with, as the environment says it."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        return "calls without a token (RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH=FILE give one)"
    if "RAY_AUTH_TOKEN" in os.environ:
        return "the token in RAY_AUTH_TOKEN"
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    return f"the token in {path}" if path.exists() else f"us: there is no token file {path}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@contextmanager
def _captured() -> Iterator[Callable[[], str]]:
    """What is written to standard error meanwhile, also by Ray's own threads, is read by us instead of the user."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")
        finally:
            os.dup2(kept, 2)
            os.close(kept)
