"""One thing that was looked at: how it is, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

OK, WARNING, ERROR = "ok", "warning", "error"
GIB = 2**30


class Finding(NamedTuple):
    """`state`: fine, may turn out to be in the way, or is."""

    state: str
    what: str
    found: str
    remedy: str = ""


def least(what: str, value: float, found: str, remedy: str, wanted: float, needed: float = 0.0) -> Finding:
    """A warning below what is wanted, an error below what is needed."""
    state = ERROR if value < needed else WARNING if value < wanted else OK
    return Finding(state, what, found, "" if state == OK else remedy)
