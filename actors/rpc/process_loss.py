"""Translates Ray's errors: tells a lost process from an error in code, and describes either in one line."""

from __future__ import annotations

import re

from ray.exceptions import (
    GetTimeoutError,
    LocalRayletDiedError,
    NodeDiedError,
    OwnerDiedError,
    RayActorError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)

from actors.transport.address import peer_gone
from dsms.errors import Cause, DsmsError, OperatorError

# Ray 2.60's classes for a lost process. Not GetTimeoutError: a process that does not answer in time may be busy.
PROCESS_LOSS_ERRORS = (RayActorError, WorkerCrashedError, NodeDiedError, LocalRayletDiedError, OwnerDiedError)
RAISED_BY_US = re.compile(r"^dsms\.errors\.\w+: ")  # how Ray 2.60 begins the last line of an error of ours


def unwrap(error: BaseException) -> BaseException:
    """The error that an actor raised, without Ray's RayTaskError around it."""
    cause = getattr(error, "cause", None) if isinstance(error, RayTaskError) else None
    return cause if isinstance(cause, BaseException) else error


def is_process_gone(error: BaseException | None) -> bool:
    """Whether a call failed because a process has ended: that of the called actor, or of one that it called."""
    if isinstance(error, RayTaskError):  # first: it is an instance of its cause's class too
        return is_process_gone(getattr(error, "cause", None))
    if isinstance(error, OperatorError):
        return error.cause is Cause.PROCESS_GONE
    return isinstance(error, PROCESS_LOSS_ERRORS)


def process_gone(error: BaseException) -> OperatorError:
    """The error of a turn whose process has ended."""
    cause = unwrap(error)
    if isinstance(cause, OperatorError):
        return cause
    return peer_gone(_lines(cause)[0])


def describe_error(error: BaseException) -> str:
    """An error in one line: its last, before which Ray puts the traceback."""
    return _lines(unwrap(error))[-1]


def describe_death(error: RayError) -> str:
    """Why an actor does not run; one that failed as it started is described by the error it raised."""
    lines = _lines(error)
    if isinstance(error, RayActorError) and error.actor_init_failed:
        return RAISED_BY_US.sub("", lines[-1])
    return f"its process has ended ({lines[0]})" if is_process_gone(error) else lines[0]


def translate_error(error: RayError, what: str, timeout: float) -> DsmsError:
    """Ray's error as ours: that of the actor where it is a DsmsError, else one that names what was asked."""
    if isinstance(error, GetTimeoutError):
        return DsmsError(f"{what}: no answer within {timeout:g} s")
    if not isinstance(error, RayTaskError):
        return DsmsError(f"{what}: {describe_death(error)}")
    cause = unwrap(error)
    return cause if isinstance(cause, DsmsError) else DsmsError(f"{what}: {type(cause).__name__}: {cause}")


def _lines(error: BaseException) -> list[str]:
    """The lines of a message; the name of the error's class where there is none."""
    return str(error).strip().splitlines() or [type(error).__name__]
