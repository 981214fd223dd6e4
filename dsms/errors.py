"""What went wrong, said so that a user can mend it: what was given, what was wanted, what exists."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DsmsError(Exception):
    """The root of every error that is the user's to mend rather than ours."""


class PlanError(DsmsError):
    """A plan that cannot be run; `place` points into the file, as in `queries.q.operators[1].cost`."""

    def __init__(self, message: str, place: str = "", file: str = "") -> None:
        self.message, self.place, self.file = message, place, file
        super().__init__(": ".join(part for part in (file, place, message) if part))

    def within(self, place: str, file: str = "") -> PlanError:
        """The same error, placed: for code that knows what is wrong but not where it stands."""
        inner = f"{place}.{self.place}" if place and self.place else place or self.place
        return PlanError(self.message, inner, file or self.file)


class PolicyError(DsmsError):
    """A policy text that names nothing, or a parameter out of its range."""


class RowError(DsmsError):
    """A row for which an expression has no value."""


class FailedError(DsmsError):
    """What was asked for rightly could not be done: it is not the call that has to be mended."""


class UnreachableError(FailedError):
    """Nobody answers there; somebody may later."""


class OperatorError(Exception):
    """An operator's own code failed while it ran."""


MOST = 40  # names listed in a message


def existing(given: str, names: Iterable[str]) -> str:
    """The tail of every "no such name" message: the nearest name, and all there are."""
    known = sorted(names)
    near = difflib.get_close_matches(given, known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    more = f" and {len(known) - MOST} more" if len(known) > MOST else ""
    return f"{hint}; there are {known[:MOST]}{more}" if known else "; there are none"
