"""A load by stretches of time: every row once, however it is cut; rates, and what nothing can be made of."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import DsmsError
from loadgen.load import ROWS, Load, Recipe
from loadgen.source import micros, windows_of

PLAN = """
[streams.even]
schema = { n = "int64", at = "timestamp" }
timestamp = "at"
arrivals = { kind = "constant", rate = %s }
values = { n = { kind = "number" } }

[streams.none]
schema = { n = "int64" }
arrivals = { kind = "list", at = [] }

[queries.all]
cql = "SELECT n FROM even"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "plan.toml"
    file.write_text(PLAN % 300_000.0)
    return file


def numbers(load: Load, start: float, stop: float) -> list[int]:
    return [n for rows in load.rows(start, stop) for n in rows.batch.columns["n"].tolist()]


@pytest.mark.parametrize("rate", [70_000.0, 123_456.0, 300_000.0, 1_000_000.0])
@pytest.mark.parametrize("parts", [1, 3, 4])
def test_evenly_spaced_rows_come_once_each_also_where_they_lie_on_the_edges_of_pieces(
    plan: Path, rate: float, parts: int
) -> None:
    plan.write_text(PLAN % rate)
    load, ends = Load(Recipe.of(plan, duration=3.0)), np.linspace(0, 3, parts + 1).tolist()
    found = [n for a, b in itertools.pairwise(ends) for n in numbers(load, a, b)]
    assert found == list(range(round(3 * rate)))
    assert len(found) > 3 * ROWS or rate < ROWS


@settings(max_examples=60, deadline=None)
@given(speedup=st.floats(0.1, 20).map(lambda s: round(s, 1)), duration=st.integers(1, 120), window=st.floats(0.1, 5))
def test_windows_cover_a_load_and_the_last_one_begins_before_its_end(
    speedup: float, duration: int, window: float
) -> None:
    class Ending:
        end = duration * speedup

    length = micros(window * speedup)
    count = windows_of(Ending(), length)
    assert (count - 1) * length < Ending.end * 1e6 <= count * length


def test_an_endless_load_has_windows_without_end(plan: Path) -> None:
    assert windows_of(Load(Recipe.of(plan)), 10) == float("inf")


def test_a_stream_named_twice_is_generated_once_and_one_without_rows_takes_no_part_in_the_rate(plan: Path) -> None:
    assert Load(Recipe.of(plan, streams=("even", "even"), duration=1.0)).due(0, 1) == 300_000
    assert Load(Recipe.of(plan, rate=100.0, duration=10.0)).due(0, 10) == 1000
    with pytest.raises(DsmsError, match="nothing arrives by none"):
        Load(Recipe.of(plan, streams=("none",), rate=5.0))


def test_timestamps_count_from_where_they_are_told_to(plan: Path) -> None:
    (rows,) = Load(Recipe.of(plan, rate=2.0, duration=1.0, since=100.0)).rows(0, 1)
    assert rows.batch.columns["at"].tolist() == [100_000_000, 100_500_000]
    assert rows.due.tolist() == [0.0, 0.5]
