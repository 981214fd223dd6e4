"""How parts of an expression are put together: which nulls make it null, and which faults of a part count.

A part gives values and a null mask. Both are scalars while they are the same for all rows; no mask (None): no nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dsms.batch import Column
from dsms.expressions import strings
from dsms.expressions.arithmetic import Kernel
from dsms.expressions.faults import Faults

Vector = tuple[Any, Any]  # values, nulls
Work = Callable[[Mapping[str, Column], int, Faults], Vector]  # (columns, rows, faults)


class Constant:
    """The same whatever the rows."""

    def __init__(self, vector: Vector) -> None:
        self.vector = vector

    def __call__(self, columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        return self.vector


class Part(NamedTuple):
    """A part of an expression that may be worked out for some of the rows."""

    work: Work
    names: tuple[str, ...]  # of the columns it reads, null masks included
    kind: str  # the type of its values

    def at(self, columns: Mapping[str, Column], rows: int, positions: Column, faults: Faults) -> Vector:
        """Its values for the rows at these different positions, one for each."""
        if len(positions) == rows:
            return self.work(columns, rows, faults)
        inner = Faults()
        picked = {name: columns[name][positions] for name in self.names if name in columns}
        vector = self.work(picked, len(positions), inner)
        faults.move(inner, positions)
        return vector


def strict(kernel: Kernel, parts: Sequence[Part]) -> Work:
    """Null where an argument is."""
    works = [part.work for part in parts]
    if len(works) == 2:
        return _of_two(kernel, *parts)

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        values, nulls = [], None
        for part in works:
            value, absent = part(columns, rows, faults)
            values.append(value)
            if absent is not None:
                nulls = absent if nulls is None else nulls | absent
        return kernel(faults, nulls, *values), nulls

    return work


def _of_two(kernel: Kernel, left: Part, right: Part) -> Work:
    """The same, written out for what most expressions are made of."""
    one, other = left.work, right.work
    if isinstance(other, Constant) and other.vector[1] is None:
        return _with_constant(kernel, one, other.vector[0])

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        a, m = one(columns, rows, faults)
        b, n = other(columns, rows, faults)
        nulls = m if n is None else n if m is None else m | n
        return kernel(faults, nulls, a, b), nulls

    return work


def _with_constant(kernel: Kernel, one: Work, constant: Any) -> Work:
    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        a, nulls = one(columns, rows, faults)
        return kernel(faults, nulls, a, constant), nulls

    return work


def conjunction(parts: Sequence[Part]) -> Work:
    """`and` of SQL: false if a part is, else null if a part is; faults of a part count where none before is false."""

    first, *others = (part.work for part in parts)

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        a, m = first(columns, rows, faults)
        for each in others:
            inner = Faults()
            b, n = each(columns, rows, inner)
            if inner.found:
                faults.count(inner, a if m is None else a | m)
            if m is not None or n is not None:
                m, n = np.False_ if m is None else m, np.False_ if n is None else n
                m = (m & (b | n)) | (n & (a | m))
            a = np.logical_and(a, b)
        return a, m

    return work


def disjunction(parts: Sequence[Part]) -> Work:
    """`or` of SQL: true if a part is, else null if a part is; faults of a part count where none before is true."""

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        a, m = parts[0].work(columns, rows, faults)
        for part in parts[1:]:
            inner = Faults()
            b, n = part.work(columns, rows, inner)
            if inner.found:
                faults.count(inner, np.logical_not(a) if m is None else np.logical_not(a) | m)
            a, m = either(a, m, b, n)
        return a, m

    return work


def either(a: Any, m: Any, b: Any, n: Any) -> Vector:
    """`or` of two truths and their nulls."""
    if m is not None or n is not None:
        m, n = np.False_ if m is None else m, np.False_ if n is None else n
        m = (m & (np.logical_not(b) | n)) | (n & (np.logical_not(a) | m))
    return np.logical_or(a, b), m


def is_null(parts: Sequence[Part]) -> Work:
    """Whether there is no value: never null itself."""

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        _, nulls = parts[0].work(columns, rows, faults)
        return np.False_ if nulls is None else nulls, None

    return work


def member(parts: Sequence[Part]) -> Work:
    """Whether the first equals one of the others; null if that is not known."""

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        value, absent = parts[0].work(columns, rows, faults)
        found, nulls = np.False_, None
        for part in parts[1:]:
            candidate, missing = part.work(columns, rows, faults)
            if absent is not None:
                missing = absent if missing is None else missing | absent
            found, nulls = either(found, nulls, np.equal(value, candidate), missing)
        return found, nulls

    return work


def null_if(parts: Sequence[Part]) -> Work:
    """The first, unless it equals the second: then null."""
    first, second = parts

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        a, m = first.work(columns, rows, faults)
        b, n = second.work(columns, rows, faults)
        equal = np.equal(a, b)
        if n is not None:
            equal = equal & np.logical_not(n)
        return a, equal if m is None else equal | m

    return work


def extreme(choose: Callable[[Any, Any], Any]) -> Callable[[Sequence[Part]], Work]:
    """The least or greatest of those that are not null."""

    def made(parts: Sequence[Part]) -> Work:
        def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
            a, m = parts[0].work(columns, rows, faults)
            for part in parts[1:]:
                b, n = part.work(columns, rows, faults)
                # Of constant strings numpy would make its own kind, which it cannot order.
                best = choose(np.asarray(a, dtype=object), b) if part.kind == "string" else choose(a, b)
                if m is not None or n is not None:
                    m, n = np.False_ if m is None else m, np.False_ if n is None else n
                    best, m = np.where(m, b, np.where(n, a, best)), m & n
                a = best
            return a, m

        return work

    return made


def concatenated(parts: Sequence[Part]) -> Work:
    """Strings one after the other, nulls as empty ones."""

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
        text: Any = ""
        for part in parts:
            value, nulls = part.work(columns, rows, faults)
            text = strings.joined(text, value if nulls is None else np.where(nulls, np.array("", dtype=object), value))
        return text, None

    return work


def coalesce(parts: Sequence[Part], dtype: np.dtype[Any]) -> Work:
    """The first that is not null; the next one is worked out only where those before are null."""

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
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


def case(branches: Sequence[tuple[Part, Part]], otherwise: Part, dtype: np.dtype[Any]) -> Work:
    """The value beside the first condition that holds, each worked out only for the rows that come to it."""

    def work(columns: Mapping[str, Column], rows: int, faults: Faults) -> Vector:
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
