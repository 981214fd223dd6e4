"""A load by time ranges: every row once, however time is cut; rates; and loads that are refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import DsmsError
from loadgen.spark.source import count_windows, to_micros
from loadgen.spec.load import ROWS_PER_BLOCK, Load, LoadSpec

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
def test_evenly_spaced_rows_appear_once_each_also_on_the_edges_of_ranges(plan: Path, rate: float, parts: int) -> None:
    plan.write_text(PLAN % rate)
    load, ends = Load(LoadSpec.of(plan, duration=3.0)), np.linspace(0, 3, parts + 1).tolist()
    generated = [n for a, b in itertools.pairwise(ends) for n in numbers(load, a, b)]
    assert generated == list(range(round(3 * rate)))
    assert len(generated) > 3 * ROWS_PER_BLOCK or rate < ROWS_PER_BLOCK


@settings(max_examples=60, deadline=None)
@given(speedup=st.floats(0.1, 20).map(lambda s: round(s, 1)), duration=st.integers(1, 120), window=st.floats(0.1, 5))
def test_windows_cover_a_load_and_the_last_one_begins_before_its_end(
    speedup: float, duration: int, window: float
) -> None:
    class Ending:
        end = duration * speedup

    length = to_micros(window * speedup)
    count = count_windows(Ending(), length)
    assert (count - 1) * length < Ending.end * 1e6 <= count * length


def test_an_endless_load_has_infinitely_many_windows(plan: Path) -> None:
    assert count_windows(Load(LoadSpec.of(plan)), 10) == float("inf")


def test_a_stream_named_twice_is_generated_once_and_one_without_rows_does_not_count_for_the_rate(plan: Path) -> None:
    assert Load(LoadSpec.of(plan, streams=("even", "even"), duration=1.0)).count_due(0, 1) == 300_000
    assert Load(LoadSpec.of(plan, rate=100.0, duration=10.0)).count_due(0, 10) == 1000
    with pytest.raises(DsmsError, match="the arrivals of none are empty"):
        Load(LoadSpec.of(plan, streams=("none",), rate=5.0))


def test_timestamps_count_from_since(plan: Path) -> None:
    (rows,) = Load(LoadSpec.of(plan, rate=2.0, duration=1.0, since=100.0)).rows(0, 1)
    assert rows.batch.columns["at"].tolist() == [100_000_000, 100_500_000]
    assert rows.due.tolist() == [0.0, 0.5]
