"""A value as another type: which casts there are, and the rows that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dsms.expressions.arithmetic import Kernel, plain
from dsms.expressions.faults import Faults

TRUTHS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _whole(faults: Faults, nulls: Any, a: Any) -> Any:
    """The nearest int64, halves to the even one, as in DuckDB."""
    bad = ~((a >= -(2.0**63)) & (a < 2.0**63))
    if bad.any():
        faults.add(bad, nulls, "it does not fit into int64")
        a = np.where(bad, 0.0, a)
    return np.int64(np.rint(a))


def _integer(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = round(float(text))
    return int(np.int64(value))  # refuses what is too big


def _parsed(parse: Callable[[str], Any], to: str, kind: type, empty: Any) -> Kernel:
    def parsed(text: str) -> tuple[Any, bool]:
        try:
            return parse(text), False
        except (ValueError, KeyError, OverflowError):
            return empty, True

    each = np.frompyfunc(parsed, 1, 2)

    def kernel(faults: Faults, nulls: Any, a: Any) -> Any:
        values, bad = each(a)
        faults.add(np.bool_(bad), nulls, f"it is no {to}")
        return kind(values)

    return kernel


_number = plain(np.float64)
_same = plain(np.positive)
_text = plain(np.frompyfunc(str, 1, 1))
_truth = plain(lambda a: np.not_equal(a, 0))
CASTS: dict[tuple[str, str], Kernel] = {
    ("int64", "float64"): _number,
    ("int64", "bool"): _truth,
    ("int64", "timestamp"): _same,
    ("int64", "string"): _text,
    ("float64", "int64"): _whole,
    ("float64", "bool"): _truth,
    ("float64", "string"): _text,
    ("bool", "int64"): plain(np.int64),
    ("bool", "float64"): _number,
    ("bool", "string"): plain(np.frompyfunc(lambda truth: "true" if truth else "false", 1, 1)),
    ("timestamp", "int64"): _same,
    ("string", "int64"): _parsed(_integer, "int64", np.int64, 0),
    ("string", "float64"): _parsed(float, "float64", np.float64, 0.0),
    ("string", "bool"): _parsed(lambda text: TRUTHS[text.strip().lower()], "bool", np.bool_, False),
}
