"""Joins and differences over windows, against what a query means worked out anew at every instant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.algebra import Window
from dsms.dataflow import Difference, Expression, Join, Stream
from dsms.joins import MultiJoin
from tests.join_model import Change, Source, contents, expected, pushed, told

WINDOWS = [Window("range", 4), Window("range", 0), Window("rows", 2), Window("rows", 1), Window("unbounded"), None]
R, S, T = Stream("r", "ab"), Stream("s", "bc"), Stream("t", "ac")
RS = Join(R, S, "b")
EXPRESSIONS: dict[str, Expression] = {
    "r join s": RS,
    "r join s join t": Join(RS, T, "ac"),
    "r - s": Difference(R, S, "b"),
    "(r join s) - t": Difference(RS, Stream("t", "cd"), "c"),
    "(r - s) join t": Join(Difference(R, S, "b"), Stream("t", "ad"), "a"),
    "r - (s join t)": Difference(Stream("r", "abd"), Join(S, Stream("t", "cd"), "c"), "bd"),
    "(r - s) - t": Difference(Difference(R, S, "b"), Stream("t", "ad"), "a"),
    "r - (s - t)": Difference(R, Difference(S, Stream("t", "cd"), "c"), "b"),
    "r cross s": Join(Stream("r", "*"), Stream("s", "*"), "*"),
}
FOUR = Join(RS, Join(Stream("t", "cd"), Stream("u", "de"), "d"), "c")


def leaves(expression: Expression) -> list[Stream]:
    if isinstance(expression, Stream):
        return [expression]
    return [*leaves(expression.left), *leaves(expression.right)]


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(0, 2) | st.sampled_from([None, -1, 2**40]),
    "string": st.sampled_from(["", "a", "b", None]),
    "float64": st.sampled_from([0.0, -0.0, 1.0, float("nan"), None]),
    "bool": st.booleans(),
}


@st.composite
def relation_changes(draw: st.DrawFn, row: st.SearchStrategy[tuple[Any, ...]]) -> list[Change]:
    """Rows that come and go so that nothing goes that is not there."""
    living: list[tuple[Any, ...]] = []
    found: list[Change] = []
    for ts in sorted(draw(st.sets(st.integers(0, 12), max_size=6))):
        count = draw(st.integers(0, min(2, len(living))))
        for _ in range(count):
            found.append(Change(ts, living.pop(draw(st.integers(0, len(living) - 1))), -1))
        new = draw(st.lists(row, max_size=3))
        living += new
        found += [Change(ts, one) for one in new]
    return found


@st.composite
def sources_of(draw: st.DrawFn, expression: Expression, windows: Sequence[Window | None] = WINDOWS) -> list[Source]:
    """An input for each stream of an expression, with rows."""
    kinds: dict[str, str] = {}
    found = []
    for stream in leaves(expression):
        attributes = {name: f"k{name}" for name in stream.attributes if name != "*"}
        types = {"id": "int64"}
        for name, column in attributes.items():
            kind = kinds.setdefault(name, draw(st.sampled_from(["int64", "int64", "string", "float64"])))
            mixed = draw(st.booleans()) and kind != "string"
            types[column] = "int64" if kind == "float64" and mixed else kind
        row = st.tuples(*(st.integers(0, 3) if n == "id" else VALUES[kind] for n, kind in types.items()))
        window = draw(st.sampled_from(windows))
        stored = len(found) > 0 and draw(st.integers(0, 5)) == 0
        if window is None and not stored:
            changes = draw(relation_changes(row))
        else:
            changes = [Change(ts, draw(row)) for ts in sorted(draw(st.lists(st.integers(0, 12), max_size=8)))]
        found.append(Source(stream.name, types, None if stored else window, attributes, changes, stored))
    return found


CUTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=20)


def columns_of(expression: Expression, sources: Sequence[Source]) -> tuple[str, ...]:
    shown = leaves(expression.left) if isinstance(expression, Difference) else leaves(expression)
    taking = {leaf.name for leaf in leaves(expression) if leaf.name not in _shown(expression)}
    names = [stream.name for stream in shown if stream.name not in taking]
    return tuple(f"{s.alias}.{column}" for s in sources if s.alias in names for column in s.types)


def _shown(expression: Expression) -> list[str]:
    if isinstance(expression, Stream):
        return [expression.name]
    right = [] if isinstance(expression, Difference) else _shown(expression.right)
    return [*_shown(expression.left), *right]


def join_of(expression: Expression, sources: Sequence[Source], **options: Any) -> MultiJoin:
    inputs = tuple(source.input for source in sources)
    return MultiJoin(inputs=inputs, expression=expression, columns=columns_of(expression, sources), **options)


def check(expression: Expression, sources: Sequence[Source], answers: Sequence[Any]) -> None:
    rows = told(answers)
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    by_alias = {source.alias: source for source in sources}
    for now in range(20):
        assert contents(rows, now) == expected(expression, by_alias, columns_of(expression, sources), now), now


@pytest.mark.parametrize("name", EXPRESSIONS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_put_out_adds_up_to_what_the_expression_holds_at_every_instant(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    sources = data.draw(sources_of(expression))
    if all(source.stored for source in sources):
        return
    join = join_of(expression, sources)
    check(expression, sources, pushed(join, sources, data.draw(CUTS)))
    assert join.asides == []
