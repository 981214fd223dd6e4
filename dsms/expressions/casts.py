"""The casts between column types; a cast reports the rows whose value does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dsms.expressions.arithmetic import Kernel, without_faults
from dsms.expressions.row_errors import RowErrors

BOOLEAN_TEXTS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _float_to_int(faults: RowErrors, nulls: Any, a: Any) -> Any:
    """Round to the nearest int64, halves to even, as in DuckDB."""
    bad = ~((a >= -(2.0**63)) & (a < 2.0**63))
    if bad.any():
        faults.add(bad, nulls, "the value does not fit int64")
        a = np.where(bad, 0.0, a)
    return np.int64(np.rint(a))


def _integer(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = round(float(text))
    return int(np.int64(value))  # raises OverflowError if it does not fit


def _text_cast(parse: Callable[[str], Any], to: str, kind: type, empty: Any) -> Kernel:
    def parsed(text: str) -> tuple[Any, bool]:
        try:
            return parse(text), False
        except (ValueError, KeyError, OverflowError):
            return empty, True

    each = np.frompyfunc(parsed, 1, 2)

    def kernel(faults: RowErrors, nulls: Any, a: Any) -> Any:
        values, bad = each(a)
        faults.add(np.bool_(bad), nulls, f"the text is not a valid {to}")
        return kind(values)

    return kernel


_number = without_faults(np.float64)
_same = without_faults(np.positive)
_text = without_faults(np.frompyfunc(str, 1, 1))
_truth = without_faults(lambda a: np.not_equal(a, 0))
CASTS: dict[tuple[str, str], Kernel] = {
    ("int64", "float64"): _number,
    ("int64", "bool"): _truth,
    ("int64", "timestamp"): _same,
    ("int64", "string"): _text,
    ("float64", "int64"): _float_to_int,
    ("float64", "bool"): _truth,
    ("float64", "string"): _text,
    ("bool", "int64"): without_faults(np.int64),
    ("bool", "float64"): _number,
    ("bool", "string"): without_faults(np.frompyfunc(lambda truth: "true" if truth else "false", 1, 1)),
    ("timestamp", "int64"): _same,
    ("string", "int64"): _text_cast(_integer, "int64", np.int64, 0),
    ("string", "float64"): _text_cast(float, "float64", np.float64, 0.0),
    ("string", "bool"): _text_cast(lambda text: BOOLEAN_TEXTS[text.strip().lower()], "bool", np.bool_, False),
}
