"""Reads JSON lines as batches: parses blocks as columns, and reads only an irregular block line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json

from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.errors import PlanError, existing
from dsms.io.arrow_columns import ARROW_TYPES, batch_from_arrow, convert_column
from dsms.io.rejected_row import Reject, RejectedRow, explain_bad_value

BOM = b"\xef\xbb\xbf"
SPECIAL_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}  # not JSON numbers
MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1


@dataclass
class JsonlFile:
    """Reads one object per line as batches: a missing key is null, a key that is not in the schema is ignored.

    A float64 may be one of the strings "NaN", "Infinity" and "-Infinity", a timestamp microseconds or ISO 8601 text.
    """

    name: str
    schema: Schema
    reject: Reject
    _instants: pa.DataType = field(default_factory=pa.int64)  # the type of timestamps in the previous block
    _checked: bool = False  # whether the file is known to have all columns

    def batches(self, chunks: Iterable[bytes]) -> Iterator[Batch]:
        """Yield a batch for each block of lines, rows in order."""
        line = 1
        for block in _split_blocks(chunks):
            columns = self._parse_columns(block)
            if columns is None:
                columns = self._parse_lines(block, line)
            if not self._checked:
                self._check_columns(block, columns)
            line += block.count(b"\n")
            batch = batch_from_arrow(columns, self.schema)
            if len(batch):
                yield batch

    def _parse_columns(self, block: bytes) -> dict[str, pa.Array] | None:
        """Parse a block as columns; None if a line does not fit the schema."""
        if not _is_utf8(block):
            return None
        for instants in (self._instants, pa.int64(), pa.string()):
            table = self._table(block, instants)
            if table is None or table.num_rows != _count_lines(block):
                continue
            self._instants = instants
            converted = {n: convert_column(table.column(n).combine_chunks(), kind) for n, kind in self.schema.fields}
            if not any(len(bad) for _, bad in converted.values()):
                return {name: column for name, (column, _) in converted.items()}
        return None

    def _table(self, block: bytes, instants: pa.DataType) -> pa.Table | None:
        types = [(name, instants if kind == "timestamp" else ARROW_TYPES[kind]) for name, kind in self.schema.fields]
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

    def _parse_lines(self, block: bytes, first: int) -> dict[str, pa.Array]:
        """Parse a block line by line; reject the lines that cannot be read."""
        values: dict[str, list[Any]] = {name: [] for name in self.schema}
        for line, text in enumerate(block.split(b"\n"), first):
            if not text.strip():
                continue
            try:
                row = _parse_row(text, self.schema)
            except ValueError as error:
                shown = text.rstrip(b"\r").decode("utf-8", "backslashreplace")
                self.reject(RejectedRow(self.name, line, shown, str(error)))
                continue
            for column, value in zip(values.values(), row, strict=True):
                column.append(value)
        return {name: pa.array(values[name], ARROW_TYPES[kind], from_pandas=False) for name, kind in self.schema.fields}

    def _check_columns(self, block: bytes, columns: dict[str, pa.Array]) -> None:
        """Raise if a column of the schema is missing in the first rows, not only null."""
        missing = [name for name, column in columns.items() if column.null_count == len(column)]
        if missing and len(columns[missing[0]]):
            keys: set[str] = set()
            for text in block.split(b"\n"):
                try:
                    keys.update(_parse_object(text))
                except ValueError:
                    continue
            for name in missing:
                if name not in keys:
                    raise PlanError(f"no column {name!r} in its first lines{existing(name, keys)}", file=self.name)
        self._checked = any(len(column) for column in columns.values())


def _parse_row(text: bytes, schema: Schema) -> list[Any]:
    """Return the values of a line in the schema's order; raise ValueError with the reason if it is bad."""
    row = _parse_object(text)
    return [_convert_value(row.get(name), name, kind) for name, kind in schema.fields]


def _convert_value(value: Any, name: str, kind: str) -> Any:
    """Convert a JSON value to a type."""
    match kind, value:
        case _, None:
            return None
        case "bool", bool():
            return value
        case "string", str() if _is_utf8(value.encode(errors="surrogatepass")):
            return value
        case "int64" | "timestamp", int() if not isinstance(value, bool) and MIN_INT64 <= value <= MAX_INT64:
            return value
        case "float64", float():
            return value
        case "float64", int() if not isinstance(value, bool) and abs(value) <= sys.float_info.max:
            return float(value)
        case "float64", "NaN" | "Infinity" | "-Infinity":
            return SPECIAL_NUMBERS[value]
        case "timestamp", str():
            converted, bad = convert_column(pa.array([value]), kind)
            if not len(bad):
                return converted[0].as_py()
    raise ValueError(explain_bad_value(name, kind, value))


def _parse_object(text: bytes) -> dict[str, Any]:
    """Return the object in a line; raise ValueError with the reason if there is none."""
    try:
        parsed = json.loads(text.decode())
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ValueError(f"byte 0x{byte:02x} at position {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"JSON is a {type(parsed).__name__}, expected an object")
    return parsed


def _split_blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text in blocks of whole lines."""
    data, is_first = b"", True
    for chunk in chunks:
        data += chunk
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end].removeprefix(BOM) if is_first else data[:end]
            data, is_first = data[end:], False
    if data:
        yield data.removeprefix(BOM) if is_first else data


def _count_lines(block: bytes) -> int:
    """Count the lines that are not blank."""
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
