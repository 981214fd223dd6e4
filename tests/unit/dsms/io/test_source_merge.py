"""The source merge orders the batches of several sources by timestamp."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from dsms.data.batch import Batch
from dsms.io.source_merge import SourceMerge


def batches(*parts: list[int]) -> list[Batch]:
    return [Batch.of({"at": part}) for part in parts]


def fed(sources: dict[str, list[Batch]], **timestamps: str | None) -> list[tuple[str, list[int]]]:
    return [(stream, batch.columns["at"].tolist()) for stream, batch in SourceMerge(sources, timestamps)]


def test_the_batch_with_the_earliest_first_row_comes_first() -> None:
    sources = {"a": batches([1, 2], [9]), "b": batches([0, 3], [4], [10])}
    assert fed(sources, a="at", b="at") == [("b", [0, 3]), ("a", [1, 2]), ("b", [4]), ("a", [9]), ("b", [10])]


def test_equal_times_come_in_the_order_of_the_plan() -> None:
    sources = {"b": batches([1], [1]), "a": batches([1])}
    assert fed(sources, a="at", b="at") == [("b", [1]), ("b", [1]), ("a", [1])]


def test_sources_without_timestamps_alternate_with_all_others() -> None:
    sources = {"a": batches([1], [5]), "x": batches([0], [0], [0]), "b": batches([2]), "y": batches([7])}
    assert fed(sources, a="at", b="at", x=None) == [
        *[("a", [1]), ("x", [0]), ("y", [7])],
        *[("b", [2]), ("x", [0])],
        *[("a", [5]), ("x", [0])],
    ]


def test_null_timestamps_are_skipped_and_a_batch_of_nulls_follows_the_one_before() -> None:
    nulls = Batch.of({"at": [0, 6], "at?": [True, False]})
    none = Batch.of({"at": [0], "at?": [True]})
    sources = {"a": [nulls, none], "b": batches([5], [7])}
    assert fed(sources, a="at", b="at") == [("b", [5]), ("a", [0, 6]), ("a", [0]), ("b", [7])]


def test_no_sources_and_empty_sources_give_nothing() -> None:
    assert fed({}) == []
    assert fed({"a": [], "b": []}, a="at") == []


def test_only_one_batch_of_each_source_is_held() -> None:
    taken: list[str] = []

    def source(name: str, *parts: list[int]) -> Iterator[Batch]:
        for batch in batches(*parts):
            taken.append(name)
            yield batch

    feed = iter(SourceMerge({"a": source("a", [1], [2], [3]), "b": source("b", [9], [10])}, {"a": "at", "b": "at"}))
    assert next(feed)[0] == "a"
    assert taken == ["a", "b"]


times = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=3), max_size=6)


@given(st.dictionaries(st.sampled_from("abcd"), times, max_size=4))
def test_sorted_sources_come_out_by_time_and_each_in_its_own_order(given: dict[str, list[list[int]]]) -> None:
    given = {name: sorted(map(sorted, parts)) for name, parts in given.items()}
    out = fed({name: batches(*parts) for name, parts in given.items()}, **dict.fromkeys(given, "at"))
    assert [part[0] for _, part in out] == sorted(part[0] for parts in given.values() for part in parts)
    assert all([part for name, part in out if name == stream] == parts for stream, parts in given.items())
