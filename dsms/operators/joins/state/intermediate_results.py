"""An intermediate window: stores the results of a subexpression as positions of the input rows they consist of."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from dsms.data.batch import Column
from dsms.operators.joins.state.column_buffer import MIN_CAPACITY_ROWS
from dsms.operators.joins.state.event_order import MAX_ORDER, Floats
from dsms.operators.joins.state.key_codes import Ints, KeyColumns, Mask
from dsms.operators.joins.state.retractable_rows import DELETED_AT, INSERTED_AT, KEY_ID, RetractableRows
from dsms.operators.joins.state.window_state import InputState, WindowState


class IntermediateState(WindowState):
    """Results of a subexpression, as the positions of their input rows.

    A result of joins alone lives as long as all its rows, so its deletion is not recorded. A result of a difference
    may be deleted and inserted again while its rows stay.
    """

    def __init__(self, inputs: Mapping[str, InputState], pure: bool, used: Collection[tuple[str, ...]]) -> None:
        super().__init__()
        self.inputs = inputs
        self.pure = pure
        self._used = tuple(used)  # the attribute sets that operations probe it by
        whole = np.dtype(np.int64)
        self._retractable = RetractableRows(dict.fromkeys(inputs, whole), {})
        self.rows = self._retractable.rows
        self._compact_above_rows = MIN_CAPACITY_ROWS

    @property
    def range(self) -> tuple[int, int]:
        return self.rows.start, self.rows.end

    def record(self, orders: Ints, signs: Ints, positions: Mapping[str, Ints]) -> None:
        """Record inserted and deleted results, in order."""
        inserted = signs > 0
        if self.pure:
            new = np.flatnonzero(inserted)
            lifetimes = {
                INSERTED_AT: orders[new],
                DELETED_AT: np.full(len(new), MAX_ORDER),
                KEY_ID: np.zeros(len(new), dtype=np.int64),
            }
            self.rows.append({**{alias: rows[new] for alias, rows in positions.items()}, **lifetimes}, len(new))
        else:
            self._retractable.record(positions, orders, inserted)
        for on in self._used:  # now: the input rows of these results may be freed later
            self._index(on)

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        return self._retractable.span(orders)

    def is_visible(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        if not self.pure:
            return self._retractable.is_visible(which, rows, orders)
        visible = np.ones(len(rows), dtype=bool)
        for alias, side in self.inputs.items():
            visible &= side.is_alive(which, self.rows.take(alias, rows), orders)
        return visible

    def values(self, on: tuple[str, ...], rows: Ints) -> KeyColumns:
        return key_columns_of(self.inputs, self.sources(rows), on)

    def arrived(self, rows: Ints) -> Floats:
        latest: Floats = np.max(
            [side.arrived(self.rows.take(alias, rows)) for alias, side in self.inputs.items()], axis=0
        )
        return latest

    def sources(self, rows: Ints) -> dict[str, Ints]:
        return {alias: self.rows.take(alias, rows) for alias in self.inputs}

    def release(self, before: int) -> None:
        """Free deleted results when there are enough of them."""
        if self._retractable.needs_compaction() or (self.pure and len(self.rows) > self._compact_above_rows):
            self.compact(before)

    def compact(self, before: int) -> None:
        """Keep only the results that exist just before an order."""
        rows = np.arange(*self.range)
        visible = self.is_visible(np.zeros(len(rows), dtype=np.int64), rows, np.array([before - 1]))
        self.rows.keep(rows[visible])
        self._rebuild()
        self._compact_above_rows = max(MIN_CAPACITY_ROWS, 2 * len(self.rows))

    def moved(self, alias: str, kept: Ints) -> None:
        """Update the positions of an input's rows after it kept only the rows `kept`; all results consist of those."""
        index = np.searchsorted(kept, self.rows[alias])
        self.rows.put(alias, np.arange(*self.range), self.inputs[alias].rows.start + index)
        self._rebuild()

    def _rebuild(self) -> None:
        if not self.pure:
            self._retractable.renumber()
        self.forget()
        for on in self._used:
            self._index(on)


def key_columns_of(inputs: Mapping[str, InputState], positions: Mapping[str, Ints], on: tuple[str, ...]) -> KeyColumns:
    """Return the key columns of items; each attribute comes from an input that has it."""
    columns: list[Column] = []
    nulls: Mask | None = None
    for attribute in on:
        for alias, rows in positions.items():
            if attribute in inputs[alias].layout.attributes:
                values = inputs[alias].values((attribute,), rows)
                columns += values.columns
                if values.nulls is not None:
                    nulls = values.nulls if nulls is None else nulls | values.nulls
                break
    return KeyColumns(columns, nulls)
