"""What a column is filled with, from the numbers of the rows alone: the same whatever rows are asked for together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.arrivals import Floats, draw
from dsms.batch import Column
from dsms.fates import spread_outputs

BLOCK = 8192  # rows drawn at a time, or somewhat less where they come in groups
VALUES, EARLIER = 16, 17  # what a draw is for
MICROSECONDS = 1e6  # in a second


class Fill(ABC):
    """The values of one column."""

    @abstractmethod
    def rows(self, first: int, instants: Floats) -> Column:
        """Those of the rows from number `first` on that are due at these instants."""

    def nulls(self) -> Fill | None:
        """Which rows have none, where that goes with the values; None: all have one."""
        return None


class Drawn(Fill):
    """Values by chance: drawn by blocks, each from the column's key and the number of the block alone."""

    def __init__(self, key: int, dtype: np.dtype[Any], size: int = BLOCK, use: int = VALUES) -> None:
        self._key, self._dtype, self._size, self._use = key, dtype, size, use
        self._recent: tuple[int, Column] = (-1, np.empty(0, dtype))

    def rows(self, first: int, instants: Floats) -> Column:
        found, done = np.empty(len(instants), self._dtype), 0
        while done < len(found):
            number, skipped = divmod(first + done, self._size)
            part = self._block(number)[skipped : skipped + len(found) - done]
            found[done : done + len(part)] = part
            done += len(part)
        return found

    def _block(self, number: int) -> Column:
        """One block; the last is kept for small requests that follow each other."""
        if self._recent[0] != number:
            self._recent = number, self._draw(draw(self._key, self._use, number), number)
        return self._recent[1]

    @abstractmethod
    def _draw(self, chance: np.random.Generator, number: int) -> Column:
        """The values of a block."""


class Uniform(Drawn):
    """Every value from `low` to below `high` as often: whole numbers, or any."""

    def __init__(self, key: int, dtype: np.dtype[Any], low: float, high: float) -> None:
        super().__init__(key, dtype)
        self._low, self._high = low, high

    def _draw(self, chance: np.random.Generator, number: int) -> Column:
        if self._dtype.kind == "i":
            return chance.integers(int(self._low), int(self._high), self._size)
        return self._low + (self._high - self._low) * chance.random(self._size)


class Normal(Drawn):
    """Values around a mean; whole numbers are the nearest to them."""

    def __init__(self, key: int, dtype: np.dtype[Any], mean: float, deviation: float) -> None:
        super().__init__(key, dtype)
        self._mean, self._deviation = mean, deviation

    def _draw(self, chance: np.random.Generator, number: int) -> Column:
        drawn = self._mean + self._deviation * chance.standard_normal(self._size)
        return np.rint(drawn) if self._dtype.kind == "i" else drawn


class Weighted(Drawn):
    """One of some values, each as often as its weight says."""

    def __init__(self, key: int, values: Column, weights: Floats) -> None:
        super().__init__(key, values.dtype)
        self._values, sums = values, np.cumsum(weights)
        self._below = sums / sums[-1]  # the chance of a value or one before it

    @classmethod
    def zipf(cls, key: int, keys: int, skew: float) -> Weighted:
        """Whole numbers from 0: the k-th, counted from 1, in proportion to 1 / k ** skew."""
        # One by one: numpy's own powers may differ in the last bit from machine to machine.
        return cls(key, np.arange(keys), np.array([rank**-skew for rank in range(1, keys + 1)]))

    def _draw(self, chance: np.random.Generator, number: int) -> Column:
        places = np.searchsorted(self._below, chance.random(self._size), side="right")
        return self._values[np.minimum(places, len(self._values) - 1)]


class Even(Drawn):
    """Of so many rows in a row each of 0, 1, … once, in an order by chance: what is below n is n of them exactly."""

    def __init__(self, key: int, dtype: np.dtype[Any], of: int) -> None:
        self._of, self._groups = of, max(1, BLOCK // of)
        super().__init__(key, dtype, of * self._groups)

    def _draw(self, chance: np.random.Generator, number: int) -> Column:
        return chance.permuted(np.tile(np.arange(self._of), (self._groups, 1)), axis=1).ravel()


class Share(Drawn):
    """True in this share of the rows exactly, as near as whole rows allow after every `of` of them; else by chance."""

    def __init__(self, key: int, share: float, of: int = 100) -> None:
        self._of, self._groups = of, max(1, BLOCK // of)
        self._each = round(share * of, 9)  # of a group; 0.29 of 100 are 29, not a hair less
        super().__init__(key, np.dtype(bool), of * self._groups)

    def _draw(self, chance: np.random.Generator, number: int) -> Column:
        counts = spread_outputs(number * self._groups, self._groups, self._each)
        return chance.permuted(np.arange(self._of) < counts[:, None], axis=1).ravel()


class Earlier(Drawn):
    """By how many microseconds, up to a most, a row's timestamp is before it is due."""

    def __init__(self, key: int, most: int) -> None:
        super().__init__(key, np.dtype(np.int64), use=EARLIER)
        self._most = most

    def _draw(self, chance: np.random.Generator, number: int) -> Column:
        return chance.integers(0, self._most, self._size, endpoint=True)


@dataclass(frozen=True)
class Due(Fill):
    """When a row is due, in whole microseconds from the beginning of the load."""

    earlier: Earlier | None = None

    def rows(self, first: int, instants: Floats) -> NDArray[np.int64]:
        due = np.rint(instants * MICROSECONDS).astype(np.int64)
        return due if self.earlier is None else np.maximum(due - self.earlier.rows(first, instants), 0)


@dataclass(frozen=True)
class Number(Fill):
    """The number of the row."""

    dtype: np.dtype[Any]

    def rows(self, first: int, instants: Floats) -> Column:
        return np.arange(first, first + len(instants)).astype(self.dtype, copy=False)


@dataclass(frozen=True)
class Constant(Fill):
    """The same in every row."""

    value: object
    dtype: np.dtype[Any]

    def rows(self, first: int, instants: Floats) -> Column:
        return np.full(len(instants), self.value, self.dtype)


@dataclass(frozen=True)
class Recorded(Fill):
    """A column of a trace, from its first row again after its last."""

    column: Column
    missing: Column | None = None

    def rows(self, first: int, instants: Floats) -> Column:
        return self.column[np.arange(first, first + len(instants)) % len(self.column)]

    def nulls(self) -> Fill | None:
        return None if self.missing is None else Recorded(self.missing)
