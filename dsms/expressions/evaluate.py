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
    Constant,
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
from dsms.expressions.signatures import NULL, common
from dsms.expressions.tree import Call, Case, Cast, Column, Expression, Literal, Value
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
        with np.errstate(all="ignore"):  # what has no value is a fault, and infinite is a value
            return self.quietly(columns, rows, faults)

    def quietly(self, columns: Mapping[str, Values], rows: int, faults: Faults) -> tuple[Values, Values | None]:
        """The same for a caller who has told numpy not to warn, once for many calls."""
        if not rows:
            return np.empty(0, dtype=_dtype(self.type)), None
        values, nulls = self.work(columns, rows, faults)
        if not isinstance(values, np.ndarray) or not values.ndim:
            values = np.full(rows, values, dtype=_dtype(self.type))
        if nulls is not None and np.ndim(nulls) == 0:
            nulls = np.full(rows, nulls)
        return values, nulls


def compiled(expression: Expression, schema: Schema, functions: Mapping[str, UserFunction] = NONE) -> Evaluator:
    """An expression over the columns of a schema, ready to be called batch after batch."""
    type_of(expression, schema, functions)  # refuses what has no type
    work, names, kind = _part(expression, schema, functions)
    return Evaluator(kind, names, work)


def _dtype(kind: str) -> np.dtype[Any]:
    return DTYPES["int64" if kind == NULL else kind]


def _part(expression: Expression, schema: Schema, functions: Mapping[str, UserFunction]) -> Part:
    """An expression and its parts as closures."""
    match expression:
        case Column(name):
            return Part(_column(name), (name, name + NULLS), schema[name])
        case Literal(value):
            kind = type_of(expression, schema)
            return Part(_constant(value, kind), (), kind)
        case Cast(of, wanted):
            part = _brought(_part(of, schema, functions), wanted)
            return part if part.kind == wanted else _joint([part], wanted, strict(CASTS[part.kind, wanted], [part]))
        case Case(branches, otherwise):
            tests = [_brought(_part(condition, schema, functions), "bool") for condition, _ in branches]
            parts = [_part(value, schema, functions) for value in (*(value for _, value in branches), otherwise)]
            kind = common("case", tuple(part.kind for part in parts))
            *chosen, last = (_brought(part, kind) for part in parts)
            return _joint([*tests, *parts], kind, case(list(zip(tests, chosen, strict=True)), last, _dtype(kind)))
        case Call(name, arguments):
            parts = [_part(argument, schema, functions) for argument in arguments]
            wanted_types, kind = signature(name, tuple(part.kind for part in parts), functions)
            parts = [_brought(part, wanted) for part, wanted in zip(parts, wanted_types, strict=True)]
            return _joint(parts, kind, _call(name, parts, kind, functions))


def _joint(parts: Sequence[Part], kind: str, work: Work) -> Part:
    """A part that reads what its own parts read."""
    return Part(work, tuple(dict.fromkeys(name for part in parts for name in part.names)), kind)


def _brought(part: Part, wanted: str) -> Part:
    """A part as one of a type that nulls and whole numbers are brought to without a cast."""
    if part.kind == NULL:
        return Part(_constant(None, wanted), (), wanted)
    if part.kind == "int64" and wanted == "float64":
        return Part(strict(CASTS["int64", "float64"], [part]), part.names, wanted)
    return part


def _call(name: str, parts: Sequence[Part], kind: str, functions: Mapping[str, UserFunction]) -> Work:
    if name in functions:
        return _user(name, functions[name], parts)
    if name == "coalesce":
        return coalesce(parts, _dtype(kind))
    kernel = BUILT_IN[name].kernel
    return FORMS[name](parts) if kernel is None else strict(kernel(tuple(part.kind for part in parts)), parts)


def _column(name: str) -> Work:
    absent = name + NULLS
    return lambda columns, rows, faults: (columns[name], columns.get(absent))


def _constant(value: Value, kind: str) -> Work:
    given = EMPTY.get(kind, 0) if value is None else value
    scalar = np.array(given, dtype=_dtype(kind))
    return Constant((scalar if kind == "string" else scalar[()], np.True_ if value is None else None))


def _user(name: str, function: UserFunction, parts: Sequence[Part]) -> Work:
    def work(columns: Mapping[str, Values], rows: int, faults: Faults) -> Vector:
        vectors = [part.work(columns, rows, faults) for part in parts]
        masks = [nulls for _, nulls in vectors if nulls is not None]
        nulls = np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*masks)), rows) if masks else None
        return function.values(name, faults, nulls, rows, [values for values, _ in vectors])

    return work
