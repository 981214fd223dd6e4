"""Fills generate the values of one column from row numbers alone, so that any range of rows can be made anywhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.arrivals import Floats, block_generator
from dsms.data.batch import Column
from dsms.data.outcomes import spread_outputs_evenly

BLOCK_ROWS = 8192  # rows drawn at a time; somewhat fewer where rows form groups
VALUES_STREAM_ID, EARLIER_STREAM_ID = 16, 17  # separate random streams for values and for jitter
MICROS_PER_S = 1e6


class Fill(ABC):
    """Generates the values of one column."""

    @abstractmethod
    def rows(self, first: int, instants: Floats) -> Column:
        """The values of the rows from number `first` on, which are due at these instants."""

    def nulls(self) -> Fill | None:
        """A fill of booleans that says which rows are null; None if no row is."""
        return None


class RandomFill(Fill):
    """Random values, drawn in blocks; a block depends only on the column's key and the block's number."""

    def __init__(self, key: int, dtype: np.dtype[Any], size: int = BLOCK_ROWS, use: int = VALUES_STREAM_ID) -> None:
        self._key, self._dtype, self._size, self._use = key, dtype, size, use
        self._recent: tuple[int, Column] = (-1, np.empty(0, dtype))

    def rows(self, first: int, instants: Floats) -> Column:
        values, done = np.empty(len(instants), self._dtype), 0
        while done < len(values):
            number, skipped = divmod(first + done, self._size)
            part = self._block(number)[skipped : skipped + len(values) - done]
            values[done : done + len(part)] = part
            done += len(part)
        return values

    def _block(self, number: int) -> Column:
        """One block; the last is cached for small consecutive requests."""
        if self._recent[0] != number:
            self._recent = number, self._draw(block_generator(self._key, self._use, number), number)
        return self._recent[1]

    @abstractmethod
    def _draw(self, rng: np.random.Generator, number: int) -> Column:
        """Draw the values of a block."""


class UniformFill(RandomFill):
    """Uniform values from `low` to below `high`, whole numbers or floats."""

    def __init__(self, key: int, dtype: np.dtype[Any], low: float, high: float) -> None:
        super().__init__(key, dtype)
        self._low, self._high = low, high

    def _draw(self, rng: np.random.Generator, number: int) -> Column:
        if self._dtype.kind == "i":
            return rng.integers(int(self._low), int(self._high), self._size)
        return self._low + (self._high - self._low) * rng.random(self._size)


class NormalFill(RandomFill):
    """Normally distributed values, rounded for a column of whole numbers."""

    def __init__(self, key: int, dtype: np.dtype[Any], mean: float, deviation: float) -> None:
        super().__init__(key, dtype)
        self._mean, self._deviation = mean, deviation

    def _draw(self, rng: np.random.Generator, number: int) -> Column:
        drawn = self._mean + self._deviation * rng.standard_normal(self._size)
        return np.rint(drawn) if self._dtype.kind == "i" else drawn


class WeightedFill(RandomFill):
    """Values from a list, each with a probability proportional to its weight."""

    def __init__(self, key: int, values: Column, weights: Floats) -> None:
        super().__init__(key, values.dtype)
        self._values, sums = values, np.cumsum(weights)
        self._below = sums / sums[-1]  # cumulative probabilities

    @classmethod
    def zipf(cls, key: int, keys: int, skew: float) -> WeightedFill:
        """Whole numbers from 0: the k-th, counted from 1, in proportion to 1 / k ** skew."""
        # Python's power: numpy's may differ in the last bit between machines.
        return cls(key, np.arange(keys), np.array([rank**-skew for rank in range(1, keys + 1)]))

    def _draw(self, rng: np.random.Generator, number: int) -> Column:
        places = np.searchsorted(self._below, rng.random(self._size), side="right")
        return self._values[np.minimum(places, len(self._values) - 1)]


class PermutationFill(RandomFill):
    """Each of 0, 1, … `of` − 1 once in every group of `of` rows, in random order: exactly n of a group are below n."""

    def __init__(self, key: int, dtype: np.dtype[Any], of: int) -> None:
        self._of, self._groups = of, max(1, BLOCK_ROWS // of)
        super().__init__(key, dtype, of * self._groups)

    def _draw(self, rng: np.random.Generator, number: int) -> Column:
        return rng.permuted(np.tile(np.arange(self._of), (self._groups, 1)), axis=1).ravel()


class ShareFill(RandomFill):
    """True in exactly this share of the rows, after every `of` rows as near as whole rows allow; random in between."""

    def __init__(self, key: int, share: float, of: int = 100) -> None:
        self._of, self._groups = of, max(1, BLOCK_ROWS // of)
        self._each = round(share * of, 9)  # true rows of a group; rounded, as 0.29 * 100 is not quite 29
        super().__init__(key, np.dtype(bool), of * self._groups)

    def _draw(self, rng: np.random.Generator, number: int) -> Column:
        counts = spread_outputs_evenly(number * self._groups, self._groups, self._each)
        return rng.permuted(np.arange(self._of) < counts[:, None], axis=1).ravel()


class DelayFill(RandomFill):
    """Random jitter: by how many microseconds, up to a maximum, a row's timestamp is before it is due."""

    def __init__(self, key: int, max_us: int) -> None:
        super().__init__(key, np.dtype(np.int64), use=EARLIER_STREAM_ID)
        self._max_us = max_us

    def _draw(self, rng: np.random.Generator, number: int) -> Column:
        return rng.integers(0, self._max_us, self._size, endpoint=True)


@dataclass(frozen=True)
class DueTimeFill(Fill):
    """The instant at which a row is due, in whole microseconds, less a jitter."""

    earlier: DelayFill | None = None

    def rows(self, first: int, instants: Floats) -> NDArray[np.int64]:
        due = np.rint(instants * MICROS_PER_S).astype(np.int64)
        return due if self.earlier is None else np.maximum(due - self.earlier.rows(first, instants), 0)


@dataclass(frozen=True)
class RowNumberFill(Fill):
    """The number of the row."""

    dtype: np.dtype[Any]

    def rows(self, first: int, instants: Floats) -> Column:
        return np.arange(first, first + len(instants)).astype(self.dtype, copy=False)


@dataclass(frozen=True)
class ConstantFill(Fill):
    """The same value in every row."""

    value: object
    dtype: np.dtype[Any]

    def rows(self, first: int, instants: Floats) -> Column:
        return np.full(len(instants), self.value, self.dtype)


@dataclass(frozen=True)
class TraceFill(Fill):
    """The values of a trace's column, repeated after its last row."""

    column: Column
    missing: Column | None = None

    def rows(self, first: int, instants: Floats) -> Column:
        return self.column[np.arange(first, first + len(instants)) % len(self.column)]

    def nulls(self) -> Fill | None:
        return None if self.missing is None else TraceFill(self.missing)
