"""Equal keys share a slot, exactly; slots no longer in use are given out again."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC

import dsms.data.key_table as module
from dsms.data.key_table import KeyTable, Nullable, Numbers, hash_rows

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)]),
    "float64": st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("nan")]),
    "bool": st.booleans(),
    "object": st.sampled_from(["", "a", "b", "ab"]),
}


def column(values: list[Any], dtype: str) -> Nullable:
    nulls = np.array([value is None for value in values], dtype=bool)
    beneath = "?" if dtype == "object" else 1
    return np.array([beneath if value is None else value for value in values], dtype=dtype), nulls


def key(value: Any) -> Any:
    return "nan" if value != value else value


def numbers(values: list[int], slots: KeyTable) -> list[int]:
    return slots.of([(np.array(values, dtype=np.int64), None)]).tolist()


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]], list[int]]:
    """Types of columns, rows of them, and where to cut the rows."""
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*(st.none() | VALUES[t] for t in types)), max_size=30))
    return types, rows, sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))


@settings(DETERMINISTIC, max_examples=DETERMINISTIC.max_examples * 6)
@given(tables(), st.sampled_from([None, 7, 1]))
def test_equal_keys_have_equal_slots_in_the_order_of_first_rows_however_bad_the_hash(
    table: tuple[list[str], list[tuple[Any, ...]], list[int]], modulo: int | None
) -> None:
    types, rows, cuts = table
    slots, seen = KeyTable(), dict[Any, int]()
    got: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        if modulo:
            patch.setattr(module, "hash_rows", lambda columns: hash_rows(columns) % np.uint64(modulo))
        for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            part = rows[low:high]
            got += slots.of([column([row[i] for row in part], t) for i, t in enumerate(types)]).tolist()
    assert got == [seen.setdefault(tuple(map(key, row)), len(seen)) for row in rows]
    assert len(slots) == len(seen)
    back = slots.keys(np.array(got, dtype=np.int64)) if rows else []
    for i, (values, nulls) in enumerate(back):
        known = [None if nulls is not None and nulls[r] else v for r, v in enumerate(values.tolist())]
        assert list(map(key, known)) == [key(row[i]) for row in rows]


def test_a_thousand_keys_with_seven_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "hash_rows", lambda columns: hash_rows(columns) % np.uint64(7))
    slots = KeyTable()
    assert numbers([*range(500)], slots) == [*range(500)]
    assert numbers([*range(999, -1, -1)], slots) == [*range(500, 1000), *range(499, -1, -1)]


@pytest.mark.parametrize("modulo", [None, 5])
@settings(DETERMINISTIC, max_examples=DETERMINISTIC.max_examples * 2)
@given(st.lists(st.tuples(st.lists(st.integers(0, 40), max_size=12), st.integers(0, 3)), max_size=40))
def test_released_slots_are_given_out_again_and_never_to_two_keys(
    modulo: int | None, steps: list[tuple[list[int], int]]
) -> None:
    slots, held = KeyTable(), dict[int, int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_RELEASED_SLOTS", 2)
        if modulo:
            patch.setattr(module, "hash_rows", lambda columns: hash_rows(columns) % np.uint64(modulo))
        for keys, keep in steps:
            for value, slot in zip(keys, numbers(keys, slots), strict=True):
                assert held.setdefault(value, slot) == slot
            assert len(set(held.values())) == len(held) == len(slots)
            gone = [value for value in held if value % 4 > keep]
            slots.release(np.array([held.pop(value) for value in gone], dtype=np.int64))
            assert len(slots) == len(held)
            assert sorted(slots.live().tolist()) == sorted(held.values())
            assert slots.high <= 2 * 41 + 4


def test_a_million_keys_through_a_small_window_need_little_room() -> None:
    slots, waiting = KeyTable(), np.zeros(0, dtype=np.int64)
    for start in range(0, 1_000_000, 5_000):
        new: Numbers = slots.of([(np.arange(start, start + 5_000), None)])
        slots.release(waiting)
        waiting = new
    assert len(slots) == 5_000
    assert slots.high < 25_000


def test_hashes_do_not_look_beneath_nulls_and_spread_neighbours() -> None:
    nulls = np.array([True, True, False])
    first, second, third = hash_rows([(np.array([1, 2, 1]), nulls)]).tolist()
    assert first == second != third
    spread = hash_rows([(np.arange(10_000), None)]) % np.uint64(64)
    assert np.bincount(spread.astype(np.int64)).max() < 250


def test_the_order_of_columns_matters_to_a_hash() -> None:
    a, b = (np.array([1, 2]), None), (np.array([2, 1]), None)
    first, second = hash_rows([a, b]).tolist()
    assert first != second
