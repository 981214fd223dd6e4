"""The functions and operators of expressions, in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dsms.expressions import arithmetic as numbers
from dsms.expressions import strings
from dsms.expressions.arithmetic import Kernel, plain
from dsms.expressions.signatures import (
    Rule,
    Types,
    alike,
    anything,
    comparison,
    fixed,
    membership,
    real,
    repeated,
    rounding,
    same_number,
    sum_or_difference,
)
from dsms.expressions.signatures import arithmetic as two_numbers
from dsms.expressions.signatures import unless_equal as unless
from dsms.expressions.user import UserFunction

__all__ = ["BUILT_IN", "BuiltIn", "UserFunction"]


class BuiltIn(NamedTuple):
    """What types it takes, and the kernel for them; without one, `evaluate` knows how nulls or order matter."""

    rule: Rule
    kernel: Callable[[Types], Kernel] | None = None


def _always(rule: Rule, kernel: Kernel) -> BuiltIn:
    return BuiltIn(rule, lambda types: kernel)


def _by_type(rule: Rule, integers: Kernel, others: Kernel) -> BuiltIn:
    """A kernel of its own where no argument is float64."""
    return BuiltIn(rule, lambda types: others if "float64" in types else integers)


def _rounding(types: Types) -> Kernel:
    if len(types) == 1:
        return plain(np.positive if types[0] == "int64" else numbers.round_half_away)
    return numbers.round_integer_digits if types[0] == "int64" else plain(numbers.round_digits)


BUILT_IN: dict[str, BuiltIn] = {
    "+": _by_type(sum_or_difference, numbers.add_integers, plain(np.add)),
    "-": _by_type(sum_or_difference, numbers.subtract_integers, plain(np.subtract)),
    "*": _by_type(two_numbers, numbers.multiply_integers, plain(np.multiply)),
    "/": _always(real(2), numbers.divide),
    "//": _by_type(two_numbers, numbers.divide_integers, numbers.divide),  # of float64: as `/`, as in DuckDB
    "%": _by_type(two_numbers, numbers.remainder_integers, numbers.remainder),
    "neg": _by_type(same_number, numbers.negate_integer, plain(np.negative)),
    "=": _always(comparison, plain(np.equal)),
    "<>": _always(comparison, plain(np.not_equal)),
    "<": _always(comparison, plain(np.less)),
    "<=": _always(comparison, plain(np.less_equal)),
    ">": _always(comparison, plain(np.greater)),
    ">=": _always(comparison, plain(np.greater_equal)),
    "and": BuiltIn(repeated("bool", "bool")),
    "or": BuiltIn(repeated("bool", "bool")),
    "not": _always(fixed("bool", "bool"), plain(np.logical_not)),
    "is null": BuiltIn(anything),
    "in": BuiltIn(membership),
    "like": _always(fixed("bool", "string", "string"), plain(strings.like)),
    "||": _always(fixed("string", "string", "string"), plain(strings.joined)),
    "abs": _by_type(same_number, numbers.absolute_integer, plain(np.abs)),
    "round": BuiltIn(rounding, _rounding),
    "floor": _always(real(1), plain(lambda a: np.floor(np.float64(a)))),
    "ceil": _always(real(1), plain(lambda a: np.ceil(np.float64(a)))),
    "sqrt": _always(real(1), numbers.square_root),
    "ln": _always(real(1), numbers.logarithm),
    "exp": _always(real(1), plain(np.exp)),
    "power": _always(real(2), plain(numbers.power)),
    "least": BuiltIn(alike),
    "greatest": BuiltIn(alike),
    "coalesce": BuiltIn(alike),
    "nullif": BuiltIn(unless),
    "lower": _always(fixed("string", "string"), plain(strings.lower)),
    "upper": _always(fixed("string", "string"), plain(strings.upper)),
    "length": _always(fixed("int64", "string"), plain(strings.length)),
    "substr": _always(fixed("string", "string", "int64", "int64", optional=1), plain(strings.substring)),
    "concat": BuiltIn(repeated("string", "string")),
    "trim": _always(fixed("string", "string"), plain(strings.trimmed)),
}
