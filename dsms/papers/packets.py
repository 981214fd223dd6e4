"""Packet traces of the Internet Traffic Archive, as far as papers need them: when packets came."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np

from dsms.arrivals.process import Floats
from dsms.errors import DsmsError


@lru_cache(maxsize=4)
def instants(path: str, most: int | None = None) -> Floats:
    """The first column of a file, of its first lines where so many are enough; out of order, they are put in order."""
    try:
        with warnings.catch_warnings(action="ignore"):  # a file without lines is refused below
            found = np.sort(np.loadtxt(Path(path), usecols=0, ndmin=1, comments="#", max_rows=most))
    except (OSError, ValueError, IndexError) as error:
        raise DsmsError(f"{path!r} cannot be read as a packet trace, a timestamp first in each line: {error}") from None
    if not len(found) or not np.isfinite(found).all():
        raise DsmsError(f"{path!r} has {'lines without a timestamp' if len(found) else 'no packets'}")
    return found
