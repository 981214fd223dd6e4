"""Calls a running deployment from another process: find the cluster, call one verb, wait for its answer."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from actors.scheduler.verbs import CALL_TIMEOUT_S, VERBS, Argument
from dsms.errors import DsmsError, FailedError, existing
from dsms.live.monitor.status import DeploymentStatus, DomainStatus

DEFAULT_NAME = "dsms"
RUNTIME_PACKAGES = ("ray", "psutil")  # the packages of the extra `ray`
log = logging.getLogger("dsms")


class ControlClient:
    """A running deployment, called by the names of its control verbs."""

    def __init__(self, name: str, handle: Any) -> None:
        self.name, self._handle = name, handle

    def ask(self, verb: str, *arguments: Any, timeout: float | None = None, **named: Any) -> Any:
        """Call a verb and wait for its answer; FailedError if none comes within the verb's timeout."""
        known = VERBS.get(verb)
        timeout = timeout or (CALL_TIMEOUT_S if known is None else known.timeout_s)
        try:
            return ask(self._handle, verb, *arguments, timeout=timeout, **named)
        except FailedError as error:
            raise FailedError(f"call {verb!r} to deployment {self.name!r} failed: {error}") from None

    def status(self, timeout: float | None = None) -> DeploymentStatus:
        """The deployment's present status."""
        status: DeploymentStatus = self.ask("status", timeout=timeout)
        return status


def ask(handle: Any, method: str, *arguments: Any, timeout: float = CALL_TIMEOUT_S, **named: Any) -> Any:
    """Call an actor's method and wait for its answer; errors that it raises are raised here."""
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

    try:
        return ray.get(getattr(handle, method).remote(*arguments, **named), timeout=timeout)
    except GetTimeoutError:
        raise FailedError(f"no answer within {timeout:g} s; the deployment may still carry it out") from None
    except RayTaskError as error:
        if isinstance(error.cause, DsmsError):
            raise error.cause from None
        raise FailedError(f"{type(error.cause).__name__}: {error.cause}") from error
    except RayActorError as error:
        reason = str(error).strip().splitlines()[0]
        raise FailedError(f"it has ended or cannot be reached ({reason}); `dsms up --replace` restarts it") from None
    except (RayError, AttributeError) as error:
        raise FailedError(f"{type(error).__name__}: {error}") from error


def add_common_options(parser: argparse.ArgumentParser, domain: str = "", local: bool = False) -> None:
    """Add the options that name a deployment and its cluster; with `domain`, also the one that names a domain."""
    parser.add_argument(
        "--name", metavar="NAME", default=DEFAULT_NAME, help=f"name of the deployment (default: {DEFAULT_NAME})"
    )
    parser.add_argument(
        "--address",
        metavar="auto|local|HOST:PORT" if local else "auto|HOST:PORT",
        default="auto",
        help="of the Ray cluster (default: auto: RAY_ADDRESS, or the cluster on this machine)"
        + ("; local: start a private one" if local else ""),
    )
    if domain:
        parser.add_argument("--domain", metavar="DOMAIN", help=f"{domain} (default: all)")


def add_verb_argument(parser: argparse.ArgumentParser, argument: Argument, **more: Any) -> None:
    """Add a verb's argument to a command, with the name and help of the verb."""
    parser.add_argument(argument.name, metavar=argument.metavar, help=argument.help, **more)


def import_runtime(module: str) -> Any:
    """Import a module of the runtime, which loads Ray; an error says how to install it."""
    try:
        return import_module(f"actors.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in RUNTIME_PACKAGES:
            raise
        raise DsmsError("the live system needs Ray, which is not installed: install dsms[ray]") from None


def describe_environment() -> str:
    """The environment variables with which another process finds this process's cluster."""
    import ray

    mode = os.environ.get("RAY_AUTH_MODE")
    return f"RAY_ADDRESS={ray.get_runtime_context().gcs_address}" + (f" RAY_AUTH_MODE={mode}" if mode else "")


@contextmanager
def join_cluster(given: argparse.Namespace) -> Iterator[Any]:
    """Connect to the cluster that the options name, and leave it afterwards."""
    if given.address == "local":
        raise DsmsError(
            f"--address local is a private Ray that `dsms up` starts: `dsms {given.command}` needs the address that "
            "`dsms up` printed, or auto"
        )
    cluster = import_runtime("cluster.cluster")
    cluster.connect(given.address)
    try:
        yield cluster
    finally:
        cluster.disconnect()


@contextmanager
def open_client(given: argparse.Namespace) -> Iterator[ControlClient]:
    """Connect to the deployment that the options name."""
    with join_cluster(given) as cluster:
        yield ControlClient(given.name, cluster.get_deployment(given.name))


def select_domains(status: DeploymentStatus, domain: str | None) -> Sequence[DomainStatus]:
    """The domain of this name, or all."""
    if domain is None:
        return status.domains
    selected = [each for each in status.domains if each.domain == domain]
    if not selected:
        raise DsmsError(f"no domain {domain!r}{existing(domain, [each.domain for each in status.domains])}")
    return selected
