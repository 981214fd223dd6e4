"""The state of a join input: rows that operations find by key and by order, as of any order still in use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsms.algebra import Window
from dsms.data.batch import NULLS_SUFFIX, Batch, Column
from dsms.data.schema import DTYPES, Schema
from dsms.operators.instant_barrier import MIN_TIMESTAMP
from dsms.operators.joins.state.column_buffer import ColumnBuffer
from dsms.operators.joins.state.event_order import (
    INSERT_BIT,
    MAX_ORDER,
    ORDERS_PER_INSTANT,
    Floats,
    RowEvents,
    first_order_at,
)
from dsms.operators.joins.state.key_codes import Ints, KeyColumns, Kind, Mask, encode_keys, normalize_column
from dsms.operators.joins.state.key_index import HashIndex, merge_matches, restore_code_order
from dsms.operators.joins.state.retractable_rows import INSERTED_AT
from dsms.operators.joins.state.sorted_search import search_sorted

ARRIVED_AT = ".arrived"


@dataclass(frozen=True)
class InputLayout:
    """The stored columns of an input, and how its rows are compared with others."""

    alias: str
    port: int  # -1: a stored relation, which has no port
    schema: Schema
    columns: tuple[str, ...]  # stored
    attributes: Mapping[str, tuple[str, Kind]]  # the column of each, and the kind of comparison


@dataclass(frozen=True)
class ProbeKeys:
    """The keys that items look up, and the orders at which they do."""

    values: KeyColumns
    orders: Ints
    until: Ints | None = None  # eager only: look up from `orders` until these; None: at `orders`
    sorted: tuple[Ints, bool] | None = None  # sorted index entries of the keys, and whether their codes are exact


class WindowState(ABC):
    """Rows that are found by their key and by the order at which they exist."""

    def __init__(self) -> None:
        self._indexes: dict[tuple[str, ...], HashIndex] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_indexes": {}}  # the hash of a string differs between processes

    def find(self, on: tuple[str, ...], probes: ProbeKeys) -> tuple[Ints, Ints]:
        """Return (index of the probe, row) of the rows with equal attributes that exist at the probe's order."""
        index = self._index(on)
        matches = self._scan_candidates(index, probes)
        which, rows, exact = self._search_spans(index, probes) if matches is None else matches
        visible = self.is_visible(which, rows, probes.orders)
        if visible is not None:
            which, rows = which[visible], rows[visible]
        if exact and index.exact:
            return which, rows
        same = np.ones(len(which), dtype=bool)
        for theirs, ours in zip(probes.values.columns, self.values(on, rows).columns, strict=True):
            same &= theirs[which] == ours
        return which[same], rows[same]

    def _scan_candidates(self, index: HashIndex, probes: ProbeKeys) -> tuple[Ints, Ints, bool] | None:
        """Find the rows by a scan of all rows with the keys' codes; None: there are too many."""
        if probes.until is not None or probes.values.nulls is not None:
            return None
        if probes.sorted is None or probes.sorted[1]:
            codes, exact = encode_keys(probes.values.columns, len(probes.orders))
        else:  # reuse codes that were expensive to compute
            codes, exact = restore_code_order(probes.sorted[0]), False
        candidates = index.candidates(codes)
        if candidates is None:
            return None
        parts: list[tuple[Ints, Ints]] = []
        for which, rows in candidates[0]:
            near = np.flatnonzero(self.near(which, rows, probes.orders))
            parts.append((which.take(near), rows.take(near)))
        return *merge_matches(parts), exact and candidates[1]

    def _search_spans(self, index: HashIndex, probes: ProbeKeys) -> tuple[Ints, Ints, bool]:
        """Find the rows by a search for the first and last row of each key in the span."""
        low, high = self.span(probes.orders)
        if probes.until is not None:
            high = np.maximum(low, self.span(probes.until)[1])
        if probes.sorted is not None:
            return *index.find_sorted(probes.sorted[0], low, high), probes.sorted[1]
        codes, exact = encode_keys(probes.values.columns, len(probes.orders))
        non_null = None if probes.values.nulls is None else np.flatnonzero(~probes.values.nulls)
        return *index.find(codes, low, high, non_null), exact

    def near(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        """Return which of these rows, dropped or not, are in the span of their item's order."""
        low, high = self.span(orders)
        near: Mask = (rows >= low[which]) & (rows < high[which])
        return near

    def sorted(self, on: tuple[str, ...], rows: Ints) -> tuple[Ints, bool] | None:
        """Return the sorted index entries of the rows inserted last, if an index has sorted them already."""
        if on not in self._indexes:
            return None
        index = self._index(on)
        latest = index.latest(rows)
        return None if latest is None else (latest, index.exact)

    def forget(self) -> None:
        """Drop all indexes; each is rebuilt when it is needed."""
        self._indexes = {}

    @property
    @abstractmethod
    def range(self) -> tuple[int, int]:
        """The first and the end position of the rows."""

    @abstractmethod
    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        """Return the first and the end position of the rows that may exist at these orders."""

    @abstractmethod
    def is_visible(self, which: Ints, rows: Ints, orders: Ints) -> Mask | None:
        """Return which of these rows in the span exist at their item's order; None: all."""

    @abstractmethod
    def values(self, on: tuple[str, ...], rows: Ints) -> KeyColumns:
        """Return the key columns of rows."""

    @abstractmethod
    def arrived(self, rows: Ints) -> Floats:
        """Return the arrival time of the last input row that each row consists of."""

    @abstractmethod
    def sources(self, rows: Ints) -> dict[str, Ints]:
        """Return the input rows that these rows consist of, by alias."""

    def _index(self, on: tuple[str, ...]) -> HashIndex:
        """Return the index on these attributes, updated with all rows."""
        start, end = self.range
        index = self._indexes.get(on)
        if index is None or index.end < start:
            index = self._indexes[on] = HashIndex(start)
        index.drop(start)
        if index.end < end:
            values = self.values(on, np.arange(index.end, end))
            non_null = None if values.nulls is None else np.flatnonzero(~values.nulls)
            index.add(*encode_keys(values.columns, end - index.end), non_null)
        return index


class InputState(WindowState):
    """The rows of one input."""

    def __init__(self, layout: InputLayout) -> None:
        super().__init__()
        self.layout = layout
        types = {name: DTYPES[layout.schema[name]] for name in layout.columns}
        self.rows = ColumnBuffer({**types, INSERTED_AT: np.dtype(np.int64), ARRIVED_AT: np.dtype(np.float64)})

    @property
    def range(self) -> tuple[int, int]:
        return self.rows.start, self.rows.end

    def values(self, on: tuple[str, ...], rows: Ints) -> KeyColumns:
        columns: list[Column] = []
        nulls: Mask | None = None
        for attribute in on:
            if attribute not in self.layout.attributes:  # the common attribute of a cross product
                continue
            name, kind = self.layout.attributes[attribute]
            columns.append(normalize_column(self.rows.take(name, rows), kind))
            if name + NULLS_SUFFIX in self.rows:
                missing = self.rows.take(name + NULLS_SUFFIX, rows)
                nulls = missing if nulls is None else nulls | missing
        return KeyColumns(columns, nulls)

    def arrived(self, rows: Ints) -> Floats:
        return self.rows.take(ARRIVED_AT, rows)

    def sources(self, rows: Ints) -> dict[str, Ints]:
        return {self.layout.alias: rows}

    @abstractmethod
    def is_alive(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        """Return which of these inserted rows are not deleted at their item's order."""

    def append(self, batch: Batch, orders: Ints) -> None:
        """Append rows with their orders of insertion."""
        self.rows.append({**batch.columns, INSERTED_AT: orders, ARRIVED_AT: batch.each("arrived")}, len(batch))

    def live_events(self, before: int) -> RowEvents:
        """Return the rows that exist just before an order, as if they were inserted then."""
        rows = np.arange(*self.range)
        visible = self.is_alive(np.zeros(len(rows), dtype=np.int64), rows, np.array([before - 1]))
        return self._events(rows[visible], np.full(np.count_nonzero(visible), before - 1))

    def lifetimes(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the orders of insertion and of deletion of rows; `MAX_ORDER`: the deletion is not known yet."""
        return self.rows.take(INSERTED_AT, rows), np.full(len(rows), MAX_ORDER)

    def _events(self, positions: Ints, orders: Ints, arrived: Floats | None = None) -> RowEvents:
        return RowEvents(positions, orders, self.rows.take(ARRIVED_AT, positions) if arrived is None else arrived)


class StaticState(InputState):
    """A stored relation, which never changes."""

    def __init__(self, layout: InputLayout, rows: Batch) -> None:
        super().__init__(layout)
        self.append(rows, np.full(len(rows), first_order_at(MIN_TIMESTAMP)))
        self.rows.put(ARRIVED_AT, np.arange(len(rows)), np.full(len(rows), -np.inf))  # never delays a result

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        return np.zeros_like(orders), np.full_like(orders, self.rows.end)

    def is_visible(self, which: Ints, rows: Ints, orders: Ints) -> Mask | None:
        return None

    def is_alive(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        return np.ones(len(rows), dtype=bool)


class FifoWindowState(InputState):
    """A window over a stream: rows leave in the order in which they entered, so its contents are a range of positions.

    In a `rows` window a row leaves just before the row enters that evicts it; if both enter at one instant, it is never
    visible. The orders of deletion are computed from the orders of insertion, not stored.
    """

    def __init__(self, layout: InputLayout, window: Window) -> None:
        super().__init__(layout)
        self.window = window
        self._lifetime = (window.length + 1) * ORDERS_PER_INSTANT - INSERT_BIT  # in orders, for a range window
        self._new = 0  # rows from here on are not returned by `insertions` yet
        self._old = 0  # rows from here on are not deleted yet

    def record(self, batch: Batch) -> None:
        """Record rows of complete instants."""
        self.append(batch, batch.each("ts") * ORDERS_PER_INSTANT + INSERT_BIT + self.layout.port)

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        low = self.low(orders)
        return low, np.maximum(low, self.rows.start + search_sorted(self.rows[INSERTED_AT], orders))

    def near(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        if self.window.kind != "range":
            return super().near(which, rows, orders)
        inserted, at = self.rows.take(INSERTED_AT, rows), orders.take(which)
        near: Mask = (rows >= self.rows.start) & (inserted < at) & (inserted > at - self._lifetime)
        return near

    def low(self, orders: Ints) -> Ints:
        """Return the position of the oldest row that exists at each order."""
        inserted = self.rows[INSERTED_AT]
        if self.window.kind == "unbounded":
            return np.full_like(orders, self.rows.start)
        if self.window.kind == "range":
            return self.rows.start + search_sorted(inserted, orders - self._lifetime, after=True)
        end = self.rows.start + search_sorted(inserted, orders + INSERT_BIT, after=True)
        return np.maximum(end - self.window.length, self.rows.start)

    def is_visible(self, which: Ints, rows: Ints, orders: Ints) -> Mask | None:
        return None

    def is_alive(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        return rows >= self.low(orders)[which]

    def insertions(self) -> RowEvents:
        """Return the rows recorded since the last call."""
        new, self._new = self._new, self.rows.end
        positions = np.arange(new, self._new)
        orders = self.rows.part(INSERTED_AT, new, self._new)
        events = self._events(positions, orders, self.rows.part(ARRIVED_AT, new, self._new))
        if self.window.kind != "rows":
            return events
        return events.pick(np.flatnonzero(positions >= self.low(orders)))  # without rows evicted at the same instant

    def deletions(self, before: int, arrived: float) -> RowEvents:
        """Return the rows that leave before an order since the last call; `arrived` is when the watermark arrived."""
        low = int(self.low(np.array([before - 1]))[0])
        positions = np.arange(self._old, max(low, self._old))
        self._old = max(low, self._old)
        inserted = self.rows.take(INSERTED_AT, positions)
        if self.window.kind == "range":
            return self._events(positions, inserted + self._lifetime, np.full(len(positions), arrived))
        evicting = positions + self.window.length
        orders = self.rows.take(INSERTED_AT, evicting) - INSERT_BIT
        events = self._events(positions, orders, self.rows.take(ARRIVED_AT, evicting))
        return events.pick(np.flatnonzero(inserted < orders))

    def lifetimes(self, rows: Ints) -> tuple[Ints, Ints]:
        inserted, never = super().lifetimes(rows)
        return inserted, inserted + self._lifetime if self.window.kind == "range" else never

    def deadline(self) -> int | None:
        """Return the timestamp at which the next row leaves without new input; None: never."""
        if self.window.kind != "range" or self._old >= self.rows.end:
            return None
        return int(self.rows.part(INSERTED_AT, self._old, self._old + 1)[0] + self._lifetime) // ORDERS_PER_INSTANT

    def release(self, before: int) -> None:
        """Free the rows that no item of this order or later can see."""
        self._old = max(self._old, int(self.low(np.array([before - 1]))[0]))
        self.rows.drop(self._old)
