"""Reading a plan's arrival table: keys, lists and trace files, each fault told with its key or its line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from dsms.arrivals.process import Floats
from dsms.errors import PlanError, existing
from dsms.kind_table import KindTable, finite


@dataclass(frozen=True)
class ArrivalTable(KindTable):
    """The entries of one `{kind = …}` table of arrivals."""

    what: ClassVar[str] = "arrivals"
    work: float | None = None  # CPU time that one tuple takes; None: not known here

    def rate(self) -> float:
        """The tuples per unit of time that `rate` gives, or `utilisation` by what a tuple takes."""
        if self.one_of("rate", "utilisation", needed=False) != "utilisation":
            return self.number("rate", above=0)
        share = self.number("utilisation", above=0)
        if self.work is None:
            raise PlanError("what a tuple takes of the CPU is not known here: give a `rate`", "utilisation")
        return share / self.work

    def interval(self) -> float:
        """The time from tuple to tuple, given by exactly one of `every`, `rate` and `utilisation`."""
        return (
            self.number("every", above=0) if self.one_of("rate", "every", "utilisation") == "every" else 1 / self.rate()
        )

    def series(self, key: str) -> Floats:
        """The list of finite numbers of this key."""
        return _floats(self.required(key), key)

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


def _floats(value: object, key: str) -> Floats:
    """A list of finite numbers as an array."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise PlanError(f"{value!r} given; a list of numbers wanted", key)
    found = [finite(item) for item in value]
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
        number = finite(float(row[field]))
    except ValueError:
        number = None
    if number is None:
        raise PlanError(f"{where}, column {header[field]!r}: {row[field]!r} given; a finite number wanted", "path")
    return number
