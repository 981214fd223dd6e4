"""What an operation may look into: the window of an input, as of any moment that somebody may still ask for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsms.algebra import Window
from dsms.batch import NULLS, Batch, Column
from dsms.joins.buffer import Buffer
from dsms.joins.events import COMES, INSTANT, NEVER, Events, Floats, horizon
from dsms.joins.index import Index, in_order, unsorted
from dsms.joins.keys import Ints, Kind, Mask, Values, codes, plain
from dsms.joins.mortal import BORN
from dsms.joins.search import places
from dsms.operators.pending import BEGINNING
from dsms.schema import DTYPES, Schema

ARRIVED = ".arrived"


@dataclass(frozen=True)
class Layout:
    """What of an input is kept, and how its rows are compared with others."""

    alias: str
    port: int  # -1: it has none
    schema: Schema
    columns: tuple[str, ...]  # kept
    attributes: Mapping[str, tuple[str, Kind]]  # the column of each, and how it is compared


@dataclass(frozen=True)
class Wanted:
    """What items look for: their values, and the moments from which and up to which; nothing: at that moment."""

    values: Values
    orders: Ints
    until: Ints | None = None
    sorted: tuple[Ints, bool] | None = None  # codes and numbers as an index has them, and whether they are exact


class Side(ABC):
    """Rows with positions, found by their values and the moment."""

    def __init__(self) -> None:
        self._indexes: dict[tuple[str, ...], Index] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_indexes": {}}  # a text has another code in every process

    def find(self, on: tuple[str, ...], wanted: Wanted) -> tuple[Ints, Ints]:
        """The rows here that are equal to items on some attributes and there at their moments: which item, what row."""
        index = self._index(on)
        found = self._looked_at(index, wanted)
        which, rows, exact = self._searched(index, wanted) if found is None else found
        there = self.there(which, rows, wanted.orders)
        if there is not None:
            which, rows = which[there], rows[there]
        if exact and index.exact:
            return which, rows
        same = np.ones(len(which), dtype=bool)
        for theirs, ours in zip(wanted.values.columns, self.values(on, rows).columns, strict=True):
            same &= theirs[which] == ours
        return which[same], rows[same]

    def _looked_at(self, index: Index, wanted: Wanted) -> tuple[Ints, Ints, bool] | None:
        """The rows in the span with these values' codes, out of all that have them; None: these are not few."""
        if wanted.until is not None or wanted.values.nulls is not None:
            return None
        if wanted.sorted is None or wanted.sorted[1]:
            looked_up, exact = codes(wanted.values.columns, len(wanted.orders))
        else:  # codes that took time
            looked_up, exact = unsorted(wanted.sorted[0]), False
        candidates = index.candidates(looked_up)
        if candidates is None:
            return None
        parts: list[tuple[Ints, Ints]] = []
        for which, rows in candidates[0]:
            near = np.flatnonzero(self.near(which, rows, wanted.orders))
            parts.append((which.take(near), rows.take(near)))
        return *in_order(parts), exact and candidates[1]

    def _searched(self, index: Index, wanted: Wanted) -> tuple[Ints, Ints, bool]:
        """The same by searching for the first and the last of them."""
        low, high = self.span(wanted.orders)
        if wanted.until is not None:
            high = np.maximum(low, self.span(wanted.until)[1])
        if wanted.sorted is not None:
            return *index.find_sorted(wanted.sorted[0], low, high), wanted.sorted[1]
        looked_up, exact = codes(wanted.values.columns, len(wanted.orders))
        asked = None if wanted.values.nulls is None else np.flatnonzero(~wanted.values.nulls)
        return *index.find(looked_up, low, high, asked), exact

    def near(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        """Which of these rows are in the span of that item's moment; some may have been let go."""
        low, high = self.span(orders)
        near: Mask = (rows >= low[which]) & (rows < high[which])
        return near

    def sorted(self, on: tuple[str, ...], rows: Ints) -> tuple[Ints, bool] | None:
        """The keys of the rows that came last, sorted, where there is an index that has to sort them anyway."""
        if on not in self._indexes:
            return None
        index = self._index(on)
        latest = index.latest(rows)
        return None if latest is None else (latest, index.exact)

    def forget(self) -> None:
        """Build all indexes anew when they are needed: positions have changed, or other indexes are wanted."""
        self._indexes = {}

    @property
    @abstractmethod
    def range(self) -> tuple[int, int]:
        """The positions of the rows held."""

    @abstractmethod
    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        """Positions between which lie the rows that are there at these moments."""

    @abstractmethod
    def there(self, which: Ints, rows: Ints, orders: Ints) -> Mask | None:
        """Which of these rows in the span are there at the moment of that item; None: all."""

    @abstractmethod
    def values(self, on: tuple[str, ...], rows: Ints) -> Values:
        """What rows are compared by."""

    @abstractmethod
    def arrived(self, rows: Ints) -> Floats:
        """When the last of what rows are made of arrived."""

    @abstractmethod
    def sources(self, rows: Ints) -> dict[str, Ints]:
        """The rows of inputs that these rows are made of, by alias."""

    def _index(self, on: tuple[str, ...]) -> Index:
        """The index of these attributes, with all rows in it."""
        start, end = self.range
        index = self._indexes.get(on)
        if index is None or index.end < start:
            index = self._indexes[on] = Index(start)
        index.drop(start)
        if index.end < end:
            values = self.values(on, np.arange(index.end, end))
            some = None if values.nulls is None else np.flatnonzero(~values.nulls)
            index.add(*codes(values.columns, end - index.end), some)
        return index


class InputSide(Side):
    """The rows of one input."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        types = {name: DTYPES[layout.schema[name]] for name in layout.columns}
        self.rows = Buffer({**types, BORN: np.dtype(np.int64), ARRIVED: np.dtype(np.float64)})

    @property
    def range(self) -> tuple[int, int]:
        return self.rows.start, self.rows.end

    def values(self, on: tuple[str, ...], rows: Ints) -> Values:
        columns: list[Column] = []
        nulls: Mask | None = None
        for attribute in on:
            if attribute not in self.layout.attributes:  # one that all share, so that everything meets everything
                continue
            name, kind = self.layout.attributes[attribute]
            columns.append(plain(self.rows.take(name, rows), kind))
            if name + NULLS in self.rows:
                missing = self.rows.take(name + NULLS, rows)
                nulls = missing if nulls is None else nulls | missing
        return Values(columns, nulls)

    def arrived(self, rows: Ints) -> Floats:
        return self.rows.take(ARRIVED, rows)

    def sources(self, rows: Ints) -> dict[str, Ints]:
        return {self.layout.alias: rows}

    @abstractmethod
    def lasting(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        """Which of these rows, known to have come, have not gone at the moment of that item."""

    def append(self, batch: Batch, orders: Ints) -> None:
        """More rows."""
        self.rows.append({**batch.columns, BORN: orders, ARRIVED: batch.each("arrived")}, len(batch))

    def living(self, before: int) -> Events:
        """The rows that are there just before a moment, as if they came then."""
        rows = np.arange(*self.range)
        there = self.lasting(np.zeros(len(rows), dtype=np.int64), rows, np.array([before - 1]))
        return self._events(rows[there], np.full(np.count_nonzero(there), before - 1))

    def lives(self, rows: Ints) -> tuple[Ints, Ints]:
        """When rows come, and when they go if that is known as they come."""
        return self.rows.take(BORN, rows), np.full(len(rows), NEVER)

    def _events(self, positions: Ints, orders: Ints, arrived: Floats | None = None) -> Events:
        return Events(positions, orders, self.rows.take(ARRIVED, positions) if arrived is None else arrived)


class StoredSide(InputSide):
    """A relation that is always there and never changes."""

    def __init__(self, layout: Layout, rows: Batch) -> None:
        super().__init__(layout)
        self.append(rows, np.full(len(rows), horizon(BEGINNING)))
        self.rows.put(ARRIVED, np.arange(len(rows)), np.full(len(rows), -np.inf))  # nobody ever waits for it

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        return np.zeros_like(orders), np.full_like(orders, self.rows.end)

    def there(self, which: Ints, rows: Ints, orders: Ints) -> Mask | None:
        return None

    def lasting(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        return np.ones(len(rows), dtype=bool)


class FifoSide(InputSide):
    """A window on a stream: rows go in the order in which they came, so what is there lies in one piece.

    A row of a `rows` window goes just before the row comes that pushes it out; if both come at one instant it is never
    there. When rows go is worked out from when rows come, and not stored.
    """

    def __init__(self, layout: Layout, window: Window) -> None:
        super().__init__(layout)
        self.window = window
        self._lasts = (window.length + 1) * INSTANT - COMES  # in a range window, from coming to going
        self._new = 0  # rows from here on have not come yet
        self._old = 0  # rows from here on have not gone yet

    def record(self, batch: Batch) -> None:
        """Rows whose instants are complete."""
        self.append(batch, batch.each("ts") * INSTANT + COMES + self.layout.port)

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        low = self.low(orders)
        return low, np.maximum(low, self.rows.start + places(self.rows[BORN], orders))

    def near(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        if self.window.kind != "range":
            return super().near(which, rows, orders)
        born, moments = self.rows.take(BORN, rows), orders.take(which)
        near: Mask = (rows >= self.rows.start) & (born < moments) & (born > moments - self._lasts)
        return near

    def low(self, orders: Ints) -> Ints:
        """The position of the oldest row that is there at these moments."""
        born = self.rows[BORN]
        if self.window.kind == "unbounded":
            return np.full_like(orders, self.rows.start)
        if self.window.kind == "range":
            return self.rows.start + places(born, orders - self._lasts, after=True)
        pushed = self.rows.start + places(born, orders + COMES, after=True)
        return np.maximum(pushed - self.window.length, self.rows.start)

    def there(self, which: Ints, rows: Ints, orders: Ints) -> Mask | None:
        return None

    def lasting(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        return rows >= self.low(orders)[which]

    def births(self) -> Events:
        """The rows recorded since the last time."""
        new, self._new = self._new, self.rows.end
        positions = np.arange(new, self._new)
        orders = self.rows.part(BORN, new, self._new)
        events = self._events(positions, orders, self.rows.part(ARRIVED, new, self._new))
        if self.window.kind != "rows":
            return events
        return events.pick(np.flatnonzero(positions >= self.low(orders)))  # without those pushed out at once

    def deaths(self, before: int, arrived: float) -> Events:
        """The rows that go before a moment and have not gone yet; `arrived` is when it was known that time has come."""
        low = int(self.low(np.array([before - 1]))[0])
        positions = np.arange(self._old, max(low, self._old))
        self._old = max(low, self._old)
        born = self.rows.take(BORN, positions)
        if self.window.kind == "range":
            return self._events(positions, born + self._lasts, np.full(len(positions), arrived))
        pushing = positions + self.window.length
        orders = self.rows.take(BORN, pushing) - COMES
        events = self._events(positions, orders, self.rows.take(ARRIVED, pushing))
        return events.pick(np.flatnonzero(born < orders))

    def lives(self, rows: Ints) -> tuple[Ints, Ints]:
        born, never = super().lives(rows)
        return born, born + self._lasts if self.window.kind == "range" else never

    def deadline(self) -> int | None:
        """The timestamp at which the next row goes if time alone makes it."""
        if self.window.kind != "range" or self._old >= self.rows.end:
            return None
        return int(self.rows.part(BORN, self._old, self._old + 1)[0] + self._lasts) // INSTANT

    def release(self, before: int) -> None:
        """Let go what nobody can ask for who comes at this moment or later."""
        self._old = max(self._old, int(self.low(np.array([before - 1]))[0]))
        self.rows.drop(self._old)
