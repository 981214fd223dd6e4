"""ArrivalTable: reads a plan's arrival table and its trace files; errors name the key or the line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from dsms.arrivals.process import Floats
from dsms.config.fields import to_finite
from dsms.config.kind_table import KindTable
from dsms.errors import PlanError, existing


@dataclass(frozen=True)
class ArrivalTable(KindTable):
    """The entries of one arrivals table."""

    what: ClassVar[str] = "arrivals"
    work: float | None = None  # CPU time per tuple; None: not known

    def rate(self) -> float:
        """Return the rate in tuples per unit of time, from `rate` or from `utilisation`."""
        if self.one_of("rate", "utilisation", needed=False) != "utilisation":
            return self.number("rate", above=0)
        share = self.number("utilisation", above=0)
        if self.work is None:
            raise PlanError("the CPU time per tuple is not known here: give a `rate`", "utilisation")
        return share / self.work

    def interval(self) -> float:
        """Return the time between tuples, from exactly one of `every`, `rate` and `utilisation`."""
        return (
            self.number("every", above=0) if self.one_of("rate", "every", "utilisation") == "every" else 1 / self.rate()
        )

    def series(self, key: str) -> Floats:
        """Return the list of finite numbers under a key."""
        return _to_floats(self.required(key), key)

    def rates(self, key: str) -> Floats:
        """Return the list of rates under a key: none negative, at least one positive."""
        rates = self.series(key)
        for index in np.flatnonzero(rates < 0):
            raise PlanError(f"{float(rates[index])!r} given; expected a rate of 0 or more", f"{key}[{index}]")
        if not rates.any():
            raise PlanError(f"{rates.tolist()} given; expected at least one rate above 0", key)
        return rates

    def listed(self) -> dict[str, Floats]:
        """The columns of a table that holds its tuples itself: "at", and "cost", "cost.<operator>", "size" if given."""
        columns = {"at": self.series("at")}
        for key in ("cost", "size"):
            value = self.entries.get(key)
            if key == "cost" and isinstance(value, Mapping):
                columns |= {f"cost.{name}": _to_floats(costs, f"cost.{name}") for name, costs in value.items()}
            elif value is not None:
                columns[key] = _to_floats(value, key)
        expected = len(columns["at"])
        for name, values in columns.items():
            if len(values) != expected:
                raise PlanError(f"{len(values)} values given; expected {expected}, as many as 'at' has", name)
        _validate_columns(columns, lambda name, index, message: PlanError(message, f"{name}[{index}]"))
        return columns

    def read_trace_columns(self) -> dict[str, Floats]:
        """The columns of the CSV file that `path` names: as of a list, "at" being the one that `column` names."""
        path = (self.folder / self.text("path")).absolute()
        try:
            return _read_trace(path, self.text("column", "at"))
        except FileNotFoundError:
            raise PlanError(f"no such file; looked for {str(path)!r}", "path") from None
        except (OSError, csv.Error, ValueError) as error:
            raise PlanError(f"cannot read {str(path)!r} as CSV: {error}", "path") from None


def _to_floats(value: object, key: str) -> Floats:
    """Return a list of finite numbers as an array."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise PlanError(f"{value!r} given; expected a list of numbers", key)
    found = [to_finite(item) for item in value]
    if None in found:
        index = found.index(None)
        raise PlanError(f"{value[index]!r} given; expected a finite number", f"{key}[{index}]")
    return np.array(found, dtype=np.float64)


def _validate_columns(columns: Mapping[str, Floats], error: Callable[[str, int, str], PlanError]) -> None:
    """Raise for instants that are negative or descend, negative costs, and sizes not above 0."""
    for name, values in columns.items():
        if name == "at":
            if len(values) and values[0] < 0:
                raise error(name, 0, f"{float(values[0])!r} given; time begins at 0")
            for index in np.flatnonzero(values[1:] < values[:-1]) + 1:
                before, value = values[index - 1 : index + 1].tolist()
                raise error(name, int(index), f"{value!r} given after {before!r}; expected instants in ascending order")
            continue
        bad, expected = (values <= 0, "a size above 0") if name == "size" else (values < 0, "a cost of 0 or more")
        for index in np.flatnonzero(bad):
            raise error(name, int(index), f"{float(values[index])!r} given; expected {expected}")


def _read_trace(path: Path, at: str) -> dict[str, Floats]:
    """Return the columns of a CSV file with a header; unrelated columns are ignored."""
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
                rows.append([_parse_cell(row, field, header, where) for field in fields.values()])
                lines.append(reader.line_num)
    table = np.array(rows, dtype=np.float64).reshape(-1, len(fields))
    columns = dict(zip(fields, np.ascontiguousarray(table.T), strict=True))

    def fault(name: str, index: int, message: str) -> PlanError:
        column = header[fields[name]]
        return PlanError(f"{str(path)!r}, line {lines[index]}, column {column!r}: {message}", "path")

    _validate_columns(columns, fault)
    return columns


def _parse_cell(row: Sequence[str], field: int, header: Sequence[str], where: str) -> float:
    """Return one number of a row."""
    if field >= len(row):
        raise PlanError(f"{where}: {len(row)} values given ({','.join(row)!r}); expected {len(header)}", "path")
    try:
        number = to_finite(float(row[field]))
    except ValueError:
        number = None
    if number is None:
        raise PlanError(f"{where}, column {header[field]!r}: {row[field]!r} given; expected a finite number", "path")
    return number
