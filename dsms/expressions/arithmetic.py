"""Arithmetic kernels over whole columns; they report the rows that overflow, divide by zero or have no result.

A kernel takes the row errors, the null mask of its arguments (or None), and their values: arrays, or scalars for
constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dsms.expressions.row_errors import RowErrors

Kernel = Callable[..., Any]  # (faults, nulls, *values) -> values
LOWEST, HIGHEST = -(2**63), 2**63 - 1
OVERFLOW = "int64 overflow"


def without_faults(function: Callable[..., Any]) -> Kernel:
    """Wrap a function that has a result for every row as a kernel."""
    return lambda faults, nulls, *values: function(*values)


def _bounds(values: Any) -> tuple[int, int]:
    return int(values.min()), int(values.max())


def _fits(*results: int) -> bool:
    return min(results) >= LOWEST and max(results) <= HIGHEST


def add_integers(faults: RowErrors, nulls: Any, a: Any, b: Any) -> Any:
    (low, high), (least, most) = _bounds(a), _bounds(b)
    result = np.add(a, b)
    if not _fits(low + least, high + most):
        faults.add(((a ^ result) & (b ^ result)) < 0, nulls, OVERFLOW)
    return result


def subtract_integers(faults: RowErrors, nulls: Any, a: Any, b: Any) -> Any:
    (low, high), (least, most) = _bounds(a), _bounds(b)
    result = np.subtract(a, b)
    if not _fits(low - most, high - least):
        faults.add(((a ^ b) & (a ^ result)) < 0, nulls, OVERFLOW)
    return result


def multiply_integers(faults: RowErrors, nulls: Any, a: Any, b: Any) -> Any:
    (low, high), (least, most) = _bounds(a), _bounds(b)
    result = np.multiply(a, b)
    if not _fits(low * least, low * most, high * least, high * most):
        lowest = np.int64(LOWEST)
        negated = ((a == -1) & (b == lowest)) | ((b == -1) & (a == lowest))
        # A product that wrapped around does not divide back; -1 is a special case because lowest / -1 wraps too.
        divisor = np.where((a == 0) | (a == -1), 1, a)
        faults.add(negated | ((a != 0) & (a != -1) & (result // divisor != b)), nulls, OVERFLOW)
    return result


def negate_integer(faults: RowErrors, nulls: Any, a: Any) -> Any:
    if a.min() == LOWEST:
        faults.add(a == LOWEST, nulls, OVERFLOW)
    return np.negative(a)


def absolute_integer(faults: RowErrors, nulls: Any, a: Any) -> Any:
    if a.min() == LOWEST:
        faults.add(a == LOWEST, nulls, OVERFLOW)
    return np.abs(a)


def _divisor(faults: RowErrors, nulls: Any, b: Any, reason: str) -> Any:
    """Report zeros in the divisor as faults, and replace them by ones."""
    zero = b == 0
    if not zero.any():
        return b
    faults.add(zero, nulls, reason)
    return np.where(zero, b.dtype.type(1), b)


def divide(faults: RowErrors, nulls: Any, a: Any, b: Any) -> Any:
    """Return the quotient as float64, for integers too."""
    return np.true_divide(a, _divisor(faults, nulls, b, "division by zero"))


def divide_integers(faults: RowErrors, nulls: Any, a: Any, b: Any) -> Any:
    """Return the quotient rounded towards zero: -7 // 2 is -3, as in DuckDB."""
    b = _divisor(faults, nulls, b, "division by zero")
    low, high = _bounds(a)
    least, most = _bounds(b)
    if low == LOWEST and least <= -1 <= most:
        faults.add((a == LOWEST) & (b == -1), nulls, OVERFLOW)
    quotient = np.floor_divide(a, b)
    if (low >= 0 and least >= 0) or (high <= 0 and most <= 0):
        return quotient
    return quotient + (((a ^ b) < 0) & (quotient * b != a))


def remainder_integers(faults: RowErrors, nulls: Any, a: Any, b: Any) -> Any:
    """Return the remainder of `//`, with the sign of the dividend: -7 % 3 is -1, as in DuckDB."""
    b = _divisor(faults, nulls, b, "modulo by zero")
    if np.ndim(b) or b < 0 or a.min() < 0:
        return np.fmod(a, b)
    return a - np.floor_divide(a, b) * b  # numpy divides by a constant faster than it takes remainders


def remainder(faults: RowErrors, nulls: Any, a: Any, b: Any) -> Any:
    return np.fmod(a, _divisor(faults, nulls, b, "modulo by zero"))


def square_root(faults: RowErrors, nulls: Any, a: Any) -> Any:
    bad = a < 0
    if bad.any():
        faults.add(bad, nulls, "square root of a negative number")
    return np.sqrt(a)


def logarithm(faults: RowErrors, nulls: Any, a: Any) -> Any:
    bad = a <= 0
    if bad.any():
        faults.add(bad, nulls, "logarithm of a number that is not positive")
    return np.log(a)


def power(a: Any, b: Any) -> Any:
    return np.power(np.float64(a), np.float64(b))


def round_half_away(a: Any) -> Any:
    """Round to the nearest integer, halves away from zero, as in DuckDB."""
    whole = np.trunc(a)
    return whole + np.where(np.abs(a - whole) >= 0.5, np.sign(a), 0.0)


def round_digits(a: Any, digits: Any) -> Any:
    """Round to a number of digits after the decimal point, or before it if negative."""
    scale = np.power(10.0, np.abs(digits))
    scaled = round_half_away(np.where(digits < 0, a / scale, a * scale))
    rounded = np.where(digits < 0, scaled * scale, scaled / scale)
    return np.where(np.isfinite(rounded), rounded, a)  # the scale overflows: the number has no digits there


def round_integer_digits(faults: RowErrors, nulls: Any, a: Any, digits: Any) -> Any:
    """Round an integer, which changes only if `digits` is negative."""
    unit = np.power(np.int64(10), np.clip(-digits, 0, 18))
    rest = np.fmod(a, unit)
    away = np.where(np.abs(rest) >= unit - np.abs(rest), np.sign(a) * unit, 0)
    rounded = add_integers(faults, nulls, a - rest, np.where(unit > 1, away, 0))
    return np.where(digits < -18, 0, rounded)
