"""The table of built-in functions and operators: a type rule and a kernel for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dsms.expressions import arithmetic, strings
from dsms.expressions.arithmetic import Kernel, without_faults
from dsms.expressions.scalar_functions import UserFunction
from dsms.expressions.signatures import (
    Rule,
    Types,
    additive_rule,
    any_type_rule,
    arithmetic_rule,
    comparison_rule,
    fixed_rule,
    float_rule,
    membership_rule,
    null_if_rule,
    repeated_rule,
    rounding_rule,
    same_number_rule,
    same_type_rule,
)

__all__ = ["BUILT_IN", "BuiltIn", "UserFunction"]


class BuiltIn(NamedTuple):
    """The type rule of a function, and its kernel by types; without a kernel, `null_rules` compiles the call."""

    rule: Rule
    kernel: Callable[[Types], Kernel] | None = None


def _fixed_kernel(rule: Rule, kernel: Kernel) -> BuiltIn:
    return BuiltIn(rule, lambda types: kernel)


def _kernel_by_type(rule: Rule, integers: Kernel, others: Kernel) -> BuiltIn:
    """Use the kernel `integers` if no argument is float64, otherwise `others`."""
    return BuiltIn(rule, lambda types: others if "float64" in types else integers)


def _rounding_kernel(types: Types) -> Kernel:
    if len(types) == 1:
        return without_faults(np.positive if types[0] == "int64" else arithmetic.round_half_away)
    return arithmetic.round_integer_digits if types[0] == "int64" else without_faults(arithmetic.round_digits)


BUILT_IN: dict[str, BuiltIn] = {
    "+": _kernel_by_type(additive_rule, arithmetic.add_integers, without_faults(np.add)),
    "-": _kernel_by_type(additive_rule, arithmetic.subtract_integers, without_faults(np.subtract)),
    "*": _kernel_by_type(arithmetic_rule, arithmetic.multiply_integers, without_faults(np.multiply)),
    "/": _fixed_kernel(float_rule(2), arithmetic.divide),
    # `//` of floats is `/`, as in DuckDB.
    "//": _kernel_by_type(arithmetic_rule, arithmetic.divide_integers, arithmetic.divide),
    "%": _kernel_by_type(arithmetic_rule, arithmetic.remainder_integers, arithmetic.remainder),
    "neg": _kernel_by_type(same_number_rule, arithmetic.negate_integer, without_faults(np.negative)),
    "=": _fixed_kernel(comparison_rule, without_faults(np.equal)),
    "<>": _fixed_kernel(comparison_rule, without_faults(np.not_equal)),
    "<": _fixed_kernel(comparison_rule, without_faults(np.less)),
    "<=": _fixed_kernel(comparison_rule, without_faults(np.less_equal)),
    ">": _fixed_kernel(comparison_rule, without_faults(np.greater)),
    ">=": _fixed_kernel(comparison_rule, without_faults(np.greater_equal)),
    "and": BuiltIn(repeated_rule("bool", "bool")),
    "or": BuiltIn(repeated_rule("bool", "bool")),
    "not": _fixed_kernel(fixed_rule("bool", "bool"), without_faults(np.logical_not)),
    "is null": BuiltIn(any_type_rule),
    "in": BuiltIn(membership_rule),
    "like": _fixed_kernel(fixed_rule("bool", "string", "string"), without_faults(strings.like)),
    "||": _fixed_kernel(fixed_rule("string", "string", "string"), without_faults(strings.concat)),
    "abs": _kernel_by_type(same_number_rule, arithmetic.absolute_integer, without_faults(np.abs)),
    "round": BuiltIn(rounding_rule, _rounding_kernel),
    "floor": _fixed_kernel(float_rule(1), without_faults(lambda a: np.floor(np.float64(a)))),
    "ceil": _fixed_kernel(float_rule(1), without_faults(lambda a: np.ceil(np.float64(a)))),
    "sqrt": _fixed_kernel(float_rule(1), arithmetic.square_root),
    "ln": _fixed_kernel(float_rule(1), arithmetic.logarithm),
    "exp": _fixed_kernel(float_rule(1), without_faults(np.exp)),
    "power": _fixed_kernel(float_rule(2), without_faults(arithmetic.power)),
    "least": BuiltIn(same_type_rule),
    "greatest": BuiltIn(same_type_rule),
    "coalesce": BuiltIn(same_type_rule),
    "nullif": BuiltIn(null_if_rule),
    "lower": _fixed_kernel(fixed_rule("string", "string"), without_faults(strings.lower)),
    "upper": _fixed_kernel(fixed_rule("string", "string"), without_faults(strings.upper)),
    "length": _fixed_kernel(fixed_rule("int64", "string"), without_faults(strings.length)),
    "substr": _fixed_kernel(
        fixed_rule("string", "string", "int64", "int64", optional=1), without_faults(strings.substring)
    ),
    "concat": BuiltIn(repeated_rule("string", "string")),
    "trim": _fixed_kernel(fixed_rule("string", "string"), without_faults(strings.trim)),
}
