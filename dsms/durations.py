"""Parses durations such as `200ms`, `1.5 s` and `2h`."""

from __future__ import annotations

import re
from fractions import Fraction

from dsms.errors import PlanError

MICROS_PER_S = 1_000_000
UNITS_US = {"us": 1, "ms": 1_000, "s": MICROS_PER_S, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
DURATION_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)


def parse_duration_us(text: object) -> int:
    """Return a duration in microseconds, from a number and its unit."""
    written = DURATION_PATTERN.fullmatch(text) if isinstance(text, str) else None
    if not isinstance(text, str) or written is None or written[2] not in UNITS_US:
        raise PlanError(f"{text!r} is not a duration: write a number and one of {list(UNITS_US)}, as in '200ms'")
    return parse_whole_us(written[1], UNITS_US[written[2]], text)


def parse_whole_us(number: str, unit: int, text: str) -> int:
    """Return a number of units in microseconds; it must be a whole number of microseconds."""
    length = Fraction(number) * unit
    if length.denominator != 1:
        raise PlanError(f"{text!r} is not a whole number of microseconds")
    if length >= 2**63:
        raise PlanError(f"{text!r} is longer than a timestamp can hold (2**63 microseconds)")
    return int(length)
