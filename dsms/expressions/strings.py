"""Strings: what SQL does with them, value by value."""

from __future__ import annotations

import operator
import re
from functools import lru_cache
from typing import Any

import numpy as np

joined = np.frompyfunc(operator.add, 2, 1)
lower = np.frompyfunc(str.lower, 1, 1)
upper = np.frompyfunc(str.upper, 1, 1)
trimmed = np.frompyfunc(lambda text: text.strip(" "), 1, 1)
_length = np.frompyfunc(len, 1, 1)


def length(values: Any) -> Any:
    """How many characters each has."""
    return np.int64(_length(values))


def _part(text: str, start: int, count: int) -> str:
    begin = start - 1 if start >= 0 else len(text) + start
    first, last = sorted((begin, begin + count))
    return text[max(first, 0) : max(last, 0)]


_parts = np.frompyfunc(_part, 3, 1)
_rests = np.frompyfunc(lambda text, start: _part(text, start, len(text) + abs(start) + 1), 2, 1)


def substring(values: Any, start: Any, count: Any = None) -> Any:
    """From the start, counted from 1 or if negative from the end, so many characters or all; as in DuckDB."""
    return _rests(values, start) if count is None else _parts(values, start, count)


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    """Every part between two % is taken where it comes first, and for good.

    A later place would leave less for the others, so nothing is lost; and no pattern, which may come with the rows, can
    have it try all the ways in which the parts could be spread.
    """
    first, *others = ("".join("." if sign == "_" else re.escape(sign) for sign in part) for part in text.split("%"))
    between = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return re.compile(first + between + "".join(f".*{part}" for part in others[-1:]), re.DOTALL)


_like = np.frompyfunc(lambda text, pattern: _pattern(pattern).fullmatch(text) is not None, 2, 1)


def like(values: Any, patterns: Any) -> Any:
    """Whether each is as the pattern says: % stands for any characters, _ for one."""
    if np.ndim(patterns) == 0:
        return np.bool_(np.frompyfunc(_pattern(np.asarray(patterns, dtype=object).item()).fullmatch, 1, 1)(values))
    return np.bool_(_like(values, patterns))
