"""The key index finds the positions of all rows with a key; equal values have equal codes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import PlanError
from dsms.operators.joins.state.key_codes import EXACT_CODE_LIMIT, common_kind, encode_keys, normalize_column
from dsms.operators.joins.state.key_index import MAX_CANDIDATES_PER_KEY, HashIndex, merge_matches, restore_code_order
from dsms.operators.joins.state.sorted_search import search_sorted

CODE = st.integers(0, 4) | st.just(EXACT_CODE_LIMIT - 1)
SPREAD = st.integers(0, 4) | st.integers(1_000, 1_100) | st.integers(0, EXACT_CODE_LIMIT - 1)


@settings(max_examples=150, deadline=None)
@given(
    blocks=st.lists(st.tuples(st.lists(st.tuples(CODE, st.booleans()), max_size=12), st.integers(0, 6)), max_size=12),
    asked=st.lists(st.tuples(CODE, st.integers(-2, 60), st.integers(-2, 60)), max_size=12),
)
def test_an_index_finds_all_rows_with_a_key_in_a_range(
    blocks: list[tuple[list[tuple[int, bool]], int]], asked: list[tuple[int, int, int]]
) -> None:
    index = HashIndex()
    keys: list[int | None] = []
    start = 0
    for rows, gone in blocks:
        keys += [code if has else None for code, has in rows]
        some = np.flatnonzero([has for _, has in rows])
        index.add(np.array([code for code, _ in rows], dtype=np.int64), True, some)
        start = min(start + gone, len(keys))
        index.drop(start)
    wanted = [(code, max(low, start), max(high, low, start)) for code, low, high in asked]
    code, low, high = np.array(wanted, dtype=np.int64).reshape(-1, 3).T.copy()
    which, found = index.find(code, low, high)
    assert list(zip(which.tolist(), found.tolist(), strict=True)) == [
        (number, row)
        for number, (code, low, high) in enumerate(wanted)
        for row in range(low, min(high, len(keys)))
        if keys[row] == code
    ]


@settings(max_examples=150, deadline=None)
@given(
    blocks=st.lists(st.lists(st.tuples(SPREAD, st.booleans()), max_size=12), max_size=12),
    asked=st.lists(SPREAD, max_size=12),
)
def test_candidates_contain_all_rows_with_a_key_and_no_others_if_exact(
    blocks: list[list[tuple[int, bool]]], asked: list[int]
) -> None:
    index = HashIndex()
    keys: list[int | None] = []
    for rows in blocks:
        keys += [code if has else None for code, has in rows]
        some = np.flatnonzero([has for _, has in rows])
        index.add(np.array([code for code, _ in rows], dtype=np.int64), True, some)
    found = index.candidates(np.array(asked, dtype=np.int64))
    wanted = [(number, row) for number, code in enumerate(asked) for row, key in enumerate(keys) if key == code]
    if found is None:
        assert len(keys) > MAX_CANDIDATES_PER_KEY
        return
    which, at = merge_matches(found[0])
    pairs = list(zip(which.tolist(), at.tolist(), strict=True))
    assert [(number, row) for number, row in pairs if keys[row] == asked[number]] == wanted
    assert not found[1] or pairs == wanted


def test_a_key_with_many_rows_has_no_candidate_scan() -> None:
    index = HashIndex()
    index.add(np.zeros(MAX_CANDIDATES_PER_KEY + 1, dtype=np.int64), True)
    assert index.candidates(np.zeros(1, dtype=np.int64)) is None
    found = index.candidates(np.array([0, 1]))
    assert found is not None
    assert merge_matches(found[0])[1].tolist() == list(range(MAX_CANDIDATES_PER_KEY + 1))


@given(st.lists(SPREAD, max_size=20))
def test_codes_are_restored_from_sorted_entries(keys: list[int]) -> None:
    index = HashIndex()
    index.add(np.array(keys, dtype=np.int64), True)
    entries = index.latest(np.arange(len(keys)))
    assert (restore_code_order(entries).tolist() if entries is not None else []) == keys


def test_small_batches_into_a_large_window_merge_each_row_only_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    index, sorted_rows = HashIndex(), 0
    merge = HashIndex._merge

    def counting(self: HashIndex) -> None:
        nonlocal sorted_rows
        before = [id(run) for run in self._runs]
        merge(self)
        sorted_rows += sum(len(run.entries) for run in self._runs if id(run) not in before)

    monkeypatch.setattr(HashIndex, "_merge", counting)
    for start in range(0, 20_000, 10):
        index.add(np.arange(start, start + 10) % 97, True)
        index.drop(max(0, start - 5000))
    assert sorted_rows < 20_000 * 12
    assert sum(len(run.entries) for run in index._runs) < 3 * 5000


def test_only_the_rows_added_last_have_sorted_entries() -> None:
    index = HashIndex()
    index.add(np.array([9]), True)
    index.add(np.array([5, 4, 3]), True)
    known = index.latest(np.array([1, 2, 3]))
    assert known is not None
    assert (known % 4).tolist() == [2, 1, 0]
    for others in ([1, 2], [1, 1, 3], [1, 3, 2], [0, 1, 2], []):
        assert index.latest(np.array(others, dtype=np.int64)) is None


def test_an_index_larger_than_a_run_has_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsms.operators.joins.state.key_index.MAX_RUN_ROWS", 8)
    index = HashIndex()
    index.add(np.arange(100) % 3, True)
    assert all(run.end - run.base <= 8 for run in index._runs)
    which, rows = index.find(np.arange(20) % 3, np.full(20, 0), np.full(20, 100))
    assert len(rows) == sum(len(range(number % 3, 100, 3)) for number in range(20))
    assert (rows % 3 == which % 3).all()
    assert (np.diff(which) >= 0).all()


@given(
    values=st.lists(st.integers(-20, 20) | st.just(2**62)),
    wanted=st.lists(st.integers(-20, 20) | st.sampled_from([-(2**63), 2**63 - 1])),
    after=st.booleans(),
    in_order=st.booleans(),
)
def test_merging_finds_the_same_positions_as_binary_search(
    values: list[int], wanted: list[int], after: bool, in_order: bool
) -> None:
    among, numbers = np.array(sorted(values), dtype=np.int64), np.array(wanted, dtype=np.int64)
    if in_order:
        numbers.sort()
    side = "right" if after else "left"
    assert search_sorted(among, numbers, after).tolist() == [int(np.searchsorted(among, n, side=side)) for n in numbers]


def test_equal_values_have_the_same_bits_and_code() -> None:
    reals = normalize_column(np.array([0.0, -0.0, math.nan, -math.nan, 1.0]), "real")
    assert encode_keys([reals], 5)[0].tolist()[0] == encode_keys([reals], 5)[0].tolist()[1]
    assert reals[0] == reals[1]
    assert reals[2] == reals[3]
    assert normalize_column(np.array([1]), "real")[0] == reals[4]


def test_a_small_integer_is_its_own_code() -> None:
    assert encode_keys([np.array([3, 5])], 2)[0].tolist() == [3, 5]
    mixed, exact = encode_keys([np.array([3, -1, 2**60])], 3)
    assert (mixed[0], exact) == (3, False)
    assert encode_keys([np.array(["a", "b"], dtype=object)], 2)[1] is False


def test_a_string_is_not_compared_with_a_number() -> None:
    assert common_kind(["int64", "float64"]) == "real"
    with pytest.raises(PlanError, match="a string only equals a string"):
        common_kind(["int64", "string"])
