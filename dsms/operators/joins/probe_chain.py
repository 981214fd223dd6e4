"""Probes windows with items: runs one operation of a dataflow expression over whole columns of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dsms.data.key_table import KeyTable
from dsms.dataflow import Operation
from dsms.operators.joins.state.event_order import Floats, RowEvents, signs_of
from dsms.operators.joins.state.intermediate_results import key_columns_of
from dsms.operators.joins.state.key_codes import Ints
from dsms.operators.joins.state.window_state import InputState, ProbeKeys, WindowState


@dataclass(frozen=True)
class JoinItems:
    """Partial join results: the input rows that each item consists of so far."""

    orders: Ints  # the order of the insertion or deletion that caused the item
    arrived: Floats
    positions: Mapping[str, Ints]  # row positions by alias
    turn: int = 1  # -1: the item has the opposite sign of its event, after the right side of a difference
    until: Ints | None = None  # eager only: when the first of its rows is deleted; `orders` are the last insertions

    @classmethod
    def of(cls, alias: str, events: RowEvents) -> JoinItems:
        """Wrap the events of an input, before the first operation."""
        return cls(events.orders, events.arrived, {alias: events.positions})

    def __len__(self) -> int:
        return len(self.orders)

    @property
    def signs(self) -> Ints:
        """+1 for insertions, -1 for deletions."""
        return signs_of(self.orders) * self.turn

    def pick(self, which: Ints) -> JoinItems:
        """Return the items at some indexes, with repetitions."""
        positions = {alias: rows.take(which) for alias, rows in self.positions.items()}
        until = None if self.until is None else self.until.take(which)
        return JoinItems(self.orders.take(which), self.arrived.take(which), positions, self.turn, until)


class WindowProber:
    """Runs operations against windows, which it finds by name."""

    def __init__(self, inputs: Mapping[str, InputState]) -> None:
        self.inputs = inputs
        self.sides: dict[str, WindowState] = {f"w_{alias}": side for alias, side in inputs.items()}

    def after(self, operation: Operation, items: JoinItems) -> JoinItems:
        """Return the items after an operation; each item sees the window as of its own order."""
        side = self.sides[operation.window]
        probes = self._probe_keys(operation, items)
        if operation.kind == "left":
            which, _ = side.find(operation.on, probes)
            unmatched = np.ones(len(items), dtype=bool)
            unmatched[which] = False
            return items.pick(np.flatnonzero(unmatched))
        if items.until is not None:
            return self._join_eagerly(operation, items, probes, items.until)
        if operation.kind == "join":
            which, rows = side.find(operation.on, probes)
            positions = {alias: own.take(which) for alias, own in items.positions.items()} | side.sources(rows)
            arrived = np.maximum(items.arrived.take(which), side.arrived(rows))
            return JoinItems(items.orders.take(which), arrived, positions, items.turn)
        items = self._pick_decisive(operation, items)
        which, rows = side.find(operation.on, self._probe_keys(operation, items))
        arrived = np.maximum(items.arrived[which], side.arrived(rows))
        return JoinItems(items.orders[which], arrived, side.sources(rows), -items.turn)

    def _probe_keys(self, operation: Operation, items: JoinItems) -> ProbeKeys:
        values = key_columns_of(self.inputs, items.positions, operation.on)
        known = None
        if len(items.positions) == 1:
            [(alias, rows)] = items.positions.items()
            known = self.inputs[alias].sorted(operation.on, rows)
        return ProbeKeys(values, items.orders, items.until, known)

    def _join_eagerly(self, operation: Operation, items: JoinItems, probes: ProbeKeys, until: Ints) -> JoinItems:
        """Join items eagerly with all rows, older and younger, whose lifetime overlaps that of the item."""
        side = self.inputs[operation.window.removeprefix("w_")]
        which, rows = side.find(operation.on, probes)
        inserted, deleted = side.lifetimes(rows)
        positions = {alias: own[which] for alias, own in items.positions.items()} | side.sources(rows)
        arrived = np.maximum(items.arrived[which], side.arrived(rows))
        return JoinItems(
            np.maximum(items.orders[which], inserted), arrived, positions, until=np.minimum(until[which], deleted)
        )

    def _pick_decisive(self, operation: Operation, items: JoinItems) -> JoinItems:
        """Return the items on the right side of a difference without an equal row in their own window.

        Of equal items with the same order, the first represents all.
        """
        own = self.sides[operation.own or operation.window]
        probes = self._probe_keys(operation, items)
        decides = np.ones(len(items), dtype=bool) if probes.values.nulls is None else ~probes.values.nulls
        which, _ = own.find(operation.on, probes)
        decides[which] = False
        items = items.pick(np.flatnonzero(decides))
        if not len(items):
            return items
        values = key_columns_of(self.inputs, items.positions, operation.on)
        slots = KeyTable().of([(items.orders, None), *((column, None) for column in values.columns)])
        return items.pick(np.sort(np.unique(slots, return_index=True)[1]))
