"""Values of a load: what each kind generates, exactly or within bounds, and the same rows in any grouping."""

from __future__ import annotations

import itertools
import math
import pickle
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import ROOT

from dsms.data.batch import Batch
from dsms.data.schema import DTYPES, Schema, conform
from dsms.errors import PlanError
from dsms.query.plan_file import plan_from
from loadgen.spec.values import Values
from loadgen.spec.values.kinds import DEFAULTS, KINDS

TRACE = "at,size,host,ok\n2,40,a,true\n3,,b,false\n7,42,c,true\n"
SCHEMA = {"x": "int64", "y": "float64", "b": "bool", "t": "timestamp", "s": "string"}

EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "zipf": ("int64", {"keys": 50, "skew": 1.2}),
    "uniform": ("float64", {"low": -1, "high": 3}),
    "normal": ("float64", {"mean": 5, "deviation": 2}),
    "even": ("int64", {"of": 60}),
    "share": ("bool", {"selectivity": 0.3}),
    "choice": ("string", {"of": ["a", "bc", ""], "weights": [5, 3, 2]}),
    "number": ("int64", {}),
    "due": ("timestamp", {"jitter": "50ms"}),
    "constant": ("string", {"value": "x"}),
    "trace": ("int64", {"column": "size", "path": "trace.csv"}),
}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    (folder / "trace.csv").write_text(TRACE)
    return folder


def read(schema: dict[str, str], seed: int = 1, folder: Path = Path(), name: str = "s", **stream: Any) -> Values:
    table = {"streams": {name: {"schema": schema, **stream}}, "queries": {"q": {"cql": f"SELECT * FROM {name}"}}}
    return Values.read(plan_from(table, folder=folder).streams[0], seed, folder)


def column(kind: str, type_: str, rows: int, first: int = 0, **more: Any) -> np.ndarray[Any, Any]:
    values = read({"x": type_}, values={"x": {"kind": kind, **more}})
    return values.rows(first, np.arange(rows) / 1000)["x"]


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_every_kind_has_an_example() -> None:
    assert EXAMPLES.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_rows_are_the_same_however_they_are_split(kind: str, data: st.DataObject, traces: Path) -> None:
    """Windows in any order, from one object and from a fresh one each, some with high row numbers; with nulls."""
    type_, keys = EXAMPLES[kind]
    nulls = {} if kind == "trace" else {"nulls": 0.07}

    def fresh() -> Values:
        return read({"x": type_}, folder=traces, values={"x": {"kind": kind, **keys, **nulls}})

    origin = data.draw(st.sampled_from([0, 8191, 10**10]))
    instants = origin + np.arange(20_000) / 100
    whole, values = fresh().rows(origin, instants), fresh()
    assert whole.keys() == {"x", "x?"}
    cuts = sorted([0, 20_000, *data.draw(st.lists(st.integers(0, 20_000), max_size=5))])
    windows = list(itertools.pairwise(cuts))
    for low, high in data.draw(st.permutations(windows)):
        expected = {name: every[low:high] for name, every in whole.items()}
        assert same(values.rows(origin + low, instants[low:high]), expected)
        assert same(fresh().rows(origin + low, instants[low:high]), expected)
    assert same(pickle.loads(pickle.dumps(values)).rows(origin, instants), whole)


@pytest.mark.parametrize("kind", ["zipf", "uniform", "normal", "even", "share", "choice", "due"])
def test_seed_stream_and_column_decide_what_is_drawn(kind: str) -> None:
    type_, keys = EXAMPLES[kind]
    tables = {"x": {"kind": kind, **keys}, "y": {"kind": kind, **keys}}
    instants = np.arange(300) + 10.0

    def rows(seed: int = 1, name: str = "s") -> dict[str, Any]:
        return read({"x": type_, "y": type_}, seed, name=name, values=tables).rows(0, instants)

    assert same(rows(), rows())
    assert not np.array_equal(rows()["x"], rows()["y"])
    assert not np.array_equal(rows()["x"], rows(seed=2)["x"])
    assert not np.array_equal(rows()["x"], rows(name="t")["x"])


@pytest.mark.parametrize("of", [1, 7, 100, 5000, 20_000])
def test_even_has_each_value_once_in_every_group(of: int) -> None:
    groups = column("even", "int64", of * 12, of=of).reshape(12, of)
    assert np.array_equal(np.sort(groups, axis=1), np.tile(np.arange(of), (12, 1)))
    if of > 1:
        assert len({tuple(group) for group in groups.tolist()}) > 1


def test_condition_on_an_even_column_passes_an_exact_number_of_every_hundred_rows() -> None:
    passed = (column("even", "int64", 1_000_000) < 20).reshape(-1, 100).sum(axis=1)
    assert np.all(passed == 20)


@pytest.mark.parametrize("selectivity", [0, 0.001, 0.07, 0.29, 1 / 3, 0.5, 0.999, 1])
def test_share_is_exact_after_every_group(selectivity: float) -> None:
    """The number that whole rows allow, after each hundred; also 40 million rows later."""
    for first in (0, 40_000_000):
        found = column("share", "bool", 100_000, first, selectivity=selectivity).reshape(-1, 100).sum(axis=1)
        ends = first // 100 + np.arange(1001)
        expected = np.diff(np.floor(ends * round(selectivity * 100, 9) + 1e-9))
        assert np.array_equal(found, expected)
    total = column("share", "bool", 100_000, selectivity=selectivity).sum()
    assert total == math.floor(100_000 * selectivity + 1e-6)


def test_share_is_in_random_order() -> None:
    """A row is independent of the next: within 0.02 over 100,000 rows, groups of 1000."""
    found = column("share", "bool", 100_000, selectivity=0.5, of=1000).astype(float)
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.02
    assert not np.array_equal(found[:1000], found[1000:2000])


@pytest.mark.parametrize("skew", [0, 0.5, 1, 2])
def test_zipf_keys_are_as_frequent_as_the_law_says(skew: float) -> None:
    """A million rows over 100 keys: each count within five deviations of its expectation, and 1 for the rarest."""
    counts = np.bincount(column("zipf", "int64", 1_000_000, keys=100, skew=skew), minlength=100)
    weights = np.arange(1, 101.0) ** -skew
    expected = 1_000_000 * weights / weights.sum()
    assert len(counts) == 100
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected) + 1)


def test_uniform_whole_numbers_leave_out_the_high_one() -> None:
    counts = np.bincount(column("uniform", "int64", 100_000, low=3, high=7))
    assert counts[:3].tolist() == [0, 0, 0]
    assert counts[3:] == pytest.approx([25_000] * 4, rel=0.03)


def test_uniform_and_normal_have_the_declared_moments() -> None:
    even, bell = (
        column("uniform", "float64", 100_000, low=-1, high=3),
        column("normal", "float64", 100_000, **EXAMPLES["normal"][1]),
    )
    assert (even.min() >= -1, even.max() < 3) == (True, True)
    assert (even.mean(), even.std()) == pytest.approx((1, 4 / math.sqrt(12)), rel=0.02)
    assert (bell.mean(), bell.std()) == pytest.approx((5, 2), rel=0.02)
    whole = column("normal", "int64", 1000, mean=5, deviation=2)
    assert whole.dtype == np.int64


def test_choice_follows_its_weights() -> None:
    found = column("choice", "string", 100_000, **EXAMPLES["choice"][1])
    assert [np.mean(found == value) for value in ("a", "bc", "")] == pytest.approx([0.5, 0.3, 0.2], abs=0.01)
    assert set(column("choice", "int64", 1000, of=[4, -9], weights=[1, 0]).tolist()) == {4}


def test_number_constant_and_due() -> None:
    assert column("number", "int64", 3, first=10**12).tolist() == [10**12, 10**12 + 1, 10**12 + 2]
    assert column("constant", "float64", 2, value=3).tolist() == [3.0, 3.0]
    assert column("due", "timestamp", 4).tolist() == [0, 1000, 2000, 3000]
    assert read({"t": "timestamp"}).rows(0, np.array([0.3, 2.0000015]))["t"].tolist() == [300_000, 2_000_002]


def test_jitter_is_at_most_the_duration_earlier_and_never_before_the_beginning() -> None:
    due = np.arange(20_000) * 1000
    early = due - column("due", "timestamp", 20_000, jitter="50ms")
    assert early.min() >= 0
    assert early.max() <= 50_000
    assert early[50:].mean() == pytest.approx(25_000, rel=0.02)
    assert np.all(early <= due)


def test_trace_values_belong_to_the_tuples_that_the_arrivals_replay(traces: Path) -> None:
    arrivals = {"kind": "trace", "path": "trace.csv", "loop": True}
    values = {"size": {"kind": "trace", "column": "size"}, "from": {"kind": "trace", "column": "host"}}
    rows = read({"size": "int64", "from": "string"}, folder=traces, arrivals=arrivals, values=values).rows(
        2, np.zeros(4)
    )
    assert Batch.of(rows).records() == [
        {"size": size, "from": host} for size, host in ((42, "c"), (40, "a"), (None, "b"), (42, "c"))
    ]


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
def test_nulls_have_the_declared_share(share: float) -> None:
    rows = read({"x": "int64"}, values={"x": {**DEFAULTS["int64"], "nulls": share}}).rows(0, np.zeros(10_000))
    assert rows["x?"].dtype == bool
    assert rows["x?"].sum() == 10_000 * share


def test_columns_without_a_table_get_the_default_of_their_type() -> None:
    assert DEFAULTS.keys() == DTYPES.keys()
    values = read({**SCHEMA, "at": "int64"}, timestamp="at")
    rows = values.rows(0, np.arange(1000) / 10)
    assert list(rows) == [*SCHEMA, "at"]
    assert {name: rows[name].dtype for name in SCHEMA} == {name: DTYPES[kind] for name, kind in SCHEMA.items()}
    assert np.array_equal(rows["t"], rows["at"])
    assert rows["b"].sum() == 500
    assert (rows["x"].min() >= 0, rows["x"].max() < 100, set(rows["s"])) == (True, True, {"a", "b", "c", "d"})


SUITED: dict[tuple[str, str], dict[str, Any]] = {  # keys for columns of other types than the example's
    ("choice", "int64"): {"of": [1, 2, 3]},
    ("choice", "float64"): {"of": [1, 2.5, 3]},
    ("choice", "bool"): {"of": [True, False, True]},
    ("choice", "timestamp"): {"of": [1, 2, 3]},
    ("constant", "int64"): {"value": 2**62},
    ("constant", "float64"): {"value": 1},
    ("constant", "bool"): {"value": False},
    ("constant", "timestamp"): {"value": 5},
    ("uniform", "int64"): {},
    ("normal", "int64"): {},
    ("even", "float64"): {},
    ("number", "float64"): {},
    ("due", "int64"): {},
    ("trace", "float64"): {},
    ("trace", "bool"): {"column": "ok"},
    ("trace", "timestamp"): {},
    ("trace", "string"): {"column": "host"},
}


@pytest.mark.parametrize(("kind", "type_"), [(kind, type_) for kind in KINDS for type_ in KINDS[kind].types])
def test_rows_conform_to_the_schema(kind: str, type_: str, traces: Path) -> None:
    usual, keys = EXAMPLES[kind]
    more = {} if type_ == usual else SUITED[kind, type_]
    values = read({"x": type_}, folder=traces, values={"x": {"kind": kind, **keys, **more}})
    batch = Batch.of(values.rows(5, np.arange(10.0)))
    assert conform(batch, Schema.of({"x": type_}), "s") is batch  # nothing had to be turned into another type


def test_the_values_shown_in_the_guide_are_read_and_every_kind_is_documented() -> None:
    guide = (ROOT / "loadgen/README.md").read_text(encoding="utf-8")
    section = guide.partition("## Values")[2].partition("## Reports")[0]
    shown = tomllib.loads(section.partition("```toml\n")[2].partition("```")[0])
    plan = plan_from({**shown, "queries": {"q": {"cql": "SELECT * FROM clicks"}}})
    rows = Values.read(plan.streams[0], 1, Path()).rows(0, np.arange(1000) / 2000)
    assert rows.keys() == {*shown["streams"]["clicks"]["schema"], "stay?"}
    assert np.all((rows["knob"] < 20).reshape(10, 100).sum(axis=1) == 20)
    assert [kind for kind in KINDS if f"| `{kind}` |" not in section] == []


def test_four_columns_of_two_million_rows_take_a_moment() -> None:
    """Some 0.2 s on the authors' machine: the bound catches work per row, not a slow machine."""
    kinds = {"a": "zipf", "b": "even", "c": "uniform", "d": "normal"}
    tables = {name: {"kind": kind, **EXAMPLES[kind][1]} for name, kind in kinds.items()}
    values = read({"a": "int64", "b": "int64", "c": "float64", "d": "float64"}, values=tables)
    began, instants = time.process_time(), np.zeros(10_000)
    for first in range(0, 2_000_000, 10_000):
        values.rows(first, instants)
    assert time.process_time() - began < 1


MISTAKES: list[tuple[str, dict[str, Any], str, str]] = [
    ("x", {}, "kind", "missing; there are ['choice', "),
    ("x", {"kind": "zip"}, "kind", "'zip' is not a kind of values (did you mean 'zipf'?); there are ['choice', "),
    ("x", {"kind": "zipf"}, "keys", "missing; values of kind 'zipf' need it; there are only ['kind']"),
    ("x", {"kind": "zipf", "keys": 0}, "keys", "0 is not a whole number from 1"),
    ("x", {"kind": "zipf", "keys": 5, "skew": -1}, "skew", "-1 is not a number from 0"),
    (
        "x",
        {"kind": "zipf", "key": 5},
        "key",
        "no such key for values of kind 'zipf' (did you mean 'keys'?); there are [",
    ),
    ("s", {"kind": "zipf", "keys": 5}, "kind", "'zipf' given for a column of string; it is only for ['int64']"),
    ("x", {"kind": "share", "selectivity": 1}, "kind", "'share' given for a column of int64; it is only for ['bool']"),
    ("b", {"kind": "share", "selectivity": 1.2}, "selectivity", "1.2 is not a number from 0 to 1"),
    ("x", {"kind": "uniform", "low": 3, "high": 3}, "high", "3 given; expected more than 'low', which is 3"),
    ("x", {"kind": "uniform", "high": 2.5}, "high", "2.5 is not a whole number"),
    ("x", {"kind": "uniform", "high": 2**63}, "high", "9223372036854775808 given; expected a value of the column"),
    ("y", {"kind": "normal", "deviation": 0}, "deviation", "0 is not a positive number"),
    ("x", {"kind": "even", "of": 0}, "of", "0 is not a whole number from 1"),
    (
        "x",
        {"kind": "constant", "value": "a"},
        "value",
        "'a' given; expected a value of the column's type, which is int64",
    ),
    (
        "x",
        {"kind": "constant", "value": True},
        "value",
        "True given; expected a value of the column's type, which is int64",
    ),
    ("s", {"kind": "choice", "of": []}, "of", "[] given; expected a list of at least one value"),
    (
        "s",
        {"kind": "choice", "of": ["a", 3]},
        "of[1]",
        "3 given; expected a value of the column's type, which is string",
    ),
    (
        "s",
        {"kind": "choice", "of": ["a"], "weights": [1, 2]},
        "weights",
        "[1, 2] given; expected 1 numbers, one for each",
    ),
    (
        "s",
        {"kind": "choice", "of": ["a"], "weights": [0]},
        "weights",
        "[0] given; expected at least one weight above 0",
    ),
    ("s", {"kind": "choice", "of": ["a"], "weights": [-1]}, "weights[0]", "-1 is not a number from 0"),
    ("t", {"kind": "due", "jitter": "5 apples"}, "jitter", "'5 apples' is not a duration: write a number and one of ["),
    (
        "t",
        {"kind": "due", "nulls": 0.1},
        "nulls",
        "nulls in the column of the stream's timestamps; every row needs a timestamp",
    ),
    ("x", {"kind": "number", "nulls": 2}, "nulls", "2 is not a number from 0 to 1"),
    (
        "x",
        {"kind": "trace", "column": "size"},
        "path",
        "missing; the stream's arrivals do not replay a trace, so name one here",
    ),
    ("x", {"kind": "trace", "column": "size", "path": "no.csv"}, "path", "no such file; looked for '"),
    ("x", {"kind": "trace", "column": "siz", "path": "trace.csv"}, "path", "'{file}': no column 'siz' in its header"),
    (
        "x",
        {"kind": "trace", "column": "size", "path": "trace.csv", "nulls": 0.1},
        "nulls",
        "0.1 given; the trace has nulls of its own in this column",
    ),
]


@pytest.mark.parametrize(("name", "table", "key", "message"), MISTAKES)
def test_an_error_names_the_place_and_the_expected_value(
    name: str, table: dict[str, Any], key: str, message: str, traces: Path
) -> None:
    with pytest.raises(PlanError) as caught:
        read(SCHEMA, folder=traces, timestamp="t", values={name: table})
    assert caught.value.place == f"streams.s.values.{name}.{key}"
    assert caught.value.message.startswith(message.replace("{file}", str(traces / "trace.csv")))


def test_values_for_an_unknown_column_or_without_a_schema_are_refused() -> None:
    with pytest.raises(PlanError, match=r"streams\.s\.values: no column 'xx' in the schema \(did you mean 'x'\?\)"):
        read({"x": "int64"}, values={"xx": {"kind": "number"}})
    with pytest.raises(PlanError, match=r"streams\.s\.values\.x: 3 is not a table"):
        read({"x": "int64"}, values={"x": 3})
    bare = plan_from({"streams": {"s": {}}, "queries": {"q": {"from": "s", "operators": [{"name": "o", "cost": 1}]}}})
    with pytest.raises(PlanError, match=r"streams\.s: no `schema`: rows cannot be generated without columns"):
        Values.read(bare.streams[0], 1, Path())
