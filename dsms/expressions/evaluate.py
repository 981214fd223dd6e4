"""The values of an expression for the rows of a batch: compiled once to closures, then called with columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsms.batch import NULLS
from dsms.batch import Column as Values
from dsms.expressions.casts import CASTS
from dsms.expressions.faults import Faults
from dsms.expressions.functions import BUILT_IN, UserFunction
from dsms.expressions.lazy import (
    Part,
    Vector,
    Work,
    case,
    coalesce,
    concatenated,
    conjunction,
    disjunction,
    extreme,
    is_null,
    member,
    null_if,
    strict,
)
from dsms.expressions.signatures import NULL
from dsms.expressions.tree import Call, Case, Cast, Column, Expression, Literal, Value, columns_of
from dsms.expressions.types import NONE, signature, type_of
from dsms.expressions.user import EMPTY
from dsms.schema import DTYPES, Schema

FORMS: dict[str, Callable[[Sequence[Part]], Work]] = {
    "and": conjunction,
    "or": disjunction,
    "is null": is_null,
    "in": member,
    "nullif": null_if,
    "least": extreme(np.minimum),
    "greatest": extreme(np.maximum),
    "concat": concatenated,
}  # what is not null as soon as an argument is


@dataclass(frozen=True)
class Evaluator:
    """Gives an expression's values and its null mask (None: no nulls)."""

    type: str
    names: tuple[str, ...]  # of the columns it reads, null masks included: what it can be given at least
    work: Work

    def __call__(self, columns: Mapping[str, Values], rows: int, faults: Faults) -> tuple[Values, Values | None]:
        if not rows:
            return np.empty(0, dtype=_dtype(self.type)), None
        with np.errstate(all="ignore"):  # what has no value is a fault, and infinite is a value
            values, nulls = self.work(columns, rows, faults)
        if np.ndim(values) == 0:
            values = np.full(rows, values, dtype=_dtype(self.type))
        if nulls is not None and np.ndim(nulls) == 0:
            nulls = np.full(rows, nulls)
        return values, nulls


def compiled(expression: Expression, schema: Schema, functions: Mapping[str, UserFunction] = NONE) -> Evaluator:
    """An expression over the columns of a schema, ready to be called batch after batch."""
    kind = type_of(expression, schema, functions)
    part = _Compiler(schema, functions).part(expression, kind)
    return Evaluator(kind, part.names, part.work)


def _dtype(kind: str) -> np.dtype[Any]:
    return DTYPES["int64" if kind == NULL else kind]


@dataclass(frozen=True)
class _Compiler:
    schema: Schema
    functions: Mapping[str, UserFunction]

    def part(self, expression: Expression, wanted: str) -> Part:
        """An expression as values of a type that its own can be brought to."""
        names = sorted(columns_of(expression))
        kind = type_of(expression, self.schema, self.functions)
        if kind == NULL:
            return Part(_constant(None, wanted), ())
        part = Part(self._work(expression, kind), (*names, *(name + NULLS for name in names)))
        if kind == "int64" and wanted == "float64":
            return part._replace(work=strict(CASTS[kind, wanted], [part]))
        return part

    def _work(self, expression: Expression, kind: str) -> Work:
        match expression:
            case Column(name):
                return _column(name)
            case Literal(value):
                return _constant(value, kind)
            case Cast(of, wanted):
                given = type_of(of, self.schema, self.functions)
                part = self.part(of, wanted if given == NULL else given)
                return part.work if given in (wanted, NULL) else strict(CASTS[given, wanted], [part])
            case Case(branches, otherwise):
                parts = [(self.part(condition, "bool"), self.part(value, kind)) for condition, value in branches]
                return case(parts, self.part(otherwise, kind), DTYPES[kind])
            case Call(name, arguments):
                return self._call(name, arguments)

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> Work:
        types = tuple(type_of(part, self.schema, self.functions) for part in arguments)
        wanted, result = signature(name, types, self.functions)
        parts = [self.part(part, kind) for part, kind in zip(arguments, wanted, strict=True)]
        if name in self.functions:
            return _user(name, self.functions[name], parts)
        if name == "coalesce":
            return coalesce(DTYPES[result])(parts)
        kernel = BUILT_IN[name].kernel
        return FORMS[name](parts) if kernel is None else strict(kernel(wanted), parts)


def _column(name: str) -> Work:
    absent = name + NULLS
    return lambda columns, rows, faults: (columns[name], columns.get(absent))


def _constant(value: Value, kind: str) -> Work:
    given = EMPTY.get(kind, 0) if value is None else value
    scalar = np.array(given, dtype=_dtype(kind))
    vector: Vector = (scalar if kind == "string" else scalar[()], np.True_ if value is None else None)
    return lambda columns, rows, faults: vector


def _user(name: str, function: UserFunction, parts: Sequence[Part]) -> Work:
    def work(columns: Mapping[str, Values], rows: int, faults: Faults) -> Vector:
        vectors = [part.work(columns, rows, faults) for part in parts]
        masks = [nulls for _, nulls in vectors if nulls is not None]
        nulls = np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*masks)), rows) if masks else None
        return function.values(name, faults, nulls, rows, [values for values, _ in vectors])

    return work
