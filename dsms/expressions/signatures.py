"""What types a built-in function takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dsms.errors import PlanError

NULL = "null"  # the type of a bare null, which fits any other


class ExpressionError(PlanError):
    """An expression that has no type: a name that does not exist, or arguments that do not fit."""


class Signature(NamedTuple):
    """The types a call's arguments have or are to be brought to, and the type of its value."""

    arguments: tuple[str, ...]
    result: str


Types = tuple[str, ...]
Rule = Callable[[str, Types], Signature]
NUMBERS = ("int64", "float64")


def refused(name: str, types: Types, wanted: str) -> ExpressionError:
    """The error of a call with arguments of the wrong types."""
    return ExpressionError(f"{name!r} of {' and '.join(types) or 'nothing'}: {wanted}")


def counted(name: str, types: Types, least: int, most: int | None) -> None:
    """Refuse a call with too few or too many arguments."""
    if len(types) < least or (most is not None and len(types) > most):
        wanted = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
        raise ExpressionError(f"{name!r} of {len(types)} arguments: {wanted} wanted")


def common(name: str, types: Types) -> str:
    """The one type that values of all these can have."""
    kinds = {kind for kind in types if kind != NULL}
    if len(kinds) < 2:
        return kinds.pop() if kinds else NULL
    if kinds == {"int64", "float64"}:
        return "float64"
    if kinds == {"int64", "timestamp"}:
        return "timestamp"
    raise refused(name, types, "they have no common type")


def fixed(result: str, *wanted: str, optional: int = 0) -> Rule:
    """Arguments of exactly these types, the last ones optional."""

    def rule(name: str, types: Types) -> Signature:
        counted(name, types, len(wanted) - optional, len(wanted))
        if any(kind not in (want, NULL) for kind, want in zip(types, wanted, strict=False)):
            raise refused(name, types, f"{' and '.join(wanted)} wanted")
        return Signature(wanted[: len(types)], result)

    return rule


def repeated(result: str, wanted: str, least: int = 1) -> Rule:
    """Any number of arguments of one type."""

    def rule(name: str, types: Types) -> Signature:
        counted(name, types, least, None)
        return fixed(result, *[wanted] * len(types))(name, types)

    return rule


def _numbers(name: str, types: Types, least: int, most: int) -> Types:
    counted(name, types, least, most)
    known = tuple(next((t for t in types if t != NULL), "int64") if kind == NULL else kind for kind in types)
    if any(kind not in NUMBERS for kind in known):
        raise refused(name, types, "numbers are wanted")
    return known


def arithmetic(name: str, types: Types) -> Signature:
    """Two numbers: float64 if one of them is."""
    known = _numbers(name, types, 2, 2)
    return Signature(known, "float64" if "float64" in known else "int64")


def sum_or_difference(name: str, types: Types) -> Signature:
    """Two numbers; or a timestamp moved by int64 microseconds; or how far two timestamps are apart."""
    if "timestamp" not in types:
        return arithmetic(name, types)
    counted(name, types, 2, 2)
    if name == "-" and types == ("timestamp", "timestamp"):
        return Signature(types, "int64")
    known = tuple("int64" if kind == NULL else kind for kind in types)
    if known == ("timestamp", "int64") or (name == "+" and known == ("int64", "timestamp")):
        return Signature(known, "timestamp")
    raise refused(name, types, "a timestamp and an int64 are wanted")


def same_number(name: str, types: Types) -> Signature:
    """One number, and one of its type comes out."""
    known = _numbers(name, types, 1, 1)
    return Signature(known, known[0])


def real(arguments: int) -> Rule:
    """So many numbers, and a float64 comes out."""
    return lambda name, types: Signature(_numbers(name, types, arguments, arguments), "float64")


def rounding(name: str, types: Types) -> Signature:
    """A number and how many digits to keep: an int64."""
    counted(name, types, 1, 2)
    known = _numbers(name, types[:1], 1, 1)
    return Signature((*known, *fixed("int64", "int64")(name, types[1:]).arguments) if types[1:] else known, known[0])


def comparison(name: str, types: Types) -> Signature:
    """Two values of types that compare."""
    counted(name, types, 2, 2)
    return membership(name, types)


def membership(name: str, types: Types) -> Signature:
    """A value and candidates of types that compare with it."""
    counted(name, types, 2, None)
    for kind in types[1:]:
        common(name, (types[0], kind))
    kind = common(name, types[:1]) if types[0] != NULL else next((t for t in types if t != NULL), "int64")
    return Signature(tuple(kind if t == NULL else t for t in types), "bool")


def anything(name: str, types: Types) -> Signature:
    """One value of any type: is it null?"""
    counted(name, types, 1, 1)
    return Signature(tuple("int64" if kind == NULL else kind for kind in types), "bool")


def alike(name: str, types: Types) -> Signature:
    """Values of one common type, and one of them comes out."""
    counted(name, types, 1, None)
    kind = common(name, types)
    return Signature((kind,) * len(types), kind)


def unless_equal(name: str, types: Types) -> Signature:
    """Two values of types that compare; the first one comes out."""
    return Signature(comparison(name, types).arguments, types[0])
