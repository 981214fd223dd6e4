"""Reads text packet traces of the Internet Traffic Archive: one packet per line, its timestamp first."""

from __future__ import annotations

import hashlib
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np

from dsms.arrivals.process import Floats
from dsms.errors import DsmsError


@lru_cache(maxsize=4)
def read_packets(path: str, max_rows: int | None = None) -> Floats:
    """The sorted timestamps of the first `max_rows` lines, or of all."""
    try:
        with warnings.catch_warnings(action="ignore"):  # numpy warns of an empty file; it is refused below
            timestamps: Floats = np.sort(np.loadtxt(Path(path), usecols=0, ndmin=1, comments="#", max_rows=max_rows))
    except (OSError, ValueError, IndexError) as error:
        raise DsmsError(
            f"{path!r} cannot be read as a packet trace: expected a timestamp first in each line: {error}"
        ) from None
    if not np.isfinite(timestamps).all():
        raise DsmsError(f"{path!r} has lines without a timestamp")
    if len(timestamps) < 2 or timestamps[0] == timestamps[-1]:
        count = "too few" if len(timestamps) else "no"
        raise DsmsError(f"{path!r} has {count} packets: expected two different timestamps or more")
    timestamps.flags.writeable = False  # callers share the cached array
    return timestamps


def digest_file(path: str) -> str:
    """A digest of the file's content: another file under the same name counts as another trace."""
    try:
        with Path(path).open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()[:16]
    except OSError as error:
        raise DsmsError(f"trace {path!r} cannot be read: {error.strerror}") from None
