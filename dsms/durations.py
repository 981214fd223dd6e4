"""Lengths of time as people write them: `200ms`, `1.5 s`, `2h`."""

from __future__ import annotations

import re
from fractions import Fraction

from dsms.errors import PlanError

UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)


def microseconds(text: object) -> int:
    """A length of time in microseconds, from a number and its unit."""
    written = WRITTEN.fullmatch(text) if isinstance(text, str) else None
    if not isinstance(text, str) or written is None or written[2] not in UNITS:
        raise PlanError(f"{text!r} is no length of time: a number and one of {list(UNITS)} is wanted, as in '200ms'")
    return whole(written[1], UNITS[written[2]], text)


def whole(number: str, unit: int, text: str) -> int:
    """So many units of so many microseconds; no part of a microsecond may be left over."""
    length = Fraction(number) * unit
    if length.denominator != 1:
        raise PlanError(f"{text!r} is no whole number of microseconds")
    if length >= 2**63:
        raise PlanError(f"{text!r} is longer than a timestamp can hold (2**63 microseconds)")
    return int(length)
