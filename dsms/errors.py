"""Errors whose messages tell the user what happened, to what, what exists and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import Enum


class DsmsError(Exception):
    """The base of all errors that the user can correct."""


class PlanError(DsmsError):
    """A plan that cannot be run; `place` points into the file, as in `queries.q.operators[1].cost`."""

    def __init__(self, message: str, place: str = "", file: str = "") -> None:
        self.message, self.place, self.file = message, place, file
        super().__init__(": ".join(part for part in (file, place, message) if part))

    def within(self, place: str, file: str = "") -> PlanError:
        """Return the same error with its place, for code that does not know where the value is written."""
        inner = f"{place}.{self.place}" if place and self.place else place or self.place
        return PlanError(self.message, inner, file or self.file)


class PolicyError(DsmsError):
    """A policy that does not exist, cannot run the plan, or has an invalid parameter."""


class QosError(PolicyError):
    """An invalid QoS requirement; `reason` is the message without the place."""

    @property
    def reason(self) -> str:
        """Return the message without the place."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"qos: {self.reason}"


class RowError(DsmsError):
    """A row for which an expression has no value."""


class FailedError(DsmsError):
    """A valid request that could not be carried out."""


class UnreachableError(FailedError):
    """The other side does not answer; it may later."""


class Cause(Enum):
    """Why a turn failed; the reaction depends on it."""

    ERROR = "error"  # in code: the turn would fail again
    PROCESS_GONE = "process gone"  # in a rebuilt process the turn may succeed


class OperatorError(Exception):
    """An operator failed during a turn: its code raised, or its process ended."""

    def __init__(self, message: str, cause: Cause = Cause.ERROR) -> None:
        super().__init__(message)
        self.cause = cause


def cause_of(error: BaseException) -> Cause:
    """Return why a turn that raised this error failed."""
    return error.cause if isinstance(error, OperatorError) else Cause.ERROR


MOST = 40  # names listed in a message


def existing(given: str, names: Iterable[str]) -> str:
    """Return the end of a "no such name" message: the nearest name and all names that exist."""
    known = sorted(names)
    near = difflib.get_close_matches(given, known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    more = f" and {len(known) - MOST} more" if len(known) > MOST else ""
    return f"{hint}; there are {known[:MOST]}{more}" if known else "; there are none"
