"""Compiles an expression once into closures, which then compute its values for each batch of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsms.data.batch import NULLS_SUFFIX
from dsms.data.batch import Column as Values
from dsms.data.schema import DTYPES, Schema
from dsms.expressions.casts import CASTS
from dsms.expressions.functions import BUILT_IN, UserFunction
from dsms.expressions.null_rules import (
    CompiledPart,
    ConstantKernel,
    Vector,
    Work,
    compile_and,
    compile_case,
    compile_coalesce,
    compile_concat,
    compile_extreme,
    compile_in,
    compile_is_null,
    compile_null_if,
    compile_or,
    compile_strict,
)
from dsms.expressions.row_errors import RowErrors
from dsms.expressions.scalar_functions import EMPTY_VALUES
from dsms.expressions.signatures import NULL_TYPE, common_type
from dsms.expressions.tree import Call, Case, Cast, Column, Expression, Literal, Value
from dsms.expressions.types import NO_FUNCTIONS, find_signature, type_of

# Functions that may have a value although an argument is null.
LAZY_FORMS: dict[str, Callable[[Sequence[CompiledPart]], Work]] = {
    "and": compile_and,
    "or": compile_or,
    "is null": compile_is_null,
    "in": compile_in,
    "nullif": compile_null_if,
    "least": compile_extreme(np.minimum),
    "greatest": compile_extreme(np.maximum),
    "concat": compile_concat,
}


@dataclass(frozen=True)
class Evaluator:
    """Computes an expression's values and null mask (None: no nulls)."""

    type: str
    names: tuple[str, ...]  # of the columns it reads, null masks included
    work: Work

    def __call__(self, columns: Mapping[str, Values], rows: int, faults: RowErrors) -> tuple[Values, Values | None]:
        with np.errstate(all="ignore"):  # kernels report row errors, and infinity is a value
            return self.evaluate_unguarded(columns, rows, faults)

    def evaluate_unguarded(
        self, columns: Mapping[str, Values], rows: int, faults: RowErrors
    ) -> tuple[Values, Values | None]:
        """Evaluate without setting numpy's error state: the caller does that once for many calls."""
        if not rows:
            return np.empty(0, dtype=_dtype(self.type)), None
        values, nulls = self.work(columns, rows, faults)
        if not isinstance(values, np.ndarray) or not values.ndim:
            values = np.full(rows, values, dtype=_dtype(self.type))
        if nulls is not None and np.ndim(nulls) == 0:
            nulls = np.full(rows, nulls)
        return values, nulls


def compile_evaluator(
    expression: Expression, schema: Schema, functions: Mapping[str, UserFunction] = NO_FUNCTIONS
) -> Evaluator:
    """Compile an expression over the columns of a schema; raise if it has no type."""
    type_of(expression, schema, functions)
    work, names, kind = _compile_part(expression, schema, functions)
    return Evaluator(kind, names, work)


def _dtype(kind: str) -> np.dtype[Any]:
    return DTYPES["int64" if kind == NULL_TYPE else kind]


def _compile_part(expression: Expression, schema: Schema, functions: Mapping[str, UserFunction]) -> CompiledPart:
    """Compile an expression and its parts into closures."""
    match expression:
        case Column(name):
            return CompiledPart(_compile_column(name), (name, name + NULLS_SUFFIX), schema[name])
        case Literal(value):
            kind = type_of(expression, schema)
            return CompiledPart(_compile_constant(value, kind), (), kind)
        case Cast(of, target):
            part = _cast_part(_compile_part(of, schema, functions), target)
            return (
                part
                if part.kind == target
                else _combine_parts([part], target, compile_strict(CASTS[part.kind, target], [part]))
            )
        case Case(branches, otherwise):
            tests = [_cast_part(_compile_part(condition, schema, functions), "bool") for condition, _ in branches]
            parts = [
                _compile_part(value, schema, functions) for value in (*(value for _, value in branches), otherwise)
            ]
            kind = common_type("case", tuple(part.kind for part in parts))
            *chosen, last = (_cast_part(part, kind) for part in parts)
            return _combine_parts(
                [*tests, *parts], kind, compile_case(list(zip(tests, chosen, strict=True)), last, _dtype(kind))
            )
        case Call(name, arguments):
            parts = [_compile_part(argument, schema, functions) for argument in arguments]
            argument_types, kind = find_signature(name, tuple(part.kind for part in parts), functions)
            parts = [_cast_part(part, target) for part, target in zip(parts, argument_types, strict=True)]
            return _combine_parts(parts, kind, _compile_call(name, parts, kind, functions))


def _combine_parts(parts: Sequence[CompiledPart], kind: str, work: Work) -> CompiledPart:
    """Combine parts into one that reads all of their columns."""
    return CompiledPart(work, tuple(dict.fromkeys(name for part in parts for name in part.names)), kind)


def _cast_part(part: CompiledPart, target: str) -> CompiledPart:
    """Convert a part implicitly: a null to any type, int64 to float64; return any other part unchanged."""
    if part.kind == NULL_TYPE:
        return CompiledPart(_compile_constant(None, target), (), target)
    if part.kind == "int64" and target == "float64":
        return CompiledPart(compile_strict(CASTS["int64", "float64"], [part]), part.names, target)
    return part


def _compile_call(name: str, parts: Sequence[CompiledPart], kind: str, functions: Mapping[str, UserFunction]) -> Work:
    if name in functions:
        return _compile_user_call(name, functions[name], parts)
    if name == "coalesce":
        return compile_coalesce(parts, _dtype(kind))
    kernel = BUILT_IN[name].kernel
    return (
        LAZY_FORMS[name](parts) if kernel is None else compile_strict(kernel(tuple(part.kind for part in parts)), parts)
    )


def _compile_column(name: str) -> Work:
    absent = name + NULLS_SUFFIX
    return lambda columns, rows, faults: (columns[name], columns.get(absent))


def _compile_constant(value: Value, kind: str) -> Work:
    scalar = np.array(EMPTY_VALUES.get(kind, 0) if value is None else value, dtype=_dtype(kind))
    return ConstantKernel((scalar if kind == "string" else scalar[()], np.True_ if value is None else None))


def _compile_user_call(name: str, function: UserFunction, parts: Sequence[CompiledPart]) -> Work:
    def work(columns: Mapping[str, Values], rows: int, faults: RowErrors) -> Vector:
        vectors = [part.work(columns, rows, faults) for part in parts]
        masks = [nulls for _, nulls in vectors if nulls is not None]
        nulls = np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*masks)), rows) if masks else None
        return function.values(name, faults, nulls, rows, [values for values, _ in vectors])

    return work
