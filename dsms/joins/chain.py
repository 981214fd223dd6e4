"""Items on their way through the operations of a dataflow expression, whole columns of them at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dsms.dataflow import Operation
from dsms.joins.events import Events, Floats, signs
from dsms.joins.keys import Ints
from dsms.joins.results import values_of
from dsms.joins.sides import InputSide, Side, Wanted
from dsms.slots import Slots


@dataclass(frozen=True)
class Items:
    """What an event has become so far: the rows of inputs it is made of."""

    orders: Ints  # of the event
    arrived: Floats
    positions: Mapping[str, Ints]  # by alias
    turn: int = 1  # -1: it does the opposite of what the event did, as it takes away
    until: Ints | None = None  # ahead of time: when the first of its rows goes; `orders` are when the last came

    @classmethod
    def of(cls, alias: str, events: Events) -> Items:
        """Events before the first operation."""
        return cls(events.orders, events.arrived, {alias: events.positions})

    def __len__(self) -> int:
        return len(self.orders)

    @property
    def signs(self) -> Ints:
        """Whether they come or go."""
        return signs(self.orders) * self.turn

    def pick(self, which: Ints) -> Items:
        """Some of them, or some several times."""
        positions = {alias: rows.take(which) for alias, rows in self.positions.items()}
        until = None if self.until is None else self.until.take(which)
        return Items(self.orders.take(which), self.arrived.take(which), positions, self.turn, until)


class Windows:
    """The sides by the names that operations call them by."""

    def __init__(self, inputs: Mapping[str, InputSide]) -> None:
        self.inputs = inputs
        self.sides: dict[str, Side] = {f"w_{alias}": side for alias, side in inputs.items()}

    def after(self, operation: Operation, items: Items) -> Items:
        """What an operation makes of items; each sees a window as it was at the item's own moment."""
        side = self.sides[operation.window]
        wanted = self._wanted(operation, items)
        if operation.kind == "left":
            which, _ = side.find(operation.on, wanted)
            alone = np.ones(len(items), dtype=bool)
            alone[which] = False
            return items.pick(np.flatnonzero(alone))
        if items.until is not None:
            return self._overlapping(operation, items, wanted, items.until)
        if operation.kind == "join":
            which, rows = side.find(operation.on, wanted)
            positions = {alias: own.take(which) for alias, own in items.positions.items()} | side.sources(rows)
            arrived = np.maximum(items.arrived.take(which), side.arrived(rows))
            return Items(items.orders.take(which), arrived, positions, items.turn)
        items = self._decisive(operation, items)
        which, rows = side.find(operation.on, self._wanted(operation, items))
        arrived = np.maximum(items.arrived[which], side.arrived(rows))
        return Items(items.orders[which], arrived, side.sources(rows), -items.turn)

    def _wanted(self, operation: Operation, items: Items) -> Wanted:
        values = values_of(self.inputs, items.positions, operation.on)
        known = None
        if len(items.positions) == 1:
            [(alias, rows)] = items.positions.items()
            known = self.inputs[alias].sorted(operation.on, rows)
        return Wanted(values, items.orders, items.until, known)

    def _overlapping(self, operation: Operation, items: Items, wanted: Wanted, until: Ints) -> Items:
        """A join ahead of time: with all rows, older and younger, that are there at one moment with the item's own."""
        side = self.inputs[operation.window.removeprefix("w_")]
        which, rows = side.find(operation.on, wanted)
        born, died = side.lives(rows)
        positions = {alias: own[which] for alias, own in items.positions.items()} | side.sources(rows)
        arrived = np.maximum(items.arrived[which], side.arrived(rows))
        return Items(np.maximum(items.orders[which], born), arrived, positions, until=np.minimum(until[which], died))

    def _decisive(self, operation: Operation, items: Items) -> Items:
        """Of what takes away: the items before and after which nothing equal is there in their own window.

        Of equal ones at one moment the first stands for all.
        """
        own = self.sides[operation.own or operation.window]
        wanted = self._wanted(operation, items)
        decides = np.ones(len(items), dtype=bool) if wanted.values.nulls is None else ~wanted.values.nulls
        which, _ = own.find(operation.on, wanted)
        decides[which] = False
        items = items.pick(np.flatnonzero(decides))
        if not len(items):
            return items
        values = values_of(self.inputs, items.positions, operation.on)
        alike = Slots().of([(items.orders, None), *((column, None) for column in values.columns)])
        return items.pick(np.sort(np.unique(alike, return_index=True)[1]))
