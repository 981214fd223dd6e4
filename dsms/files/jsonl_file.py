"""JSON lines in: blocks parsed as columns; only a block with something unusual is looked at line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json

from dsms.batch import Batch
from dsms.errors import PlanError, existing
from dsms.files.columns import ARROW, batch_of, fitted
from dsms.files.rejected import Reject, Rejected, unfit
from dsms.schema import Schema

BOM = b"\xef\xbb\xbf"
NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}  # JSON has no numbers for these
LEAST, MOST = -(2**63), 2**63 - 1


@dataclass
class JsonlFile:
    """An object a line as batches: a key that a line lacks is null, one that the schema lacks is passed over.

    A float64 may be one of the strings "NaN", "Infinity" and "-Infinity", a timestamp microseconds or ISO 8601 text.
    """

    name: str
    schema: Schema
    reject: Reject
    _instants: pa.DataType = field(default_factory=pa.int64)  # how timestamps were written in the block before
    _checked: bool = False  # whether the columns were found in the file

    def batches(self, chunks: Iterable[bytes]) -> Iterator[Batch]:
        """A batch for each block of lines, rows in order."""
        line = 1
        for block in _blocks(chunks):
            columns = self._fast(block)
            if columns is None:
                columns = self._slow(block, line)
            if not self._checked:
                self._check(block, columns)
            line += block.count(b"\n")
            batch = batch_of(columns, self.schema)
            if len(batch):
                yield batch

    def _fast(self, block: bytes) -> dict[str, pa.Array] | None:
        """The columns of a block in which every line is as wanted; None if one is not."""
        if not _is_utf8(block):
            return None
        for instants in (self._instants, pa.int64(), pa.string()):
            table = self._table(block, instants)
            if table is None or table.num_rows != _count(block):
                continue
            self._instants = instants
            found = {n: fitted(table.column(n).combine_chunks(), kind) for n, kind in self.schema.fields}
            if not any(len(bad) for _, bad in found.values()):
                return {name: column for name, (column, _) in found.items()}
        return None

    def _table(self, block: bytes, instants: pa.DataType) -> pa.Table | None:
        types = [(name, instants if kind == "timestamp" else ARROW[kind]) for name, kind in self.schema.fields]
        if not block.strip():
            return pa.schema(types).empty_table()
        try:
            return arrow_json.read_json(
                pa.BufferReader(block),
                arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                arrow_json.ParseOptions(explicit_schema=pa.schema(types), unexpected_field_behavior="ignore"),
            )
        except pa.ArrowInvalid:
            return None

    def _slow(self, block: bytes, first: int) -> dict[str, pa.Array]:
        """The columns of the lines that can be read; the others are handed on."""
        values: dict[str, list[Any]] = {name: [] for name in self.schema}
        for line, text in enumerate(block.split(b"\n"), first):
            if not text.strip():
                continue
            try:
                row = _row(text, self.schema)
            except ValueError as error:
                shown = text.rstrip(b"\r").decode("utf-8", "backslashreplace")
                self.reject(Rejected(self.name, line, shown, str(error)))
                continue
            for column, value in zip(values.values(), row, strict=True):
                column.append(value)
        return {name: pa.array(values[name], ARROW[kind], from_pandas=False) for name, kind in self.schema.fields}

    def _check(self, block: bytes, columns: dict[str, pa.Array]) -> None:
        """Tell a column that is null all through the first rows from one that is not there."""
        missing = [name for name, column in columns.items() if column.null_count == len(column)]
        if missing and len(columns[missing[0]]):
            keys: set[str] = set()
            for text in block.split(b"\n"):
                try:
                    keys.update(_object(text))
                except ValueError:
                    continue
            for name in missing:
                if name not in keys:
                    raise PlanError(f"no column {name!r} in its first lines{existing(name, keys)}", file=self.name)
        self._checked = any(len(column) for column in columns.values())


def _row(text: bytes, schema: Schema) -> list[Any]:
    """The values of a line in the schema's order; what is wrong with it as a ValueError."""
    found = _object(text)
    return [_value(found.get(name), name, kind) for name, kind in schema.fields]


def _value(value: Any, name: str, kind: str) -> Any:
    """A value of JSON as one of that type."""
    match kind, value:
        case _, None:
            return None
        case "bool", bool():
            return value
        case "string", str() if _is_utf8(value.encode(errors="surrogatepass")):
            return value
        case "int64" | "timestamp", int() if not isinstance(value, bool) and LEAST <= value <= MOST:
            return value
        case "float64", float():
            return value
        case "float64", int() if not isinstance(value, bool) and abs(value) <= sys.float_info.max:
            return float(value)
        case "float64", "NaN" | "Infinity" | "-Infinity":
            return NUMBERS[value]
        case "timestamp", str():
            found, bad = fitted(pa.array([value]), kind)
            if not len(bad):
                return found[0].as_py()
    raise ValueError(unfit(name, kind, value))


def _object(text: bytes) -> dict[str, Any]:
    """The object in a line; what is wrong with it as a ValueError."""
    try:
        found = json.loads(text.decode())
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ValueError(f"byte 0x{byte:02x} at position {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("no JSON that can be read: nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"{type(found).__name__} given, an object wanted")
    return found


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The text in blocks of whole lines."""
    data, begun = b"", False
    for chunk in chunks:
        data += chunk
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end] if begun else data[:end].removeprefix(BOM)
            data, begun = data[end:], True
    if data:
        yield data if begun else data.removeprefix(BOM)


def _count(block: bytes) -> int:
    """How many lines have something in them."""
    ends = block.count(b"\n") + (not block.endswith(b"\n"))
    empty = b"\n\n" in block or b"\r\n\r\n" in block or block[:1] in b"\r\n"
    return sum(1 for line in block.split(b"\n") if line.strip()) if empty else ends


def _is_utf8(block: bytes) -> bool:
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            return False
    return True
