"""Turns the items that passed all join operations into output rows: merges, sorts, and gathers their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, Column
from dsms.data.schema import DTYPES
from dsms.operators.joins.probe_chain import JoinItems
from dsms.operators.joins.state.event_order import INSERT_BIT, MAX_ORDER, signs_of, timestamps_of
from dsms.operators.joins.state.key_codes import Ints
from dsms.operators.joins.state.window_state import InputState

Emit = Literal["both", "insertions", "deletions"]


def merge_items(parts: Sequence[JoinItems], net: bool, steady: bool) -> tuple[Ints, JoinItems]:
    """Merge items in the order of instants, deletions first; return their output orders and the items.

    With `net`, results that are inserted and deleted at one instant cancel out: a difference may delete at once what
    it has just emitted, and its reader would have to retract a row it does not hold. With `steady`, the items of one
    instant are sorted by the rows they consist of, because different plans find them in different orders.
    """
    items = parts[0] if len(parts) == 1 else concat_items(parts)
    orders = items.orders
    if any(part.turn < 0 for part in parts):
        orders = np.concatenate([part.orders if part.turn > 0 else part.orders ^ INSERT_BIT for part in parts])
    if net:
        left = _cancel_opposites(items, orders)
        items, orders = items.pick(left), orders[left]
    keys = _pack_keys([orders, *(items.positions[alias] for alias in sorted(items.positions))]) if steady else [orders]
    if len(orders) and (len(keys) > 1 or np.any(keys[0][1:] < keys[0][:-1])):
        order = np.lexsort(keys[::-1])
        is_same = orders is items.orders
        items = items.pick(order)
        orders = items.orders if is_same else orders[order]
    return orders, items


def concat_items(parts: Sequence[JoinItems]) -> JoinItems:
    """Concatenate items; the result has no `turn`."""
    positions = {alias: np.concatenate([part.positions[alias] for part in parts]) for alias in parts[0].positions}
    orders = np.concatenate([part.orders for part in parts])
    return JoinItems(orders, np.concatenate([part.arrived for part in parts]), positions)


def gather_columns(inputs: Mapping[str, InputState], columns: Sequence[str], items: JoinItems) -> dict[str, Column]:
    """Gather the output columns of items from the rows they consist of."""
    gathered: dict[str, Column] = {}
    for alias, positions in items.positions.items():
        names = [name for of, _, name in (qualified.partition(".") for qualified in columns) if of == alias]
        taken = inputs[alias].rows.takes(names, positions)
        gathered |= {f"{alias}.{name}": values for name, values in taken.items()}
    nulls = {name + NULLS_SUFFIX: gathered[name + NULLS_SUFFIX] for name in columns if name + NULLS_SUFFIX in gathered}
    filled = {name: is_null for name, is_null in nulls.items() if is_null.any()}
    return {name: gathered[name] for name in columns} | filled


def empty_columns(inputs: Mapping[str, InputState], columns: Sequence[str]) -> dict[str, Column]:
    """Return the output columns with zero rows."""
    parts = [qualified.partition(".") for qualified in columns]
    kinds = [DTYPES[inputs[alias].layout.schema[name]] for alias, _, name in parts]
    return {qualified: np.empty(0, dtype=kind) for qualified, kind in zip(columns, kinds, strict=True)}


def _pack_keys(keys: Sequence[Ints]) -> list[Ints]:
    """Pack sort keys, the most significant first, into fewer keys of the same order: one key sorts much faster."""
    packed: list[Ints] = []
    room = 1
    for key in keys:
        least = int(key.min(initial=MAX_ORDER))
        span = max(int(key.max(initial=least)) - least + 1, 1)
        if packed and room * span <= MAX_ORDER:
            packed[-1] = packed[-1] * span + (key - least)
            room *= span
        else:
            packed.append(key - least)
            room = span
    return packed


def _cancel_opposites(items: JoinItems, orders: Ints) -> Ints:
    """Return the items with a net effect: of one result at one instant the last item, if their number is odd."""
    ts, sign = timestamps_of(orders), signs_of(orders)
    both = np.intersect1d(ts[sign > 0], ts[sign < 0])
    is_mixed = np.isin(ts, both)  # at an instant with insertions and deletions
    if not is_mixed.any():
        return np.arange(len(ts))
    mixed = np.flatnonzero(is_mixed)
    keys = [ts[mixed], *(rows[mixed] for rows in items.positions.values())]
    mixed = mixed[np.lexsort((items.orders[mixed], *keys))]
    keys = [ts[mixed], *(rows[mixed] for rows in items.positions.values())]
    new = np.ones(len(mixed), dtype=bool)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    first = np.flatnonzero(new)
    counts = np.diff(first, append=len(mixed))
    last = mixed[first + counts - 1]
    return np.sort(np.concatenate([np.flatnonzero(~is_mixed), last[counts % 2 == 1]]))
