"""Type checking: derives the type of an expression over the columns of a schema."""

from __future__ import annotations

from collections.abc import Mapping

from dsms.data.schema import DTYPES, Schema
from dsms.errors import existing
from dsms.expressions.casts import CASTS
from dsms.expressions.functions import BUILT_IN, UserFunction
from dsms.expressions.signatures import NULL_TYPE, ExpressionError, Signature, Types, common_type
from dsms.expressions.tree import Call, Case, Cast, Column, Expression, Literal, Value

__all__ = ["ExpressionError", "find_signature", "type_of"]
NO_FUNCTIONS: Mapping[str, UserFunction] = {}


def type_of(expression: Expression, schema: Schema, functions: Mapping[str, UserFunction] = NO_FUNCTIONS) -> str:
    """Return a schema type, or "null" for a bare null.

    int64 with float64 gives float64, and `/` always does. `//` and `%` of int64 give int64 and round towards zero, as
    in DuckDB: -7 // 2 is -3, and % has the sign of the dividend.
    """
    match expression:
        case Column(name):
            if name not in schema:
                raise ExpressionError(f"no column {name!r}{existing(name, schema)}")
            return schema[name]
        case Literal(value):
            return _literal_type(value)
        case Call(name, arguments):
            return find_signature(name, tuple(type_of(part, schema, functions) for part in arguments), functions).result
        case Case(branches, otherwise):
            for condition, _ in branches:
                if (kind := type_of(condition, schema, functions)) not in ("bool", NULL_TYPE):
                    raise ExpressionError(f"a condition of 'case' is {kind}: it must be bool")
            values = [value for _, value in branches]
            return common_type("case", tuple(type_of(value, schema, functions) for value in (*values, otherwise)))
        case Cast(of, target):
            return _check_cast(type_of(of, schema, functions), target)


def find_signature(name: str, types: Types, functions: Mapping[str, UserFunction]) -> Signature:
    """Return the argument and result types of a call of a built-in or user function."""
    if name in functions:
        return Signature(tuple("int64" if kind == NULL_TYPE else kind for kind in types), functions[name].returns)
    if name not in BUILT_IN:
        raise ExpressionError(f"no function {name!r}{existing(name, [*functions, *BUILT_IN])}")
    return BUILT_IN[name].rule(name, types)


def _literal_type(value: Value) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ExpressionError(f"{value} does not fit int64")
    names: dict[type, str] = {int: "int64", float: "float64", str: "string", type(None): NULL_TYPE}
    return names[type(value)]


def _check_cast(kind: str, target: str) -> str:
    if target not in DTYPES:
        raise ExpressionError(f"cast to {target!r}: no such type{existing(target, DTYPES)}")
    if kind not in (target, NULL_TYPE) and (kind, target) not in CASTS:
        targets = sorted(to for of, to in CASTS if of == kind)
        raise ExpressionError(f"cast of {kind} to {target}: {kind} can be cast to {targets}")
    return target
