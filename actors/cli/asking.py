"""How a command asks a running system: one connection, one question at a time, an answer or a reason in time."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from dsms.errors import DsmsError, FailedError, existing

NAME = "dsms"
QUICK = 40.0  # seconds: longer than the system itself waits for one of its parts before it says so
SLOW = 120.0  # for what starts or moves actors
log = logging.getLogger("dsms")


class System:
    """A running system, asked by the names of its Deployment's methods."""

    def __init__(self, name: str, handle: Any) -> None:
        self.name, self._handle = name, handle

    def ask(self, method: str, *given: Any, timeout: float = QUICK, **named: Any) -> Any:
        """What it answers; FailedError where it does not."""
        try:
            return ask(self._handle, method, *given, timeout=timeout, **named)
        except FailedError as error:
            raise FailedError(f"{self.name!r} was asked for {method!r}: {error}") from None


def ask(handle: Any, method: str, *given: Any, timeout: float = QUICK, **named: Any) -> Any:
    """Call an actor and wait for its answer, but not for ever; its own errors come back as they are."""
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

    try:
        return ray.get(getattr(handle, method).remote(*given, **named), timeout=timeout)
    except GetTimeoutError:
        raise FailedError(f"no answer within {timeout:g} s; it may still be carried out") from None
    except RayTaskError as error:
        if isinstance(error.cause, DsmsError):
            raise error.cause from None
        raise FailedError(f"{type(error.cause).__name__}: {error.cause}") from error
    except RayActorError as error:
        reason = str(error).strip().splitlines()[0]
        raise FailedError(f"it has ended or cannot be reached ({reason}); `dsms up --replace` starts it anew") from None
    except (RayError, AttributeError) as error:
        raise FailedError(f"{type(error).__name__}: {error}") from error


def common(parser: argparse.ArgumentParser, domain: str = "", local: bool = False) -> None:
    """Which system is meant and, where this is said of one, which of its domains."""
    parser.add_argument("--name", metavar="NAME", default=NAME, help=f"of the running system (default: {NAME})")
    parser.add_argument(
        "--address",
        metavar="auto|local|HOST:PORT" if local else "auto|HOST:PORT",
        default="auto",
        help="of the Ray cluster (default: auto: RAY_ADDRESS, or the one on this machine)"
        + ("; local: one of its own" if local else ""),
    )
    if domain:
        parser.add_argument("--domain", metavar="DOMAIN", help=f"{domain} (default: all)")


def part(module: str) -> Any:
    """A part of the runtime; it loads Ray."""
    try:
        return import_module(f"actors.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise DsmsError("the live system needs Ray, which is not installed: install dsms[ray]") from None


def settings() -> str:
    """What has to stand in the environment of another process to find the cluster that this one is part of."""
    import ray

    mode = os.environ.get("RAY_AUTH_MODE")
    return f"RAY_ADDRESS={ray.get_runtime_context().gcs_address}" + (f" RAY_AUTH_MODE={mode}" if mode else "")


@contextmanager
def joined(given: argparse.Namespace) -> Iterator[Any]:
    """The cluster that the options name, for as long as it is needed."""
    if given.address == "local":
        raise DsmsError(
            f"--address local is a Ray that `dsms up` starts for itself: `dsms {given.command}` needs the address "
            "that it printed, or auto"
        )
    cluster = part("cluster")
    cluster.connect(given.address)
    try:
        yield cluster
    finally:
        cluster.disconnect()


@contextmanager
def system(given: argparse.Namespace) -> Iterator[System]:
    """The running system that the options name."""
    with joined(given) as cluster:
        yield System(given.name, cluster.deployment(given.name))


def chosen(status: dict[str, Any], domain: str | None) -> list[dict[str, Any]]:
    """The domains meant: this one, or all."""
    domains: list[dict[str, Any]] = status["domains"]
    if domain is None:
        return domains
    found = [one for one in domains if str(one["domain"]) == domain]
    if not found:
        raise DsmsError(f"no domain {domain!r}{existing(domain, [str(one['domain']) for one in domains])}")
    return found
