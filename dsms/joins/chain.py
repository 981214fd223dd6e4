"""Items on their way through the operations of a dataflow expression, whole columns of them at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dsms.dataflow import Operation
from dsms.joins.events import Events, Floats, signs
from dsms.joins.keys import Ints
from dsms.joins.results import values_of
from dsms.joins.sides import InputSide, Side
from dsms.slots import Slots


@dataclass(frozen=True)
class Items:
    """What an event has become so far: the rows of inputs it is made of."""

    orders: Ints  # of the event
    arrived: Floats
    positions: Mapping[str, Ints]  # by alias
    turn: int = 1  # -1: it does the opposite of what the event did, as it takes away

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
        positions = {alias: rows[which] for alias, rows in self.positions.items()}
        return replace(self, orders=self.orders[which], arrived=self.arrived[which], positions=positions)


class Windows:
    """The sides by the names that operations call them by."""

    def __init__(self, inputs: Mapping[str, InputSide]) -> None:
        self.inputs = inputs
        self.sides: dict[str, Side] = {f"w_{alias}": side for alias, side in inputs.items()}

    def after(self, operation: Operation, items: Items) -> Items:
        """What an operation makes of items; each sees a window as it was at the item's own moment."""
        side = self.sides[operation.window]
        values = values_of(self.inputs, items.positions, operation.on)
        if operation.kind == "left":
            which, _ = side.find(operation.on, values, items.orders)
            alone = np.ones(len(items), dtype=bool)
            alone[which] = False
            return items.pick(np.flatnonzero(alone))
        if operation.kind == "join":
            which, rows = side.find(operation.on, values, items.orders)
            positions = {alias: own[which] for alias, own in items.positions.items()} | side.sources(rows)
            arrived = np.maximum(items.arrived[which], side.arrived(rows))
            return Items(items.orders[which], arrived, positions, items.turn)
        items = self._decisive(operation, items)
        values = values_of(self.inputs, items.positions, operation.on)
        which, rows = side.find(operation.on, values, items.orders)
        arrived = np.maximum(items.arrived[which], side.arrived(rows))
        return Items(items.orders[which], arrived, side.sources(rows), -items.turn)

    def _decisive(self, operation: Operation, items: Items) -> Items:
        """Of what takes away: the items before and after which nothing equal is there in their own window.

        Of equal ones at one moment the first stands for all.
        """
        own = self.sides[operation.own or operation.window]
        values = values_of(self.inputs, items.positions, operation.on)
        decides = np.ones(len(items), dtype=bool) if values.nulls is None else ~values.nulls
        which, _ = own.find(operation.on, values, items.orders)
        decides[which] = False
        items = items.pick(np.flatnonzero(decides))
        if not len(items):
            return items
        values = values_of(self.inputs, items.positions, operation.on)
        alike = Slots().of([(items.orders, None), *((column, None) for column in values.columns)])
        return items.pick(np.sort(np.unique(alike, return_index=True)[1]))
