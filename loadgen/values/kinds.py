"""The kinds of values a plan may ask for: from a column's table to what fills it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dsms.arrivals import Clumped, Replay, TraceFile
from dsms.batch import NULLS, Column
from dsms.durations import microseconds
from dsms.errors import PlanError
from dsms.fates import name_hash
from dsms.kind_table import KindTable, finite
from dsms.plan import Stream
from dsms.schema import DTYPES
from loadgen.values import fills
from loadgen.values.fills import Fill

NUMBERS = ("int64", "float64")
LARGEST = 2**63 - 1


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
        """What chance in this column begins from."""
        return self.key_of(self.column)

    def key_of(self, column: str) -> int:
        """What chance in a column of this stream begins from."""
        return (name_hash(f"{self.stream.name}.{column}") << 64) + self.seed % 2**64

    def value(self, value: object, place: str) -> Any:
        """A value that the column can hold."""
        fits = {
            "int64": isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST,
            "float64": finite(value) is not None,
            "bool": isinstance(value, bool),
            "string": isinstance(value, str),
        }
        if not fits["int64" if self.type == "timestamp" else self.type]:
            raise PlanError(f"{value!r} given; a value of the column's type wanted, which is {self.type}", place)
        return value

    def values(self, key: str) -> Column:
        """The list of values of this key."""
        given = self.required(key)
        if not isinstance(given, list | tuple) or not given:
            raise PlanError(f"{given!r} given; a list of at least one value wanted", key)
        return np.array([self.value(each, f"{key}[{place}]") for place, each in enumerate(given)], self.dtype)


class Kind(NamedTuple):
    """How a table of this kind becomes a fill, the keys it may have, and the types of columns it is for."""

    build: Callable[[ValueTable], Fill]
    keys: str
    types: tuple[str, ...] = tuple(DTYPES)


def _zipf(table: ValueTable) -> Fill:
    return fills.Weighted.zipf(table.key, table.whole("keys", least=1), table.number("skew", 1.0, least=0))


def _uniform(table: ValueTable) -> Fill:
    if table.type == "int64":
        low, high = table.value(table.whole("low", 0), "low"), table.value(table.whole("high"), "high")
    else:
        low, high = table.number("low", 0.0), table.number("high")
    if not low < high:
        raise PlanError(f"{high!r} given; more than 'low' wanted, which is {low!r}", "high")
    return fills.Uniform(table.key, table.dtype, low, high)


def _normal(table: ValueTable) -> Fill:
    mean, deviation = table.number("mean", 0.0), table.number("deviation", 1.0, above=0)
    if table.type == "int64" and abs(mean) + 100 * deviation > LARGEST:
        raise PlanError(f"{mean!r} given, with a deviation of {deviation!r}; values of 64 bits wanted", "mean")
    return fills.Normal(table.key, table.dtype, mean, deviation)


def _even(table: ValueTable) -> Fill:
    return fills.Even(table.key, table.dtype, table.whole("of", 100, least=1))


def _share(table: ValueTable) -> Fill:
    return fills.Share(table.key, table.share("selectivity"), table.whole("of", 100, least=1))


def _choice(table: ValueTable) -> Fill:
    values = table.values("of")
    given = table.entries.get("weights", [1.0] * len(values))
    if not isinstance(given, list | tuple) or len(given) != len(values):
        raise PlanError(f"{given!r} given; {len(values)} numbers wanted, one for each of 'of'", "weights")
    weights = [finite(weight) for weight in given]
    for place, weight in enumerate(weights):
        if weight is None or weight < 0:
            raise PlanError(f"{given[place]!r} given; a finite number from 0 wanted", f"weights[{place}]")
    if not any(weights):
        raise PlanError(f"{given!r} given; at least one weight above 0 wanted", "weights")
    return fills.Weighted(table.key, values, np.array(weights, dtype=np.float64))


def _due(table: ValueTable) -> Fill:
    if "jitter" not in table.entries:
        return fills.Due()
    try:
        return fills.Due(fills.Earlier(table.key, microseconds(table.entries["jitter"])))
    except PlanError as error:
        raise error.within("jitter") from None


def _recorded(table: ValueTable) -> Fill:
    column = table.text("column")
    read = _trace(table).column(column, table.type)
    if not len(read):
        raise PlanError("the trace has no rows to take values from", "column")
    return fills.Recorded(read.columns[column], read.columns.get(column + NULLS))


def _trace(table: ValueTable) -> TraceFile:
    """The file that `path` names, or else the one that the stream's arrivals replay."""
    if "path" in table.entries:
        return TraceFile.at(table.text("path"), table.folder)
    process = table.stream.arrivals(0) if table.stream.arrivals else None
    process = process.process if isinstance(process, Clumped) else process
    if not isinstance(process, Replay):
        raise PlanError("missing; the stream's arrivals replay no trace that it could be", "path")
    return process.trace


KINDS = {
    "zipf": Kind(_zipf, "keys skew", ("int64",)),
    "uniform": Kind(_uniform, "low high", NUMBERS),
    "normal": Kind(_normal, "mean deviation", NUMBERS),
    "even": Kind(_even, "of", NUMBERS),
    "share": Kind(_share, "selectivity of", ("bool",)),
    "choice": Kind(_choice, "of weights"),
    "number": Kind(lambda table: fills.Number(table.dtype), "", NUMBERS),
    "due": Kind(_due, "jitter", ("timestamp", "int64")),
    "constant": Kind(lambda table: fills.Constant(table.value(table.required("value"), "value"), table.dtype), "value"),
    "trace": Kind(_recorded, "column path"),
}
DEFAULTS: dict[str, dict[str, object]] = {
    "int64": {"kind": "uniform", "low": 0, "high": 100},
    "float64": {"kind": "uniform", "low": 0.0, "high": 1.0},
    "bool": {"kind": "share", "selectivity": 0.5},
    "timestamp": {"kind": "due"},
    "string": {"kind": "choice", "of": ["a", "b", "c", "d"]},
}


def filled(table: ValueTable) -> dict[str, Fill]:
    """What fills a column, and the one beside it that says where it has nulls, if it may have some."""
    name = table.kind(KINDS)
    build, keys, types = KINDS[name]
    table.refuse_unknown(["kind", "nulls", *keys.split()])
    if table.type not in types:
        raise PlanError(f"{name!r} given for a column of {table.type}; it is for {list(types)}", "kind")
    fill = build(table)
    nulls = fill.nulls()
    if "nulls" in table.entries:
        if nulls is not None:
            raise PlanError(f"{table.entries['nulls']!r} given; the trace has nulls of its own in this column", "nulls")
        nulls = fills.Share(table.key_of(table.column + NULLS), table.share("nulls"))
    if nulls is None:
        return {table.column: fill}
    if table.column == table.stream.timestamp:
        raise PlanError("nulls in the column of the stream's timestamps; every row needs one", "nulls")
    return {table.column: fill, table.column + NULLS: nulls}
