"""Type rules of built-in functions: from argument types to the type of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dsms.errors import PlanError

NULL_TYPE = "null"  # the type of a bare null, which converts to any other


class ExpressionError(PlanError):
    """An expression without a type: an unknown name, or arguments of wrong types."""


class Signature(NamedTuple):
    """The types to which a call's arguments are converted, and the type of its result."""

    arguments: tuple[str, ...]
    result: str


Types = tuple[str, ...]
Rule = Callable[[str, Types], Signature]
NUMBER_TYPES = ("int64", "float64")


def type_error(name: str, types: Types, problem: str) -> ExpressionError:
    """Return the error of a call with arguments of wrong types."""
    return ExpressionError(f"{name!r} of {' and '.join(types) or 'nothing'}: {problem}")


def check_argument_count(name: str, types: Types, least: int, most: int | None) -> None:
    """Raise if a call has too few or too many arguments."""
    if len(types) < least or (most is not None and len(types) > most):
        allowed = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
        raise ExpressionError(f"{name!r} of {len(types)} arguments: it takes {allowed}")


def common_type(name: str, types: Types) -> str:
    """Return the type to which values of all these types convert."""
    kinds = {kind for kind in types if kind != NULL_TYPE}
    if len(kinds) < 2:
        return kinds.pop() if kinds else NULL_TYPE
    if kinds == {"int64", "float64"}:
        return "float64"
    if kinds == {"int64", "timestamp"}:
        return "timestamp"
    raise type_error(name, types, "they have no common type")


def fixed_rule(result: str, *arguments: str, optional: int = 0) -> Rule:
    """Accept arguments of exactly these types; the last ones are optional."""

    def rule(name: str, types: Types) -> Signature:
        check_argument_count(name, types, len(arguments) - optional, len(arguments))
        if any(kind not in (expected, NULL_TYPE) for kind, expected in zip(types, arguments, strict=False)):
            raise type_error(name, types, f"it takes {' and '.join(arguments)}")
        return Signature(arguments[: len(types)], result)

    return rule


def repeated_rule(result: str, argument: str, least: int = 1) -> Rule:
    """Accept any number of arguments of one type."""

    def rule(name: str, types: Types) -> Signature:
        check_argument_count(name, types, least, None)
        return fixed_rule(result, *[argument] * len(types))(name, types)

    return rule


def _numbers(name: str, types: Types, least: int, most: int) -> Types:
    check_argument_count(name, types, least, most)
    known = tuple(next((t for t in types if t != NULL_TYPE), "int64") if kind == NULL_TYPE else kind for kind in types)
    if any(kind not in NUMBER_TYPES for kind in known):
        raise type_error(name, types, "it takes numbers")
    return known


def arithmetic_rule(name: str, types: Types) -> Signature:
    """Accept two numbers; the result is float64 if one of them is."""
    known = _numbers(name, types, 2, 2)
    return Signature(known, "float64" if "float64" in known else "int64")


def additive_rule(name: str, types: Types) -> Signature:
    """Accept two numbers, a timestamp and int64 microseconds, or for `-` two timestamps."""
    if "timestamp" not in types:
        return arithmetic_rule(name, types)
    check_argument_count(name, types, 2, 2)
    if name == "-" and types == ("timestamp", "timestamp"):
        return Signature(types, "int64")
    known = tuple("int64" if kind == NULL_TYPE else kind for kind in types)
    if known == ("timestamp", "int64") or (name == "+" and known == ("int64", "timestamp")):
        return Signature(known, "timestamp")
    raise type_error(name, types, "it takes a timestamp and an int64")


def same_number_rule(name: str, types: Types) -> Signature:
    """Accept one number; the result has its type."""
    known = _numbers(name, types, 1, 1)
    return Signature(known, known[0])


def float_rule(arguments: int) -> Rule:
    """Accept a fixed number of numbers; the result is float64."""
    return lambda name, types: Signature(_numbers(name, types, arguments, arguments), "float64")


def rounding_rule(name: str, types: Types) -> Signature:
    """Accept a number and an optional int64, the digits to keep."""
    check_argument_count(name, types, 1, 2)
    known = _numbers(name, types[:1], 1, 1)
    return Signature(
        (*known, *fixed_rule("int64", "int64")(name, types[1:]).arguments) if types[1:] else known, known[0]
    )


def comparison_rule(name: str, types: Types) -> Signature:
    """Accept two values of comparable types."""
    check_argument_count(name, types, 2, 2)
    return membership_rule(name, types)


def membership_rule(name: str, types: Types) -> Signature:
    """Accept a value and candidates of comparable types."""
    check_argument_count(name, types, 2, None)
    for kind in types[1:]:
        common_type(name, (types[0], kind))
    kind = (
        common_type(name, types[:1]) if types[0] != NULL_TYPE else next((t for t in types if t != NULL_TYPE), "int64")
    )
    return Signature(tuple(kind if t == NULL_TYPE else t for t in types), "bool")


def any_type_rule(name: str, types: Types) -> Signature:
    """Accept one value of any type; the result is bool."""
    check_argument_count(name, types, 1, 1)
    return Signature(tuple("int64" if kind == NULL_TYPE else kind for kind in types), "bool")


def same_type_rule(name: str, types: Types) -> Signature:
    """Accept values with a common type, which is the type of the result."""
    check_argument_count(name, types, 1, None)
    kind = common_type(name, types)
    return Signature((kind,) * len(types), kind)


def null_if_rule(name: str, types: Types) -> Signature:
    """Accept two values of comparable types; the result has the type of the first."""
    return Signature(comparison_rule(name, types).arguments, types[0])
