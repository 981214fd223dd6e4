"""The result of one check: ok, warning or error, what was found, and what to do."""

from __future__ import annotations

from typing import NamedTuple

OK, WARNING, ERROR = "ok", "warning", "error"
GIB = 2**30


class Finding(NamedTuple):
    """A check's result; `remedy` is empty if all is well."""

    state: str
    what: str
    found: str
    remedy: str = ""


def check_minimum(what: str, value: float, found: str, remedy: str, recommended: float, needed: float = 0.0) -> Finding:
    """A warning below the recommended value, an error below the needed one."""
    state = ERROR if value < needed else WARNING if value < recommended else OK
    return Finding(state, what, found, "" if state == OK else remedy)
