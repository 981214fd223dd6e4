"""SQL's string functions, applied to whole columns."""

from __future__ import annotations

import operator
import re
from functools import lru_cache
from typing import Any

import numpy as np

concat = np.frompyfunc(operator.add, 2, 1)
lower = np.frompyfunc(str.lower, 1, 1)
upper = np.frompyfunc(str.upper, 1, 1)
trim = np.frompyfunc(lambda text: text.strip(" "), 1, 1)
_length = np.frompyfunc(len, 1, 1)


def length(values: Any) -> Any:
    """Return the number of characters of each string."""
    return np.int64(_length(values))


def _part(text: str, start: int, count: int) -> str:
    begin = start - 1 if start >= 0 else len(text) + start
    first, last = sorted((begin, begin + count))
    return text[max(first, 0) : max(last, 0)]


_parts = np.frompyfunc(_part, 3, 1)
_rests = np.frompyfunc(lambda text, start: _part(text, start, len(text) + abs(start) + 1), 2, 1)


def substring(values: Any, start: Any, count: Any = None) -> Any:
    """Return `count` characters (None: all) from `start`, from 1, or from the end if negative, as in DuckDB."""
    return _rests(values, start) if count is None else _parts(values, start, count)


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    """Compile a LIKE pattern so that each part between two % matches at its first occurrence, without backtracking.

    A later match would leave less text for the other parts, so no match is lost. And no pattern, which may come from
    the data, can cause exponential backtracking.
    """
    first, *others = ("".join("." if sign == "_" else re.escape(sign) for sign in part) for part in text.split("%"))
    between = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return re.compile(first + between + "".join(f".*{part}" for part in others[-1:]), re.DOTALL)


_like = np.frompyfunc(lambda text, pattern: _pattern(pattern).fullmatch(text) is not None, 2, 1)


def like(values: Any, patterns: Any) -> Any:
    """Return whether each string matches the pattern: % matches any characters, _ one."""
    if np.ndim(patterns) == 0:
        return np.bool_(np.frompyfunc(_pattern(np.asarray(patterns, dtype=object).item()).fullmatch, 1, 1)(values))
    return np.bool_(_like(values, patterns))
