"""A packet trace of the Internet Traffic Archive, as text: a line for each packet, its timestamp first."""

from __future__ import annotations

import hashlib
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np

from dsms.arrivals.process import Floats
from dsms.errors import DsmsError


@lru_cache(maxsize=4)
def packets(path: str, most: int | None = None) -> Floats:
    """The timestamps of its first so many lines; those out of order are put in order."""
    try:
        with warnings.catch_warnings(action="ignore"):  # a file without lines is refused below
            found: Floats = np.sort(np.loadtxt(Path(path), usecols=0, ndmin=1, comments="#", max_rows=most))
    except (OSError, ValueError, IndexError) as error:
        raise DsmsError(f"{path!r} cannot be read as a packet trace, a timestamp first in each line: {error}") from None
    if not np.isfinite(found).all():
        raise DsmsError(f"{path!r} has lines without a timestamp")
    if len(found) < 2 or found[0] == found[-1]:
        raise DsmsError(
            f"{path!r} has {'no' if not len(found) else 'too few'} packets: two instants at least are wanted"
        )
    found.flags.writeable = False  # it is everybody's
    return found


def digest(path: str) -> str:
    """By which a trace is known again: another file under the same name is another trace."""
    try:
        with Path(path).open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()[:16]
    except OSError as error:
        raise DsmsError(f"trace {path!r} cannot be read: {error.strerror}") from None
