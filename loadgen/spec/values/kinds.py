"""The kinds of values that a plan's `values` tables name, and how each table becomes a fill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dsms.arrivals import ArrivalTraceFile, BatchedArrivals, ReplayedArrivals
from dsms.config.fields import NumberField, to_finite
from dsms.config.kind_table import KindTable
from dsms.data.batch import NULLS_SUFFIX, Column
from dsms.data.outcomes import hash_name
from dsms.data.schema import DTYPES
from dsms.durations import parse_duration_us
from dsms.errors import PlanError
from dsms.plan.graph import Stream
from loadgen.spec.values import fills
from loadgen.spec.values.fills import Fill

NUMERIC_TYPES = ("int64", "float64")
INT64_MAX = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class ValueTable(KindTable):
    """The entries of one column's `{kind = …}` table."""

    what: ClassVar[str] = "values"
    stream: Stream
    column: str
    type: str  # of the column
    seed: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return DTYPES[self.type]

    @property
    def key(self) -> int:
        """The random key of this column."""
        return self.key_of(self.column)

    def key_of(self, column: str) -> int:
        """The random key of a column of this stream, from its name and the seed."""
        return (hash_name(f"{self.stream.name}.{column}") << 64) + self.seed % 2**64

    def value(self, value: object, place: str) -> Any:
        """The value itself, if the column can hold it; refused otherwise."""
        fits = {
            "int64": isinstance(value, int) and not isinstance(value, bool) and abs(value) <= INT64_MAX,
            "float64": to_finite(value) is not None,
            "bool": isinstance(value, bool),
            "string": isinstance(value, str),
        }
        if not fits["int64" if self.type == "timestamp" else self.type]:
            raise PlanError(f"{value!r} given; expected a value of the column's type, which is {self.type}", place)
        return value

    def values(self, key: str) -> Column:
        """The list of values under this key."""
        values = self.required(key)
        if not isinstance(values, list | tuple) or not values:
            raise PlanError(f"{values!r} given; expected a list of at least one value", key)
        return np.array([self.value(each, f"{key}[{place}]") for place, each in enumerate(values)], self.dtype)


class FillKind(NamedTuple):
    """One kind: the function that builds its fill, the keys of its table, and the column types it suits."""

    build: Callable[[ValueTable], Fill]
    keys: str
    types: tuple[str, ...] = tuple(DTYPES)


def _zipf(table: ValueTable) -> Fill:
    return fills.WeightedFill.zipf(table.key, table.whole("keys", least=1), table.number("skew", 1.0, least=0))


def _uniform(table: ValueTable) -> Fill:
    if table.type == "int64":
        low, high = table.value(table.whole("low", 0), "low"), table.value(table.whole("high"), "high")
    else:
        low, high = table.number("low", 0.0), table.number("high")
    if not low < high:
        raise PlanError(f"{high!r} given; expected more than 'low', which is {low!r}", "high")
    return fills.UniformFill(table.key, table.dtype, low, high)


def _normal(table: ValueTable) -> Fill:
    mean, deviation = table.number("mean", 0.0), table.number("deviation", 1.0, above=0)
    if table.type == "int64" and abs(mean) + 100 * deviation > INT64_MAX:
        raise PlanError(f"{mean!r} given, with a deviation of {deviation!r}; values must fit in 64 bits", "mean")
    return fills.NormalFill(table.key, table.dtype, mean, deviation)


def _even(table: ValueTable) -> Fill:
    return fills.PermutationFill(table.key, table.dtype, table.whole("of", 100, least=1))


def _share(table: ValueTable) -> Fill:
    return fills.ShareFill(table.key, table.share("selectivity"), table.whole("of", 100, least=1))


def _choice(table: ValueTable) -> Fill:
    values = table.values("of")
    entry = table.entries.get("weights", [1.0] * len(values))
    if not isinstance(entry, list | tuple) or len(entry) != len(values):
        raise PlanError(f"{entry!r} given; expected {len(values)} numbers, one for each of 'of'", "weights")
    weights = [NumberField(least=0).read(weight, f"weights[{place}]") for place, weight in enumerate(entry)]
    if not any(weights):
        raise PlanError(f"{entry!r} given; expected at least one weight above 0", "weights")
    return fills.WeightedFill(table.key, values, np.array(weights, dtype=np.float64))


def _due(table: ValueTable) -> Fill:
    if "jitter" not in table.entries:
        return fills.DueTimeFill()
    try:
        return fills.DueTimeFill(fills.DelayFill(table.key, parse_duration_us(table.entries["jitter"])))
    except PlanError as error:
        raise error.within("jitter") from None


def _trace(table: ValueTable) -> Fill:
    name = table.text("column")
    rows = _trace_file(table).column(name, table.type)
    if not len(rows):
        raise PlanError("the trace has no rows to take values from", "column")
    return fills.TraceFill(rows.columns[name], rows.columns.get(name + NULLS_SUFFIX))


def _trace_file(table: ValueTable) -> ArrivalTraceFile:
    """The file that `path` names, or else the one that the stream's arrivals replay."""
    if "path" in table.entries:
        return ArrivalTraceFile.at(table.text("path"), table.folder)
    process = table.stream.arrivals(0) if table.stream.arrivals else None
    process = process.process if isinstance(process, BatchedArrivals) else process
    if not isinstance(process, ReplayedArrivals):
        raise PlanError("missing; the stream's arrivals do not replay a trace, so name one here", "path")
    return process.trace


KINDS = {
    "zipf": FillKind(_zipf, "keys skew", ("int64",)),
    "uniform": FillKind(_uniform, "low high", NUMERIC_TYPES),
    "normal": FillKind(_normal, "mean deviation", NUMERIC_TYPES),
    "even": FillKind(_even, "of", NUMERIC_TYPES),
    "share": FillKind(_share, "selectivity of", ("bool",)),
    "choice": FillKind(_choice, "of weights"),
    "number": FillKind(lambda table: fills.RowNumberFill(table.dtype), "", NUMERIC_TYPES),
    "due": FillKind(_due, "jitter", ("timestamp", "int64")),
    "constant": FillKind(
        lambda table: fills.ConstantFill(table.value(table.required("value"), "value"), table.dtype), "value"
    ),
    "trace": FillKind(_trace, "column path"),
}
DEFAULTS: dict[str, dict[str, object]] = {
    "int64": {"kind": "uniform", "low": 0, "high": 100},
    "float64": {"kind": "uniform", "low": 0.0, "high": 1.0},
    "bool": {"kind": "share", "selectivity": 0.5},
    "timestamp": {"kind": "due"},
    "string": {"kind": "choice", "of": ["a", "b", "c", "d"]},
}


def make_fills(table: ValueTable) -> dict[str, Fill]:
    """Build the fill of a column and, if it may have nulls, the fill of the column that says where."""
    name = table.kind(KINDS)
    build, keys, types = KINDS[name]
    table.refuse_unknown(["kind", "nulls", *keys.split()])
    if table.type not in types:
        raise PlanError(f"{name!r} given for a column of {table.type}; it is only for {list(types)}", "kind")
    fill = build(table)
    nulls = fill.nulls()
    if "nulls" in table.entries:
        if nulls is not None:
            raise PlanError(f"{table.entries['nulls']!r} given; the trace has nulls of its own in this column", "nulls")
        nulls = fills.ShareFill(table.key_of(table.column + NULLS_SUFFIX), table.share("nulls"))
    if nulls is None:
        return {table.column: fill}
    if table.column == table.stream.timestamp:
        raise PlanError("nulls in the column of the stream's timestamps; every row needs a timestamp", "nulls")
    return {table.column: fill, table.column + NULLS_SUFFIX: nulls}
