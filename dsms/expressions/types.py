"""The type of an expression over the columns of a schema."""

from __future__ import annotations

from collections.abc import Mapping

from dsms.errors import existing
from dsms.expressions.casts import CASTS
from dsms.expressions.functions import BUILT_IN, UserFunction
from dsms.expressions.signatures import NULL, ExpressionError, Signature, Types, common
from dsms.expressions.tree import Call, Case, Cast, Column, Expression, Literal, Value
from dsms.schema import DTYPES, Schema

__all__ = ["ExpressionError", "signature", "type_of"]
NONE: Mapping[str, UserFunction] = {}  # no functions of the user's


def type_of(expression: Expression, schema: Schema, functions: Mapping[str, UserFunction] = NONE) -> str:
    """One of the types of a schema, or "null" for a bare null.

    int64 with float64 gives float64, and `/` always does. `//` and `%` of int64 give int64 and go by the quotient
    without its fraction, as in DuckDB: -7 // 2 is -3, and % has the sign of the dividend.
    """
    match expression:
        case Column(name):
            if name not in schema:
                raise ExpressionError(f"no column {name!r}{existing(name, schema)}")
            return schema[name]
        case Literal(value):
            return _literal(value)
        case Call(name, arguments):
            return signature(name, tuple(type_of(part, schema, functions) for part in arguments), functions).result
        case Case(branches, otherwise):
            for condition, _ in branches:
                if (kind := type_of(condition, schema, functions)) not in ("bool", NULL):
                    raise ExpressionError(f"a condition of 'case' is {kind}: bool is wanted")
            values = [value for _, value in branches]
            return common("case", tuple(type_of(value, schema, functions) for value in (*values, otherwise)))
        case Cast(of, wanted):
            return _cast(type_of(of, schema, functions), wanted)


def signature(name: str, types: Types, functions: Mapping[str, UserFunction]) -> Signature:
    """What a call of a built-in or user's function takes and gives."""
    if name in functions:
        return Signature(tuple("int64" if kind == NULL else kind for kind in types), functions[name].returns)
    if name not in BUILT_IN:
        raise ExpressionError(f"no function {name!r}{existing(name, [*functions, *BUILT_IN])}")
    return BUILT_IN[name].rule(name, types)


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ExpressionError(f"{value} does not fit into int64")
    names: dict[type, str] = {int: "int64", float: "float64", str: "string", type(None): NULL}
    return names[type(value)]


def _cast(kind: str, wanted: str) -> str:
    if wanted not in DTYPES:
        raise ExpressionError(f"cast to {wanted!r}: no such type{existing(wanted, DTYPES)}")
    if kind not in (wanted, NULL) and (kind, wanted) not in CASTS:
        there = sorted(to for of, to in CASTS if of == kind)
        raise ExpressionError(f"cast of {kind} to {wanted}: it can be cast to {there}")
    return wanted
