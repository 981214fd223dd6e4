"""Combines the parts of an expression by SQL's null rules: which nulls make the result null, which row errors count.

A part returns values and a null mask. Both are scalars if they are the same for all rows; no mask (None): no nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dsms.data.batch import Column
from dsms.expressions import strings
from dsms.expressions.arithmetic import Kernel
from dsms.expressions.row_errors import RowErrors

Vector = tuple[Any, Any]  # values, nulls
Work = Callable[[Mapping[str, Column], int, RowErrors], Vector]  # (columns, rows, faults)


class ConstantKernel:
    """Returns the same value for all rows."""

    def __init__(self, vector: Vector) -> None:
        self.vector = vector

    def __call__(self, columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        return self.vector


class CompiledPart(NamedTuple):
    """A compiled part of an expression, which can be evaluated for some of the rows only."""

    work: Work
    names: tuple[str, ...]  # of the columns it reads, null masks included
    kind: str  # the type of its values

    def at(self, columns: Mapping[str, Column], rows: int, positions: Column, faults: RowErrors) -> Vector:
        """Evaluate the rows at some distinct positions, one value for each."""
        if len(positions) == rows:
            return self.work(columns, rows, faults)
        inner = RowErrors()
        picked = {name: columns[name][positions] for name in self.names if name in columns}
        vector = self.work(picked, len(positions), inner)
        faults.move(inner, positions)
        return vector


def compile_strict(kernel: Kernel, parts: Sequence[CompiledPart]) -> Work:
    """Compile a call that is null where any argument is null."""
    works = [part.work for part in parts]
    if len(works) == 2:
        return _compile_binary(kernel, *parts)

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        values, nulls = [], None
        for part in works:
            value, absent = part(columns, rows, faults)
            values.append(value)
            if absent is not None:
                nulls = absent if nulls is None else nulls | absent
        return kernel(faults, nulls, *values), nulls

    return work


def _compile_binary(kernel: Kernel, left: CompiledPart, right: CompiledPart) -> Work:
    """Compile a strict call of two arguments, the most frequent case."""
    one, other = left.work, right.work
    if isinstance(other, ConstantKernel) and other.vector[1] is None:
        return _compile_with_constant(kernel, one, other.vector[0])

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        a, m = one(columns, rows, faults)
        b, n = other(columns, rows, faults)
        nulls = m if n is None else n if m is None else m | n
        return kernel(faults, nulls, a, b), nulls

    return work


def _compile_with_constant(kernel: Kernel, one: Work, constant: Any) -> Work:
    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        a, nulls = one(columns, rows, faults)
        return kernel(faults, nulls, a, constant), nulls

    return work


def compile_and(parts: Sequence[CompiledPart]) -> Work:
    """Compile SQL's `and`: false if a part is, else null if one is; a part's errors count if none before is false."""
    first, *others = (part.work for part in parts)

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        a, m = first(columns, rows, faults)
        for each in others:
            inner = RowErrors()
            b, n = each(columns, rows, inner)
            if inner.found:
                faults.count(inner, a if m is None else a | m)
            if m is not None or n is not None:
                m, n = np.False_ if m is None else m, np.False_ if n is None else n
                m = (m & (b | n)) | (n & (a | m))
            a = np.logical_and(a, b)
        return a, m

    return work


def compile_or(parts: Sequence[CompiledPart]) -> Work:
    """Compile SQL's `or`: true if a part is, else null if one is; a part's errors count if none before is true."""

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        a, m = parts[0].work(columns, rows, faults)
        for part in parts[1:]:
            inner = RowErrors()
            b, n = part.work(columns, rows, inner)
            if inner.found:
                faults.count(inner, np.logical_not(a) if m is None else np.logical_not(a) | m)
            a, m = or_vectors(a, m, b, n)
        return a, m

    return work


def or_vectors(a: Any, m: Any, b: Any, n: Any) -> Vector:
    """Return SQL's `or` of two boolean vectors with null masks."""
    if m is not None or n is not None:
        m, n = np.False_ if m is None else m, np.False_ if n is None else n
        m = (m & (np.logical_not(b) | n)) | (n & (np.logical_not(a) | m))
    return np.logical_or(a, b), m


def compile_is_null(parts: Sequence[CompiledPart]) -> Work:
    """Compile `is null`, which is never null itself."""

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        _, nulls = parts[0].work(columns, rows, faults)
        return np.False_ if nulls is None else nulls, None

    return work


def compile_in(parts: Sequence[CompiledPart]) -> Work:
    """Compile `in`: whether the first part equals one of the others; null if that is unknown."""

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        value, absent = parts[0].work(columns, rows, faults)
        found, nulls = np.False_, None
        for part in parts[1:]:
            candidate, missing = part.work(columns, rows, faults)
            if absent is not None:
                missing = absent if missing is None else missing | absent
            found, nulls = or_vectors(found, nulls, np.equal(value, candidate), missing)
        return found, nulls

    return work


def compile_null_if(parts: Sequence[CompiledPart]) -> Work:
    """Compile `nullif`: the first part, or null if it equals the second."""
    first, second = parts

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        a, m = first.work(columns, rows, faults)
        b, n = second.work(columns, rows, faults)
        equal = np.equal(a, b)
        if n is not None:
            equal = equal & np.logical_not(n)
        return a, equal if m is None else equal | m

    return work


def compile_extreme(choose: Callable[[Any, Any], Any]) -> Callable[[Sequence[CompiledPart]], Work]:
    """Return the compiler of `least` or `greatest`: the extreme of the parts that are not null."""

    def compile_parts(parts: Sequence[CompiledPart]) -> Work:
        def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
            a, m = parts[0].work(columns, rows, faults)
            for part in parts[1:]:
                b, n = part.work(columns, rows, faults)
                # numpy would convert constant strings to its own string type, which it cannot compare.
                best = choose(np.asarray(a, dtype=object), b) if part.kind == "string" else choose(a, b)
                if m is not None or n is not None:
                    m, n = np.False_ if m is None else m, np.False_ if n is None else n
                    best, m = np.where(m, b, np.where(n, a, best)), m & n
                a = best
            return a, m

        return work

    return compile_parts


def compile_concat(parts: Sequence[CompiledPart]) -> Work:
    """Compile `concat`: the concatenated strings; a null counts as an empty string."""

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        text: Any = ""
        for part in parts:
            value, nulls = part.work(columns, rows, faults)
            text = strings.concat(text, value if nulls is None else np.where(nulls, np.array("", dtype=object), value))
        return text, None

    return work


def compile_coalesce(parts: Sequence[CompiledPart], dtype: np.dtype[Any]) -> Work:
    """Compile `coalesce`: the first part that is not null; each is evaluated only where all before it are null."""

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        a, m = parts[0].work(columns, rows, faults)
        if m is None:
            return a, None
        values, nulls = np.empty(rows, dtype=dtype), np.empty(rows, dtype=bool)
        values[:], nulls[:] = a, m
        for part in parts[1:]:
            left = nulls.nonzero()[0]
            if len(left):
                value, absent = part.at(columns, rows, left, faults)
                values[left], nulls[left] = value, absent is not None and absent
        return values, nulls if nulls.any() else None

    return work


def compile_case(
    branches: Sequence[tuple[CompiledPart, CompiledPart]], otherwise: CompiledPart, dtype: np.dtype[Any]
) -> Work:
    """Compile `case`: the value of the first true condition; each part is evaluated only for the rows that reach it."""

    def work(columns: Mapping[str, Column], rows: int, faults: RowErrors) -> Vector:
        values = np.full(rows, "" if dtype.hasobject else 0, dtype=dtype)
        nulls = np.zeros(rows, dtype=bool)
        left = np.arange(rows)
        for condition, value in (*branches, (None, otherwise)):
            if not len(left):
                break
            taken = np.ones(len(left), dtype=bool)
            if condition is not None:
                holds, unknown = condition.at(columns, rows, left, faults)
                taken &= holds if unknown is None else holds & np.logical_not(unknown)
            here = left[taken]
            if len(here):
                result, absent = value.at(columns, rows, here, faults)
                values[here], nulls[here] = result, absent is not None and absent
            left = left[~taken]
        return values, nulls if nulls.any() else None

    return work
