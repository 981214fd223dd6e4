"""From items that are through to rows: in order, each change once, and only now with their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from dsms.batch import NULLS, Column
from dsms.joins.chain import Items
from dsms.joins.events import COMES, NEVER, instants, signs
from dsms.joins.keys import Ints
from dsms.joins.sides import InputSide
from dsms.schema import DTYPES

Emit = Literal["both", "births", "deaths"]


def merged(parts: Sequence[Items], net: bool, steady: bool) -> tuple[Ints, Items]:
    """All items in the order of instants, going before coming; and that order, as each now comes or goes.

    With `net` what comes and goes at one instant is left out: a difference may take away at once what it has just let
    through, and whoever reads the changes at that instant would be told to take back what is not there. With `steady`
    those of one instant are in the order of the rows they are made of, as plans that may change find them in several.
    """
    items = parts[0] if len(parts) == 1 else joined(parts)
    turned = items.orders
    if any(part.turn < 0 for part in parts):
        turned = np.concatenate([part.orders if part.turn > 0 else part.orders ^ COMES for part in parts])
    if net:
        left = _net(items, turned)
        items, turned = items.pick(left), turned[left]
    keys = _packed([turned, *(items.positions[alias] for alias in sorted(items.positions))]) if steady else [turned]
    if len(turned) and (len(keys) > 1 or np.any(keys[0][1:] < keys[0][:-1])):
        order = np.lexsort(keys[::-1])
        alike = turned is items.orders
        items = items.pick(order)
        turned = items.orders if alike else turned[order]
    return turned, items


def joined(parts: Sequence[Items]) -> Items:
    """Items one after the other; whether they turn is lost."""
    positions = {alias: np.concatenate([part.positions[alias] for part in parts]) for alias in parts[0].positions}
    orders = np.concatenate([part.orders for part in parts])
    return Items(orders, np.concatenate([part.arrived for part in parts]), positions)


def gathered(inputs: Mapping[str, InputSide], columns: Sequence[str], items: Items) -> dict[str, Column]:
    """The columns of items."""
    found: dict[str, Column] = {}
    for alias, positions in items.positions.items():
        names = [name for of, _, name in (qualified.partition(".") for qualified in columns) if of == alias]
        taken = inputs[alias].rows.takes(names, positions)
        found |= {f"{alias}.{name}": values for name, values in taken.items()}
    nulls = {name + NULLS: found[name + NULLS] for name in columns if name + NULLS in found}
    return {name: found[name] for name in columns} | {name: is_null for name, is_null in nulls.items() if is_null.any()}


def nothing(inputs: Mapping[str, InputSide], columns: Sequence[str]) -> dict[str, Column]:
    """The columns of no rows."""
    parts = [qualified.partition(".") for qualified in columns]
    kinds = [DTYPES[inputs[alias].layout.schema[name]] for alias, _, name in parts]
    return {qualified: np.empty(0, dtype=kind) for qualified, kind in zip(columns, kinds, strict=True)}


def _packed(keys: Sequence[Ints]) -> list[Ints]:
    """Numbers to sort by, the first first, as fewer ones that sort the same: one is sorted much faster than several."""
    packed: list[Ints] = []
    room = 1
    for key in keys:
        least = int(key.min(initial=NEVER))
        span = max(int(key.max(initial=least)) - least + 1, 1)
        if packed and room * span <= NEVER:
            packed[-1] = packed[-1] * span + (key - least)
            room *= span
        else:
            packed.append(key - least)
            room = span
    return packed


def _net(items: Items, turned: Ints) -> Ints:
    """The items that make a difference: of one result at one instant the last, unless it is undone in pairs."""
    ts, sign = instants(turned), signs(turned)
    both = np.intersect1d(ts[sign > 0], ts[sign < 0])
    doubtful = np.isin(ts, both)
    if not doubtful.any():
        return np.arange(len(ts))
    some = np.flatnonzero(doubtful)
    keys = [ts[some], *(rows[some] for rows in items.positions.values())]
    some = some[np.lexsort((items.orders[some], *keys))]
    keys = [ts[some], *(rows[some] for rows in items.positions.values())]
    new = np.ones(len(some), dtype=bool)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    first = np.flatnonzero(new)
    counts = np.diff(first, append=len(some))
    last = some[first + counts - 1]
    return np.sort(np.concatenate([np.flatnonzero(~doubtful), last[counts % 2 == 1]]))
