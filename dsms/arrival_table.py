"""Reading a plan's arrival table: keys, lists and trace files, each fault told with its key or its line."""

from __future__ import annotations

import csv
import math
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dsms.errors import PlanError, existing

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ArrivalTable:
    """The entries of one `{kind = …}` table, and the folder its relative paths start from."""

    entries: Mapping[str, object]
    folder: Path = Path()

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Refuse the first key that this kind of arrivals does not have."""
        for key in self.entries:
            if key not in known:
                kind = self.entries["kind"]
                raise PlanError(f"no such key for arrivals of kind {kind!r}{existing(key, known)}", key)

    def number(self, key: str, default: float | None = None, above: float = -math.inf) -> float:
        """The finite number of this key, greater than `above`."""
        if key not in self.entries and default is not None:
            return default
        value = self._required(key)
        number = _finite(value)
        if number is None or number <= above:
            limit = "" if above == -math.inf else f" above {above:g}"
            raise PlanError(f"{value!r} given; a finite number{limit} wanted", key)
        return number

    def whole(self, key: str, default: int, least: int | None = None) -> int:
        """The whole number of this key, `least` or more."""
        value = self.entries.get(key, default)
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or (least is not None and value < least):
            limit = "" if least is None else f" of {least} or more"
            raise PlanError(f"{value!r} given; a whole number{limit} wanted", key)
        return int(value)

    def text(self, key: str, default: str | None = None, among: Collection[str] = ()) -> str:
        """The text of this key, one of `among` if any are named."""
        if key not in self.entries and default is not None:
            return default
        value = self._required(key)
        if among and value not in among:
            raise PlanError(f"{value!r} given, which is none of those known{existing(str(value), among)}", key)
        if not isinstance(value, str) or not value:
            raise PlanError(f"{value!r} given; a text wanted", key)
        return value

    def rate(self) -> float:
        """The tuples per unit of time that `rate` gives."""
        return self.number("rate", above=0)

    def interval(self) -> float:
        """The time from tuple to tuple, given by exactly one of `every` and `rate`."""
        given = [key for key in ("every", "rate") if key in self.entries]
        if len(given) != 1:
            said = "both given" if given else "neither given"
            raise PlanError(f"{said}; exactly one of 'every' and 'rate' wanted", "rate")
        return 1 / self.rate() if given == ["rate"] else self.number("every", above=0)

    def series(self, key: str) -> Floats:
        """The list of finite numbers of this key."""
        return _floats(self._required(key), key)

    def rates(self, key: str) -> Floats:
        """The list of rates of this key: none below 0, at least one above it."""
        rates = self.series(key)
        for index in np.flatnonzero(rates < 0):
            raise PlanError(f"{float(rates[index])!r} given; a rate of 0 or more wanted", f"{key}[{index}]")
        if not rates.any():
            raise PlanError(f"{rates.tolist()} given; at least one rate above 0 wanted", key)
        return rates

    def listed(self) -> dict[str, Floats]:
        """The columns of a table that holds its tuples itself: "at", and "cost", "cost.<operator>", "size" if given."""
        columns = {"at": self.series("at")}
        for key in ("cost", "size"):
            value = self.entries.get(key)
            if key == "cost" and isinstance(value, Mapping):
                columns |= {f"cost.{name}": _floats(costs, f"cost.{name}") for name, costs in value.items()}
            elif value is not None:
                columns[key] = _floats(value, key)
        wanted = len(columns["at"])
        for name, values in columns.items():
            if len(values) != wanted:
                raise PlanError(f"{len(values)} values given; {wanted} wanted, as many as 'at' has", name)
        _refuse_faults(columns, lambda name, index, message: PlanError(message, f"{name}[{index}]"))
        return columns

    def traced(self) -> dict[str, Floats]:
        """The columns of the CSV file that `path` names: as of a list, "at" being the one that `column` names."""
        path = (self.folder / self.text("path")).absolute()
        try:
            return _read_trace(path, self.text("column", "at"))
        except FileNotFoundError:
            raise PlanError(f"no such file; looked for {str(path)!r}", "path") from None
        except (OSError, csv.Error, ValueError) as error:
            raise PlanError(f"cannot read {str(path)!r} as CSV: {error}", "path") from None

    def _required(self, key: str) -> object:
        if key not in self.entries:
            kind, given = self.entries["kind"], sorted(self.entries)
            raise PlanError(f"missing; arrivals of kind {kind!r} want it, given are {given}", key)
        return self.entries[key]


def _finite(value: object) -> float | None:
    """The value as a float if it is a finite number; True and False are not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _floats(value: object, key: str) -> Floats:
    """A list of finite numbers as an array."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise PlanError(f"{value!r} given; a list of numbers wanted", key)
    found = [_finite(item) for item in value]
    if None in found:
        index = found.index(None)
        raise PlanError(f"{value[index]!r} given; a finite number wanted", f"{key}[{index}]")
    return np.array(found, dtype=np.float64)


def _refuse_faults(columns: Mapping[str, Floats], error: Callable[[str, int, str], PlanError]) -> None:
    """Refuse instants before 0 or that go back, negative costs and sizes not above 0."""
    for name, values in columns.items():
        if name == "at":
            if len(values) and values[0] < 0:
                raise error(name, 0, f"{float(values[0])!r} given; time begins at 0")
            for index in np.flatnonzero(values[1:] < values[:-1]) + 1:
                before, value = values[index - 1 : index + 1].tolist()
                raise error(name, int(index), f"{value!r} given after {before!r}; instants in ascending order wanted")
            continue
        bad, wanted = (values <= 0, "a size above 0") if name == "size" else (values < 0, "a cost of 0 or more")
        for index in np.flatnonzero(bad):
            raise error(name, int(index), f"{float(values[index])!r} given; {wanted} wanted")


def _read_trace(path: Path, at: str) -> dict[str, Floats]:
    """The columns of a CSV file with a header; columns that say nothing about arrivals are passed over."""
    rows: list[list[float]] = []
    lines: list[int] = []
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        if at not in header:
            raise PlanError(f"{str(path)!r} has no column {at!r}{existing(at, header)}", "column")
        fields = {"at": header.index(at)}
        fields |= {name: field for field, name in enumerate(header) if name in ("cost", "size") or name[:5] == "cost."}
        for row in reader:
            if row:
                where = f"{str(path)!r}, line {reader.line_num}"
                rows.append([_cell(row, field, header, where) for field in fields.values()])
                lines.append(reader.line_num)
    table = np.array(rows, dtype=np.float64).reshape(-1, len(fields))
    columns = dict(zip(fields, np.ascontiguousarray(table.T), strict=True))

    def fault(name: str, index: int, message: str) -> PlanError:
        column = header[fields[name]]
        return PlanError(f"{str(path)!r}, line {lines[index]}, column {column!r}: {message}", "path")

    _refuse_faults(columns, fault)
    return columns


def _cell(row: Sequence[str], field: int, header: Sequence[str], where: str) -> float:
    """One number of a row."""
    if field >= len(row):
        raise PlanError(f"{where}: {len(row)} values given ({','.join(row)!r}); {len(header)} wanted", "path")
    try:
        number = _finite(float(row[field]))
    except ValueError:
        number = None
    if number is None:
        raise PlanError(f"{where}, column {header[field]!r}: {row[field]!r} given; a finite number wanted", "path")
    return number
